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

/** A line of tokens, each a button. @param {{tokens: string[], special: boolean[]}} side @returns {HTMLElement[]} */
export function tokenButtons(side) {
  return side.tokens.map((token, n) =>
    make("button", { type: "button", class: side.special[n] ? "token special" : "token", "data-place": String(n) }, token),
  );
}

/** A calculation as a list. @param {import("./steps.js").Step[]} steps @param {(x: number) => string} format */
export function stepList(steps, format) {
  const items = steps.map(({ name, formula, value, detail }) => {
    const result = make("output", {}, format(value));
    const item = make("li", { "data-step": name, "data-value": String(value) }, make("span", {}, formula), " = ", result);
    if (detail) item.append(make("small", {}, detail));
    return item;
  });
  return make("ol", { class: "steps" }, ...items);
}
