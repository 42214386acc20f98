// One cell stepped through: from query and key to the weight, and to what the key adds to the output.

import { dot, format } from "./numbers.js";

/** @typedef {import("./numbers.js").Tensor} Tensor */

/**
 * The numbers of one attention; null where the mixer has none or computes its scores by a rule of its own.
 * @typedef {object} StepTensors
 * @property {Tensor | null} queries (H, T, D)
 * @property {Tensor | null} keys    (H, S, D)
 * @property {Tensor} values         (H, S, D)
 * @property {number | null} scale
 * @property {Tensor | null} bias    (1 or H, T, S)
 * @property {Tensor | null} scores  (H, T, S)
 */

/**
 * One line of the calculation.
 * @typedef {object} Step
 * @property {string} name
 * @property {string} formula
 * @property {number} value
 * @property {string} [detail]
 */

/**
 * @param {StepTensors} tensors
 * @param {Tensor} weights (H, T, S)
 * @param {number} head
 * @param {number} t the query
 * @param {number} s the key
 * @returns {Step[]}
 */
export function stepsOfCell(tensors, weights, head, t, s) {
  const row = scoresOfRow(tensors, head, t, weights.shape[2]);
  const weight = weights.at(head, t, s);
  return [
    ...(row && tensors.queries ? productSteps(tensors, head, t, s, row[s]) : []),
    ...(row && !tensors.queries ? [ownScore(row[s])] : []),
    ...(row ? softmaxSteps(row, s, weight) : [ownWeight(weight)]),
    ...valueSteps(tensors, weights, head, t, s),
  ];
}

/** The scores of a query with all keys, or null. @returns {number[] | null} */
function scoresOfRow(tensors, head, t, count) {
  const { queries, keys, scale, bias, scores } = tensors;
  if (queries && keys && scale !== null) {
    const query = queries.part(head, t).values;
    return Array.from({ length: count }, (_, s) => {
      return dot(query, keys.part(head, s).values) * scale + (bias ? bias.at(head, t, s) : 0);
    });
  }
  return scores ? Array.from(scores.part(head, t).values) : null;
}

/** q·k, the scale, and the mask or bias. @returns {Step[]} */
function productSteps({ queries, keys, scale, bias }, head, t, s, score) {
  const query = queries.part(head, t).values;
  const key = keys.part(head, s).values;
  const product = dot(query, key);
  const root = Math.sqrt(query.length);
  const usual = Math.abs(scale * root - 1) < 1e-6;
  const formula = `q·k = Σ qᵢkᵢ over D = ${query.length}`;
  const scaling = usual ? `/ √D = / ${format(root)}` : scale === 1 ? "not scaled" : `× ${format(scale)}`;
  const steps = [
    { name: "product", formula, value: product, detail: largestTerms(query, key) },
    { name: "scaled", formula: scaling, value: product * scale },
  ];
  if (!bias) return steps;
  const added = bias.at(head, t, s);
  const what = added === -Infinity ? "mask, the key is hidden" : added === 0 ? "mask, the key is visible" : "bias";
  return [...steps, { name: "biased", formula: `+ ${what}: + ${format(added)}`, value: score }];
}

/** @returns {Step} */
function ownWeight(weight) {
  return { name: "weight", formula: "weight, as the mixer computes it", value: weight };
}

/** @returns {Step} */
function ownScore(score) {
  return { name: "score", formula: "score, as the mixer computes it, with its mask", value: score };
}

/** The softmax with its normaliser; and what comes after it, if the weight is another number. @returns {Step[]} */
function softmaxSteps(row, s, weight) {
  const top = Math.max(...row);
  const exponentials = row.map((score) => Math.exp(score - top));
  const normaliser = exponentials.reduce((sum, each) => sum + each, 0);
  const share = exponentials[s] / normaliser;
  const division = `${format(exponentials[s])} / ${format(normaliser)}`;
  const steps = [
    {
      name: "softmax",
      formula: `softmax = exp(${format(row[s])} − ${format(top)}) / Σ = ${division}`,
      value: share,
      detail: `${format(top)} is the row's largest score; subtracting it changes nothing but keeps exp small.`,
    },
  ];
  if (Math.abs(share - weight) > 1e-4) {
    steps.push({ name: "weight", formula: "changed after the softmax: the weight that is used", value: weight });
  }
  return steps;
}

/** What the key adds to the head's output for the query. @returns {Step[]} */
function valueSteps({ values }, weights, head, t, s) {
  const row = weights.part(head, t).values;
  const value = values.part(head, s).values;
  const output = new Float64Array(value.length);
  row.forEach((weight, key) => {
    values.part(head, key).values.forEach((number, d) => {
      output[d] += weight * number;
    });
  });
  const length = Math.sqrt(dot(value, value));
  const added = Array.from(value, (number) => number * row[s]);
  const along = dot(added, output) / (dot(output, output) || 1);
  const few = added.slice(0, 4).map(format).join(", ");
  return [
    {
      name: "contribution",
      formula: `× v: ‖w·v‖ = ${format(row[s])} × ${format(length)}`,
      value: row[s] * length,
      detail: `w·v = (${few}${added.length > 4 ? ", …" : ""})`,
    },
    { name: "share", formula: "of the head's output, along its direction (all keys together: 1)", value: along },
  ];
}

/** @returns {string} */
function largestTerms(query, key) {
  const terms = Array.from(query, (number, i) => ({ i, value: number * key[i] }));
  terms.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const shown = terms.slice(0, 3).map(({ i, value }) => {
    return `i = ${i}: ${format(query[i])} × ${format(key[i])} = ${format(value)}`;
  });
  const rest = terms.slice(3);
  if (rest.length) shown.push(`the other ${rest.length}: ${format(rest.reduce((sum, term) => sum + term.value, 0))}`);
  return `largest terms: ${shown.join("; ")}`;
}

/** Influence, and its share of the row. @param {Tensor} matrix (T, T) @returns {Step[]} */
export function influenceSteps(matrix, t, s) {
  const row = matrix.part(t).values;
  const sum = row.reduce((total, each) => total + each, 0);
  return [
    { name: "influence", formula: "‖∂y/∂x‖, all heads together", value: row[s] },
    { name: "share", formula: `/ the row's sum ${format(sum)}`, value: sum > 0 ? row[s] / sum : 0 },
  ];
}
