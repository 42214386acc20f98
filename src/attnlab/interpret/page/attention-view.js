// <attention-view>: the attention of a model on one text, to look through.
//
// Its data are a property, or JSON in a script inside it:
//
//     <attention-view><script type="application/json">{"attentions": [...], ...}</script></attention-view>

import { decode, format } from "./numbers.js";
import { keptPlaces, shownMatrix, valueAt } from "./matrix.js";
import { stepsOfCell } from "./steps.js";
import { drawLinks } from "./links.js";
import { cellAt, drawHeatmap, drawThumbnail } from "./heatmap.js";
import { arrowKeys, moved } from "./keyboard.js";
import { checkbox, choice, make, stepList, tokenButtons } from "./parts.js";
import { STYLE } from "./style.js";

/**
 * One attention of the model; numbers are places in the list of tensors.
 * @typedef {object} AttentionData
 * @property {string} name
 * @property {number} heads
 * @property {number} rows     place of the queries' tokens in `sides`
 * @property {number} columns  place of the keys' tokens in `sides`
 * @property {number | null} weights  (H, T, S)
 * @property {{matrix: number, exact: boolean, probes: number} | null} influence  (T, T)
 * @property {string} agreement
 * @property {Record<string, number | null> | null} steps
 */

/**
 * @typedef {object} ViewData
 * @property {string} model
 * @property {string} text
 * @property {string[]} notes
 * @property {string[]} remarks
 * @property {{tokens: string[], special: boolean[]}[]} sides
 * @property {AttentionData[]} attentions
 * @property {import("./numbers.js").StoredTensor[]} tensors
 * @property {[number, number]} selected  attention and head shown first
 */

const WEIGHTS = "weights";
const INFLUENCE = "influence";

class AttentionView extends HTMLElement {
  /** @type {ViewData | null} */
  #data = null;
  #decoded = new Map();
  #state = { attention: 0, head: 0, kind: WEIGHTS, hideSpecial: false, hideFirst: false };
  /** The query and key that are highlighted; a token of the text is both. */
  #marked = { row: null, column: null };
  #cell = null;

  constructor() {
    super();
    const style = new CSSStyleSheet();
    style.replaceSync(STYLE);
    this.attachShadow({ mode: "open" }).adoptedStyleSheets = [style];
    this.recolour = () => this.#data && this.#show();
    this.place = () => this.#data && this.#highlight();
  }

  connectedCallback() {
    const inside = this.querySelector('script[type="application/json"]');
    if (inside && !this.#data) this.data = JSON.parse(inside.textContent);
    this.scheme = window.matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.recolour);
    window.addEventListener("resize", this.place);
  }

  disconnectedCallback() {
    this.scheme.removeEventListener("change", this.recolour);
    window.removeEventListener("resize", this.place);
  }

  /** @returns {ViewData | null} */
  get data() {
    return this.#data;
  }

  set data(data) {
    this.#data = data;
    this.#decoded.clear();
    const [attention, head] = data.selected ?? [0, 0];
    const kind = data.attentions[attention].weights === null ? INFLUENCE : WEIGHTS;
    this.#state = { attention, head, kind, hideSpecial: false, hideFirst: false };
    this.#build();
    this.#show();
  }

  get #attention() {
    return this.#data.attentions[this.#state.attention];
  }

  get #queries() {
    return this.#data.sides[this.#attention.rows];
  }

  get #keys() {
    return this.#data.sides[this.#attention.columns];
  }

  /** @param {number | null} place @returns {import("./numbers.js").Tensor | null} */
  #tensor(place) {
    if (place === null) return null;
    if (!this.#decoded.has(place)) this.#decoded.set(place, decode(this.#data.tensors[place]));
    return this.#decoded.get(place);
  }

  /** The attention's matrix as it is shown; influence has none per head. @returns {import("./matrix.js").Shown} */
  #matrix(attention, head) {
    const { kind, hideSpecial, hideFirst } = this.#state;
    const usesWeights = kind === WEIGHTS || attention.influence === null;
    const matrix = usesWeights ? this.#tensor(attention.weights).part(head) : this.#tensor(attention.influence.matrix);
    const rows = keptPlaces(this.#data.sides[attention.rows].special, hideSpecial, false);
    const columns = keptPlaces(this.#data.sides[attention.columns].special, hideSpecial, hideFirst);
    return shownMatrix(matrix, rows, columns, !usesWeights || hideSpecial || hideFirst);
  }

  /** The parts that stay: controls, and places for the rest. */
  #build() {
    const { attentions, sides } = this.#data;
    const change = (what) => {
      Object.assign(this.#state, what);
      this.#show();
    };
    const controls = make("div", { class: "controls" });
    if (attentions.some((each) => each.weights !== null && each.influence)) {
      controls.append(choice("show", [WEIGHTS, INFLUENCE], this.#state.kind, (kind) => change({ kind })));
    }
    if (sides.some((side) => side.special.includes(true))) {
      controls.append(checkbox("hide-special", "hide special tokens", (hideSpecial) => change({ hideSpecial })));
    }
    controls.append(checkbox("hide-first", "hide the first token as key", (hideFirst) => change({ hideFirst })));
    const canvas = make("canvas", { tabindex: "0", role: "application" });
    this.canvas = /** @type {HTMLCanvasElement} */ (canvas);
    this.shadowRoot.replaceChildren(
      ...this.#data.remarks.map((remark) => make("p", { class: "remark" }, sentence(remark))),
      controls,
      make("p", { class: "said", "aria-live": "polite" }),
      make("div", { class: "grid", role: "group", "aria-label": "all layers and heads" }),
      make("h2"),
      make("p", { class: "remark agreement" }),
      make("div", { class: "text", role: "group", "aria-label": "the text: a token shows its links" }),
      make(
        "div",
        { class: "large" },
        make("div", { class: "scroll" }, canvas),
        make("div", { class: "panel" }, make("p", { class: "readout", "aria-live": "polite" }), make("div", { class: "calculation" })),
      ),
    );
    this.#listen(this.canvas);
  }

  #listen(canvas) {
    const under = (event) => cellAt(this.shown, this.frame, event.offsetX, event.offsetY);
    canvas.addEventListener("pointermove", (event) => {
      const cell = under(event);
      this.#mark(cell ? { row: cell[0], column: cell[1] } : { row: null, column: null });
    });
    canvas.addEventListener("pointerleave", () => this.#mark({ row: null, column: null }));
    canvas.addEventListener("click", (event) => this.#stepThrough(under(event)));
    canvas.addEventListener("keydown", (event) => {
      const { rows, columns } = this.shown;
      const place = moved(event.key, rows.indexOf(this.#marked.row), columns.indexOf(this.#marked.column));
      if (place) {
        const row = rows[Math.min(rows.length - 1, Math.max(0, place[0]))];
        this.#mark({ row, column: columns[Math.min(columns.length - 1, Math.max(0, place[1]))] });
      } else if (event.key === "Enter" || event.key === " ") {
        const { row, column } = this.#marked;
        this.#stepThrough(row === null || column === null ? null : [row, column]);
      } else return;
      event.preventDefault();
    });
  }

  /** Everything that depends on the state. */
  #show() {
    const { attention, head } = this.#state;
    this.#cell = null;
    this.#marked = { row: null, column: null };
    this.shown = this.#matrix(this.#attention, head);
    this.#say();
    this.#showGrid();
    const usesHead = this.#usesWeights(this.#attention);
    const title = usesHead ? `${this.#attention.name}, head ${head}` : `${this.#attention.name}, influence`;
    this.#find("h2").textContent = title;
    this.#find(".agreement").textContent = sentence(this.#attention.agreement);
    this.canvas.setAttribute("aria-label", `${title}: rows are queries, columns keys; arrows move, Enter steps through a cell`);
    this.#showText();
    this.#find(".calculation").replaceChildren();
    this.#highlight();
    this.dispatchEvent(new CustomEvent("attention-selected", { detail: { attention, head } }));
  }

  #usesWeights(attention) {
    return attention.influence === null || (this.#state.kind === WEIGHTS && attention.weights !== null);
  }

  /** What was done to the numbers, in words. */
  #say() {
    const { kind, hideSpecial, hideFirst } = this.#state;
    const influence = this.#attention.influence;
    const parts = [];
    if (kind === INFLUENCE && influence) {
      const how = influence.exact ? "exact" : `estimated with ${influence.probes} random probes`;
      parts.push(`Influence ‖∂y/∂x‖ of an input on an output, all heads together, ${how}; each row is divided by its sum.`);
    }
    if (hideSpecial || hideFirst) parts.push("Rows are divided by their sum over the keys that are shown.");
    parts.push("Darker is larger; colours and links go with the square root.");
    this.#find(".said").textContent = parts.join(" ").replace("Darker", this.scheme?.matches ? "Brighter" : "Darker");
  }

  #showGrid() {
    const colours = this.#colours();
    const side = Math.max(28, Math.min(72, Math.floor(900 / Math.max(...this.#data.attentions.map((each) => each.heads)))));
    const rows = this.#data.attentions.map((attention, layer) => {
      const count = this.#usesWeights(attention) ? this.#tensor(attention.weights).shape[0] : 1;
      return Array.from({ length: count }, (_, head) => {
        const isShown = layer === this.#state.attention && (count === 1 || head === this.#state.head);
        const name = count === 1 && !this.#usesWeights(attention) ? "influence" : `head ${head}`;
        const canvas = /** @type {HTMLCanvasElement} */ (make("canvas"));
        drawThumbnail(canvas, this.#matrix(attention, head), colours, side);
        const label = `${attention.name}, ${name}`;
        const button = make("button", { class: "thumb", type: "button", "aria-label": label, title: label, "aria-pressed": String(isShown) }, canvas);
        button.addEventListener("click", () => {
          Object.assign(this.#state, { attention: layer, head });
          this.#show();
          this.#find('.thumb[aria-pressed="true"]').focus();
        });
        return button;
      });
    });
    const lines = rows.map((buttons, layer) => {
      const name = this.#data.attentions[layer].name.replace(/\.attention$/, "");
      return make("div", { class: "layer" }, make("span", { class: "name" }, name), ...buttons);
    });
    this.#find(".grid").replaceChildren(...lines);
    arrowKeys(rows);
  }

  /** The text once, or, between two texts, that of the queries and that of the keys. */
  #showText() {
    const isSelf = this.#attention.rows === this.#attention.columns;
    const queries = tokenButtons(this.#queries);
    const keys = isSelf ? queries : tokenButtons(this.#keys);
    this.tokens = { queries, keys };
    const links = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    links.setAttribute("aria-hidden", "true");
    const line = (side, buttons) => make("div", { class: "line" }, ...(isSelf ? [] : [make("span", { class: "side" }, side)]), ...buttons);
    this.#find(".text").replaceChildren(line("queries", queries), ...(isSelf ? [] : [line("keys", keys)]), links);
    const mark = (buttons, place) => {
      buttons.forEach((button, n) => {
        for (const name of ["pointerenter", "focus"]) button.addEventListener(name, () => this.#mark(place(n)));
        for (const name of ["pointerleave", "blur"]) button.addEventListener(name, () => this.#mark({ row: null, column: null }));
      });
      arrowKeys([buttons]);
    };
    if (isSelf) mark(queries, (n) => ({ row: n, column: n, token: true }));
    else {
      mark(queries, (n) => ({ row: n, column: null }));
      mark(keys, (n) => ({ row: null, column: n }));
    }
    const hidden = (buttons, kept) => buttons.forEach((button, n) => kept.includes(n) || button.classList.add("hidden"));
    hidden(queries, this.shown.rows);
    if (!isSelf) hidden(keys, this.shown.columns);
  }

  #mark(marked) {
    this.#marked = marked;
    this.#highlight();
  }

  /** Row, column, links and readout of what is marked. */
  #highlight() {
    const { row, column, token } = this.#marked;
    this.frame = drawHeatmap(this.canvas, this.shown, this.#queries.tokens, this.#keys.tokens, { row, column, cell: this.#cell }, this.#colours());
    const { queries, keys } = this.tokens;
    for (const button of [...queries, ...keys]) button.classList.remove("marked");
    queries[row ?? -1]?.classList.add("marked");
    keys[column ?? -1]?.classList.add("marked");
    const isCell = row !== null && column !== null && !token;
    const across = queries !== keys;
    const link = (t, s, kind) => ({ from: queries[t], to: keys[s], weight: valueAt(this.shown, t, s) ?? 0, kind, across });
    const takes = row === null ? [] : [...keys.keys()].map((s) => link(row, s, "takes"));
    const gives = column === null || isCell ? [] : [...queries.keys()].map((t) => link(t, column, "gives"));
    drawLinks(this.#find("svg"), [...takes, ...gives]);
    this.#find(".readout").textContent = this.#readout(isCell);
  }

  /** What is marked, in words. @param {boolean} isCell @returns {string} */
  #readout(isCell) {
    const { row, column } = this.#marked;
    const [query, key] = [this.#queries.tokens[row], this.#keys.tokens[column]];
    const what = this.#usesWeights(this.#attention) ? "weight" : "share of influence";
    if (isCell) return `${query} (${row}) from ${key} (${column}): ${what} ${format(valueAt(this.shown, row, column) ?? 0)}`;
    const parts = [];
    if (row !== null) parts.push(`${query} (${row}) takes most from ${this.#most(this.shown.columns, (s) => valueAt(this.shown, row, s), this.#keys)}`);
    if (column !== null) parts.push(`${key} (${column}) gives most to ${this.#most(this.shown.rows, (t) => valueAt(this.shown, t, column), this.#queries)}`);
    if (parts.length) return `${parts.join("; ")}.`;
    return "Point at a token or a cell, or move to it with the keys. Click a cell, or press Enter, to step through it.";
  }

  #most(places, value, side) {
    const best = places.map((n) => ({ n, value: value(n) ?? 0 })).sort((a, b) => b.value - a.value);
    return best.slice(0, 3).map(({ n, value: size }) => `${side.tokens[n]} (${n}) ${format(size)}`).join(", ") || "nothing that is shown";
  }

  /** @param {number[] | null} cell */
  #stepThrough(cell) {
    if (!cell) return;
    this.#cell = cell;
    const [t, s] = cell;
    const attention = this.#attention;
    const place = this.#find(".calculation");
    const title = make("h3", {}, `${this.#queries.tokens[t]} (${t}) from ${this.#keys.tokens[s]} (${s})`);
    if (this.#usesWeights(attention) && attention.steps) {
      const tensors = Object.fromEntries(
        Object.entries(attention.steps).map(([name, at]) => [name, name === "scale" ? at : this.#tensor(at)]),
      );
      const steps = stepsOfCell(tensors, this.#tensor(attention.weights), this.#state.head, t, s);
      place.replaceChildren(title, stepList(steps, format));
    } else if (this.#usesWeights(attention)) {
      place.replaceChildren(title, make("p", {}, "The page has the weights only: the text is too long for the numbers of the steps."));
    } else {
      const size = this.#tensor(attention.influence.matrix).at(t, s);
      const step = { name: "influence", formula: "‖∂y/∂x‖, all heads together", value: size };
      place.replaceChildren(title, stepList([step], format));
    }
    this.#highlight();
  }

  /** The colours of the style, for the canvas. @returns {import("./heatmap.js").Colours} */
  #colours() {
    const style = getComputedStyle(this);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    const parts = (name) => [1, 3, 5].map((n) => parseInt(read(name).slice(n, n + 2), 16));
    return { low: parts("low"), high: parts("high"), ink: read("ink"), faint: read("faint"), row: read("row"), column: read("column") };
  }

  /** @returns {HTMLElement} */
  #find(selector) {
    return this.shadowRoot.querySelector(selector);
  }
}

/** @param {string} text @returns {string} */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

customElements.define("attention-view", AttentionView);
