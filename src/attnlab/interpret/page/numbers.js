// Tensors from the page's data, and numbers as text.

/**
 * @typedef {object} StoredTensor
 * @property {number[]} shape
 * @property {string} data  base64 of float32, little endian, row by row
 */

/** Numbers with a shape, in row-major order. */
export class Tensor {
  /** @param {number[]} shape @param {Float32Array} values */
  constructor(shape, values) {
    this.shape = shape;
    this.values = values;
  }

  /** The part at the first indices: `tensor.part(head)` of (H, T, S) is (T, S). An axis of length 1 serves all.
   * @param {...number} indices @returns {Tensor} */
  part(...indices) {
    const shape = this.shape.slice(indices.length);
    const size = shape.reduce((product, length) => product * length, 1);
    let start = 0;
    indices.forEach((index, axis) => {
      start = start * this.shape[axis] + (this.shape[axis] === 1 ? 0 : index);
    });
    return new Tensor(shape, this.values.subarray(start * size, (start + 1) * size));
  }

  /** The number at these indices, one for each axis. @param {...number} indices @returns {number} */
  at(...indices) {
    return this.part(...indices).values[0];
  }
}

/** @param {StoredTensor} stored @returns {Tensor} */
export function decode(stored) {
  const text = atob(stored.data);
  const bytes = new Uint8Array(text.length);
  for (let n = 0; n < text.length; n++) bytes[n] = text.charCodeAt(n);
  return new Tensor(stored.shape, new Float32Array(bytes.buffer));
}

/** Four significant digits. @param {number} x @returns {string} */
export function format(x) {
  if (x === -Infinity) return "−∞";
  if (x === 0) return "0";
  const small = Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5;
  return (small ? x.toExponential(2) : String(Number(x.toPrecision(4)))).replaceAll("-", "−");
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b @returns {number} */
export function dot(a, b) {
  let sum = 0;
  for (let n = 0; n < a.length; n++) sum += a[n] * b[n];
  return sum;
}
