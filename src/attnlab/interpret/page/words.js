// What <attention-view> says about what it shows.

import { format } from "./numbers.js";
import { valueAt } from "./matrix.js";

/** @typedef {import("./matrix.js").Shown} Shown */

export const HINT =
  "Point at a token or a cell, or move to it with the keys. Click a cell, or press Enter, to step through it.";

/** @param {string} text @returns {string} */
export function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A token with its place. @param {string[]} tokens @param {number} n @returns {string} */
export function named(tokens, n) {
  return `“${tokens[n]}” (${n})`;
}

/**
 * What was done to the numbers before they were drawn.
 * @param {{exact: boolean, probes: number} | null} influence  null: weights are shown
 * @param {boolean} someHidden
 * @param {boolean} dark
 * @returns {string}
 */
export function treatment(influence, someHidden, dark) {
  const parts = [];
  if (influence) {
    const how = influence.exact ? "exact" : `estimated with ${influence.probes} random probes`;
    parts.push(`Influence ‖∂y/∂x‖ of an input on an output, all heads together, ${how}.`);
  }
  if (someHidden) parts.push("Each row is divided by its sum over the keys that are shown.");
  else if (influence) parts.push("Each row is divided by its sum.");
  parts.push(`${dark ? "Brighter" : "Darker"} is larger; colours and links go with the square root.`);
  return parts.join(" ");
}

/** One cell in words. @returns {string} */
export function cellInWords(shown, queries, keys, t, s, what) {
  return `${named(queries, t)} from ${named(keys, s)}: ${what} ${format(valueAt(shown, t, s) ?? 0)}`;
}

/**
 * A row, a column or both: the largest numbers in them.
 * @param {Shown} shown @param {string[]} queries @param {string[]} keys
 * @param {number | null} row @param {number | null} column
 * @returns {string}
 */
export function tokenInWords(shown, queries, keys, row, column) {
  const parts = [];
  if (row !== null) {
    const most = largest(shown.columns, keys, (s) => valueAt(shown, row, s));
    parts.push(`${named(queries, row)} takes most from ${most}`);
  }
  if (column !== null) {
    const most = largest(shown.rows, queries, (t) => valueAt(shown, t, column));
    parts.push(`${named(keys, column)} gives most to ${most}`);
  }
  return parts.length ? `${parts.join("; ")}.` : HINT;
}

/** @returns {string} */
function largest(places, tokens, value) {
  const ordered = places.map((n) => ({ n, size: value(n) ?? 0 })).sort((a, b) => b.size - a.size);
  return ordered.slice(0, 3).map(({ n, size }) => `${named(tokens, n)} ${format(size)}`).join(", ");
}
