// Which rows and columns of a matrix are shown, and what hiding some of them does to the rest.

import { Tensor } from "./numbers.js";

/**
 * A matrix as it is drawn.
 * @typedef {object} Shown
 * @property {number[]} rows     places of the queries that are shown
 * @property {number[]} columns  places of the keys that are shown
 * @property {Tensor} values     (rows, columns)
 */

/**
 * @param {Tensor} matrix (T, S)
 * @param {number[]} rows
 * @param {number[]} columns
 * @param {boolean} normalised  divide each row by its sum over the columns that are shown
 * @returns {Shown}
 */
export function shownMatrix(matrix, rows, columns, normalised) {
  const values = new Float32Array(rows.length * columns.length);
  rows.forEach((t, row) => {
    const whole = matrix.part(t).values;
    const sum = normalised ? columns.reduce((total, s) => total + whole[s], 0) : 1;
    columns.forEach((s, column) => {
      values[row * columns.length + column] = sum > 0 ? whole[s] / sum : 0;
    });
  });
  return { rows, columns, values: new Tensor([rows.length, columns.length], values) };
}

/**
 * The places that stay: all, or those without special tokens, or those without the first.
 * @param {boolean[]} special
 * @param {boolean} hideSpecial
 * @param {boolean} hideFirst
 * @returns {number[]}
 */
export function keptPlaces(special, hideSpecial, hideFirst) {
  return [...special.keys()].filter((n) => !(hideSpecial && special[n]) && !(hideFirst && n === 0));
}

/** The value of the cell of a query and a key, or null if one of them is hidden.
 * @param {Shown} shown @param {number} t @param {number} s @returns {number | null} */
export function valueAt(shown, t, s) {
  const row = shown.rows.indexOf(t);
  const column = shown.columns.indexOf(s);
  return row < 0 || column < 0 ? null : shown.values.at(row, column);
}
