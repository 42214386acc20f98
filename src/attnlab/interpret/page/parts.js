// Elements that <attention-view> is built of.

/**
 * @param {string} tag
 * @param {Record<string, string>} [attributes]
 * @param {...(Node | string)} children  strings become text, never markup
 * @returns {HTMLElement}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A check box with its label. @returns {HTMLElement} */
export function checkbox(id, text, changed) {
  const input = make("input", { type: "checkbox", id });
  input.addEventListener("change", () => changed(/** @type {HTMLInputElement} */ (input).checked));
  return make("label", { for: id }, input, text);
}

/** Buttons of which one is chosen. @returns {HTMLElement} */
export function choice(name, values, chosen, changed) {
  const group = make("fieldset", { class: "choice" }, make("legend", {}, name));
  for (const value of values) {
    const input = /** @type {HTMLInputElement} */ (make("input", { type: "radio", name, id: `show-${value}`, value }));
    input.checked = value === chosen;
    input.addEventListener("change", () => changed(value));
    group.append(make("label", { for: `show-${value}` }, input, value));
  }
  return group;
}

/**
 * The places for everything that <attention-view> shows.
 * @param {string[]} remarks
 * @param {HTMLElement[]} controls
 * @returns {HTMLElement[]}
 */
export function outline(remarks, controls) {
  const canvas = make("canvas", { tabindex: "0", role: "application" });
  const caption = make("figcaption", {}, "Rows are queries, columns are keys.");
  const readout = make("p", { class: "readout", "aria-live": "polite" });
  const panel = make("div", { class: "panel" }, readout, make("div", { class: "calculation", "aria-live": "polite" }));
  return [
    ...remarks.map((remark) => make("p", { class: "remark" }, remark)),
    make("div", { class: "controls" }, ...controls),
    make("p", { class: "said", "aria-live": "polite" }),
    make("div", { class: "grid", role: "group", "aria-label": "all layers and heads" }),
    make("h2"),
    make("p", { class: "remark agreement" }),
    make("div", { class: "text", role: "group", "aria-label": "the text; a token shows its links" }),
    make("div", { class: "large" }, make("figure", {}, canvas, caption), panel),
  ];
}

/** One layer of the grid. @param {string} name @param {HTMLElement[]} buttons @returns {HTMLElement} */
export function gridLine(name, buttons) {
  return make("div", { class: "layer" }, make("span", { class: "name" }, name), ...buttons);
}

/** The line above the grid: the numbers of the heads, where there are several. @param {number} count @returns {HTMLElement} */
export function headNumbers(count) {
  const numbers = count < 2 ? [] : Array.from({ length: count }, (_, head) => make("span", { class: "number" }, `${head}`));
  const line = make("div", { class: "layer heads", "aria-hidden": "true" }, make("span", { class: "name" }), ...numbers);
  line.hidden = count < 2;
  return line;
}

/** A line of tokens, each a button; those that are not kept are struck out.
 * @param {{tokens: string[], special: boolean[]}} side @param {number[]} kept @returns {HTMLElement[]} */
export function tokenButtons(side, kept) {
  return side.tokens.map((token, n) => {
    const button = make("button", { type: "button", class: "token", "data-place": String(n) }, token);
    button.classList.toggle("special", side.special[n]);
    button.classList.toggle("hidden", !kept.includes(n));
    return button;
  });
}

/** A calculation as a list. @param {import("./steps.js").Step[]} steps @param {(x: number) => string} format */
export function stepList(steps, format) {
  const items = steps.map(({ name, formula, value, detail }) => {
    const result = make("output", {}, format(value));
    const marks = { "data-step": name, "data-value": String(value) };
    const item = make("li", marks, make("span", {}, formula), " = ", result);
    if (detail) item.append(make("small", {}, detail));
    return item;
  });
  return make("ol", { class: "steps" }, ...items);
}
