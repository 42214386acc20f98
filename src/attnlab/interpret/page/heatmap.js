// A matrix on a canvas: small for the overview, large with its tokens.

/** @typedef {import("./numbers.js").Tensor} Tensor */
/** @typedef {import("./matrix.js").Shown} Shown */

/**
 * @typedef {object} Colours
 * @property {number[]} low    red, green, blue of 0
 * @property {number[]} high   of 1
 * @property {string} ink
 * @property {string} faint
 * @property {string} row      of the highlighted query
 * @property {string} column   of the highlighted key
 */

/** Where the cells of a large matrix begin, and how large they are, in CSS pixels.
 * @typedef {{left: number, top: number, cell: number}} Frame */

const LARGE = 620; // pixels for the cells of one side
const SMALLEST = 12; // pixels of a cell that is made smaller to fit a narrow window
const LONGEST_LABEL = 14;

/**
 * The cells, one pixel each. A colour goes with the square root of its number, so that small weights can be seen.
 * @param {Tensor} values (rows, columns), from 0 to 1
 * @param {Colours} colours
 * @returns {HTMLCanvasElement}
 */
function pixels(values, { low, high }) {
  const [rows, columns] = values.shape;
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  values.values.forEach((value, n) => {
    const share = Math.sqrt(Math.min(1, Math.max(0, value)));
    for (let part = 0; part < 3; part++) image.data[4 * n + part] = low[part] + share * (high[part] - low[part]);
    image.data[4 * n + 3] = 255;
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

/** A canvas of this size in CSS pixels, sharp on every screen. @returns {CanvasRenderingContext2D} */
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.imageSmoothingEnabled = false;
  return context;
}

/** The side of thumbnails of which so many stand beside each other. @param {number} count @returns {number} */
export function thumbnailSide(count) {
  return Math.max(28, Math.min(72, Math.floor(960 / count) - 14)); // 14: its border and the gap to the next
}

/** @param {HTMLCanvasElement} canvas @param {Shown} shown @param {Colours} colours @param {number} side */
export function drawThumbnail(canvas, shown, colours, side) {
  const context = sized(canvas, side, side);
  context.drawImage(pixels(shown.values, colours), 0, 0, side, side);
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Shown} shown
 * @param {string[]} queries  the tokens of all rows
 * @param {string[]} keys     the tokens of all columns
 * @param {{row: number | null, column: number | null, cell: number[] | null}} marked  places of tokens
 * @param {Colours} colours
 * @param {number} room  pixels from side to side; the rest is scrolled to
 * @returns {Frame}
 */
export function drawHeatmap(canvas, shown, queries, keys, marked, colours, room) {
  const count = Math.max(shown.rows.length, shown.columns.length, 1);
  const longest = Math.max(4, ...shown.rows.map((n) => shorten(queries[n]).length));
  const usual = Math.max(5, Math.min(28, Math.floor(LARGE / count)));
  const fitting = Math.floor((room - longest * 8.1 - 24) / Math.max(1, shown.columns.length));
  const cell = Math.min(usual, Math.max(SMALLEST, fitting));
  const size = Math.max(10, Math.min(13, cell + 1));
  const letters = (places, tokens) => Math.max(4, ...places.map((n) => shorten(tokens[n]).length));
  const frame = {
    left: Math.ceil(letters(shown.rows, queries) * size * 0.62) + 12,
    top: Math.ceil(letters(shown.columns, keys) * size * 0.62) + 12,
    cell,
  };
  const width = shown.columns.length * cell;
  const height = shown.rows.length * cell;
  const context = sized(canvas, frame.left + width + 2, frame.top + height + 2);
  if (width && height) context.drawImage(pixels(shown.values, colours), frame.left, frame.top, width, height);
  context.strokeStyle = colours.faint;
  context.strokeRect(frame.left - 0.5, frame.top - 0.5, width + 1, height + 1);
  context.font = `${size}px ui-monospace, monospace`;
  context.textBaseline = "middle";
  context.save();
  context.translate(frame.left, frame.top);
  context.textAlign = "right";
  labels(context, shown.rows, queries, cell, -6, marked.row, colours.ink, colours.row);
  context.rotate(-Math.PI / 2);
  context.textAlign = "left";
  labels(context, shown.columns, keys, cell, 6, marked.column, colours.ink, colours.column);
  context.restore();
  frames(context, shown, frame, marked, colours);
  return frame;
}

/** Tokens along a side, in the colour `ink`, the marked one in its own; every few where there is no room for all. */
function labels(context, places, tokens, cell, distance, marked, ink, highlight) {
  const every = cell >= 9 ? 1 : Math.ceil(11 / cell);
  places.forEach((place, n) => {
    if (n % every && place !== marked) return;
    context.fillStyle = place === marked ? highlight : ink;
    context.fillText(shorten(tokens[place]), distance, (n + 0.5) * cell);
  });
}

/** Frames around the highlighted row, column and cell. */
function frames(context, shown, { left, top, cell }, marked, colours) {
  const row = shown.rows.indexOf(marked.row ?? -1);
  const column = shown.columns.indexOf(marked.column ?? -1);
  context.lineWidth = 1.5;
  if (row >= 0) {
    context.strokeStyle = colours.row;
    context.strokeRect(left, top + row * cell, shown.columns.length * cell, cell);
  }
  if (column >= 0) {
    context.strokeStyle = colours.column;
    context.strokeRect(left + column * cell, top, cell, shown.rows.length * cell);
  }
  if (!marked.cell) return;
  const [t, s] = [shown.rows.indexOf(marked.cell[0]), shown.columns.indexOf(marked.cell[1])];
  if (t < 0 || s < 0) return;
  context.lineWidth = 3;
  context.strokeStyle = colours.ink;
  context.strokeRect(left + s * cell, top + t * cell, cell, cell);
}

/** The query and key under a point of the canvas, or null.
 * @param {Shown} shown @param {Frame} frame @param {number} x @param {number} y @returns {number[] | null} */
export function cellAt(shown, frame, x, y) {
  const row = Math.floor((y - frame.top) / frame.cell);
  const column = Math.floor((x - frame.left) / frame.cell);
  const inside = row >= 0 && row < shown.rows.length && column >= 0 && column < shown.columns.length;
  return inside ? [shown.rows[row], shown.columns[column]] : null;
}

/** @param {string} label @returns {string} */
function shorten(label) {
  const letters = [...label];
  return letters.length > LONGEST_LABEL ? `${letters.slice(0, LONGEST_LABEL - 1).join("")}…` : label;
}
