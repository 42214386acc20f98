// <attention-view>: the attention of a model on one text, to look through.
//
//   document.querySelector("attention-view").data = await response.json();
//
// Its only property is `data`, a ViewData (below; `page_data` in attention_page.py makes it). It can be set before or after
// the element is in the page and this module is loaded, again for another text, and to null to empty the element. Instead
// of setting it, put JSON into a script element of type application/json inside. There are no attributes. Colours follow
// the reader's scheme; the custom properties of style.js (--ink, --panel, …) can be set outside.

import { decode, format } from "./numbers.js";
import { keptPlaces, shownMatrix, valueAt } from "./matrix.js";
import { influenceSteps, stepsOfCell } from "./steps.js";
import { drawLinks, linkLayer } from "./links.js";
import { cellAt, drawHeatmap, drawThumbnail, thumbnailSide } from "./heatmap.js";
import { arrowKeys, moved } from "./keyboard.js";
import { checkbox, choice, gridLine, headNumbers, make, outline, stepList, tokenButtons } from "./parts.js";
import { cellInWords, named, sentence, tokenInWords, treatment } from "./words.js";
import { STYLE } from "./style.js";

/**
 * One attention of the model; numbers are places in the list of tensors.
 * @typedef {object} AttentionData
 * @property {string} name
 * @property {number} rows     place of the queries' tokens in `sides`
 * @property {number} columns  place of the keys' tokens in `sides`
 * @property {number | null} weights  (H, T, S)
 * @property {{matrix: number, exact: boolean, probes: number} | null} influence  (T, T)
 * @property {string} agreement
 * @property {Record<string, number | null> | null} steps
 */

/**
 * @typedef {object} ViewData
 * @property {string[]} notes    what was changed or added before the model read the text, or left out of the page
 * @property {string[]} remarks  where weights and influence disagree
 * @property {{tokens: string[], special: boolean[]}[]} sides
 * @property {AttentionData[]} attentions
 * @property {import("./numbers.js").StoredTensor[]} tensors
 * @property {[number, number]} selected  attention and head shown first
 */

const WEIGHTS = "weights";
const INFLUENCE = "influence";
const NOTHING = { row: null, column: null };

class AttentionView extends HTMLElement {
  /** @type {ViewData | null} */
  #data = null;
  #decoded = new Map();
  #state = { attention: 0, head: 0, kind: WEIGHTS, hideSpecial: false, hideFirst: false };
  /** The query and key that are highlighted; a token of the text is both. */
  #marked = NOTHING;
  /** The query and key that are stepped through. @type {number[] | null} */
  #cell = null;
  /** @type {import("./matrix.js").Shown} */
  #shown;
  /** @type {import("./heatmap.js").Frame} */
  #frame;
  /** @type {HTMLCanvasElement} */
  #canvas;
  /** @type {{queries: HTMLElement[], keys: HTMLElement[]}} */
  #tokens;
  #dark = window.matchMedia("(prefers-color-scheme: dark)");
  #recolour = () => this.#data && this.#show();
  #replace = () => this.#data && this.#highlight();

  constructor() {
    super();
    const style = new CSSStyleSheet();
    style.replaceSync(STYLE);
    this.attachShadow({ mode: "open" }).adoptedStyleSheets = [style];
  }

  connectedCallback() {
    const inside = this.querySelector('script[type="application/json"]');
    if (Object.hasOwn(this, "data")) this.#takeEarlyData();
    else if (inside && !this.#data) this.data = JSON.parse(inside.textContent);
    else this.#draw();
    this.#dark.addEventListener("change", this.#recolour);
    window.addEventListener("resize", this.#replace);
  }

  disconnectedCallback() {
    this.#dark.removeEventListener("change", this.#recolour);
    window.removeEventListener("resize", this.#replace);
  }

  /** @returns {ViewData | null} */
  get data() {
    return this.#data;
  }

  set data(data) {
    this.#data = data;
    this.#decoded.clear();
    if (this.isConnected) this.#draw();
  }

  /** What was set before this class was known is a property of the element itself, which hides that of the class. */
  #takeEarlyData() {
    const early = this.data;
    delete this.data;
    this.data = early;
  }

  /** Everything, from the data. */
  #draw() {
    if (!this.#data) return this.shadowRoot.replaceChildren();
    const [attention, head] = this.#data.selected;
    const kind = this.#data.attentions[attention].weights === null ? INFLUENCE : WEIGHTS;
    this.#state = { attention, head, kind, hideSpecial: false, hideFirst: false };
    this.#build();
    this.#show();
  }

  get #attention() {
    return this.#data.attentions[this.#state.attention];
  }

  get #queries() {
    return this.#data.sides[this.#attention.rows].tokens;
  }

  get #keys() {
    return this.#data.sides[this.#attention.columns].tokens;
  }

  /** Whether weights are shown; else influence, which an attention has once for all heads. */
  #usesWeights(attention) {
    return attention.influence === null || (this.#state.kind === WEIGHTS && attention.weights !== null);
  }

  /** @param {number | null} place @returns {import("./numbers.js").Tensor | null} */
  #tensor(place) {
    if (place === null) return null;
    if (!this.#decoded.has(place)) this.#decoded.set(place, decode(this.#data.tensors[place]));
    return this.#decoded.get(place);
  }

  /** A matrix as it is shown. @param {AttentionData} attention @param {number} head */
  #matrix(attention, head) {
    const { hideSpecial, hideFirst } = this.#state;
    const usesWeights = this.#usesWeights(attention);
    const matrix = usesWeights ? this.#tensor(attention.weights).part(head) : this.#tensor(attention.influence.matrix);
    const rows = keptPlaces(this.#data.sides[attention.rows].special, hideSpecial, false);
    const columns = keptPlaces(this.#data.sides[attention.columns].special, hideSpecial, hideFirst);
    return shownMatrix(matrix, rows, columns, !usesWeights || hideSpecial || hideFirst);
  }

  /** The parts that stay: controls, and places for the rest. */
  #build() {
    const { attentions, sides, notes, remarks } = this.#data;
    const change = (what) => {
      Object.assign(this.#state, what);
      this.#show();
    };
    const controls = [checkbox("hide-first", "hide the first token as key", (hideFirst) => change({ hideFirst }))];
    if (sides.some((side) => side.special.includes(true))) {
      controls.unshift(checkbox("hide-special", "hide special tokens", (hideSpecial) => change({ hideSpecial })));
    }
    if (attentions.some((each) => each.weights !== null && each.influence)) {
      controls.unshift(choice("show", [WEIGHTS, INFLUENCE], this.#state.kind, (kind) => change({ kind })));
    }
    this.shadowRoot.replaceChildren(...outline([...notes, ...remarks].map(sentence), controls));
    this.#canvas = /** @type {HTMLCanvasElement} */ (this.#find(".large canvas"));
    this.#listen(this.#canvas);
  }

  /** @param {HTMLCanvasElement} canvas */
  #listen(canvas) {
    const under = (event) => cellAt(this.#shown, this.#frame, event.offsetX, event.offsetY);
    canvas.addEventListener("pointermove", (event) => {
      const cell = under(event);
      this.#mark(cell ? { row: cell[0], column: cell[1] } : NOTHING);
    });
    canvas.addEventListener("pointerleave", () => this.#mark(NOTHING));
    canvas.addEventListener("blur", () => this.#mark(NOTHING));
    canvas.addEventListener("click", (event) => this.#stepThrough(under(event)));
    canvas.addEventListener("keydown", (event) => {
      const { rows, columns } = this.#shown;
      const { row, column } = this.#marked;
      const place = moved(event.key, rows.indexOf(row), columns.indexOf(column));
      const within = (places, n) => places[Math.min(places.length - 1, Math.max(0, n))];
      if (place) this.#mark({ row: within(rows, place[0]), column: within(columns, place[1]) });
      else if (event.key === "Enter" || event.key === " ") this.#stepThrough(row === null ? null : [row, column]);
      else return;
      event.preventDefault();
    });
  }

  /** Everything that depends on the state. */
  #show() {
    const { head, hideSpecial, hideFirst } = this.#state;
    const attention = this.#attention;
    const usesWeights = this.#usesWeights(attention);
    const title = `${attention.name}, ${usesWeights ? `head ${head}` : "influence"}`;
    this.#cell = null;
    this.#marked = NOTHING;
    this.#shown = this.#matrix(attention, head);
    const influence = usesWeights ? null : attention.influence;
    this.#find(".said").textContent = treatment(influence, hideSpecial || hideFirst, this.#dark.matches);
    this.#find("h2").textContent = title;
    this.#find(".agreement").textContent = sentence(attention.agreement);
    this.#find(".calculation").replaceChildren();
    this.#canvas.setAttribute("aria-label", `${title}: arrow keys move from cell to cell, Enter steps through one`);
    this.#showGrid();
    this.#showText();
    this.#highlight();
  }

  #showGrid() {
    const colours = this.#colours();
    const { attentions } = this.#data;
    const counts = attentions.map((each) => (this.#usesWeights(each) ? this.#tensor(each.weights).shape[0] : 1));
    const side = thumbnailSide(Math.max(...counts));
    const rows = attentions.map((attention, n) =>
      Array.from({ length: counts[n] }, (_, head) => {
        const canvas = /** @type {HTMLCanvasElement} */ (make("canvas"));
        drawThumbnail(canvas, this.#matrix(attention, head), colours, side);
        const label = `${attention.name}, ${this.#usesWeights(attention) ? `head ${head}` : "influence"}`;
        const isShown = n === this.#state.attention && (counts[n] === 1 || head === this.#state.head);
        const texts = { "aria-label": label, title: label, "aria-pressed": String(isShown) };
        const button = make("button", { class: "thumb", type: "button", ...texts }, canvas);
        button.addEventListener("click", () => this.#select(n, this.#usesWeights(attention) ? head : this.#state.head));
        return button;
      }),
    );
    const names = attentions.map((each) => each.name.replace(/\.attention$/, ""));
    const lines = rows.map((buttons, n) => gridLine(names[n], buttons));
    const grid = this.#find(".grid");
    grid.style.setProperty("--name", `${Math.max(...names.map((name) => name.length))}ch`);
    grid.style.setProperty("--thumb", `${side}px`);
    const { scrollLeft, scrollTop } = grid;
    grid.replaceChildren(headNumbers(Math.max(...counts)), ...lines);
    grid.scrollTo(scrollLeft, scrollTop);
    arrowKeys(rows);
  }

  /** @param {number} attention @param {number} head */
  #select(attention, head) {
    const weights = this.#tensor(this.#data.attentions[attention].weights);
    Object.assign(this.#state, { attention, head: Math.min(head, (weights?.shape[0] ?? 1) - 1) });
    this.#show();
    this.#find('.thumb[aria-pressed="true"]').focus();
  }

  /** The text once; between two texts, that of the queries above that of the keys. */
  #showText() {
    const { rows, columns } = this.#attention;
    const queries = tokenButtons(this.#data.sides[rows], this.#shown.rows);
    const keys = rows === columns ? queries : tokenButtons(this.#data.sides[columns], this.#shown.columns);
    this.#tokens = { queries, keys };
    const lines =
      queries === keys
        ? [make("div", { class: "line" }, ...queries)]
        : [["queries", queries], ["keys", keys]].map(([name, buttons]) =>
            make("div", { class: "line" }, make("span", { class: "side" }, name), ...buttons),
          );
    this.#find(".text").replaceChildren(...lines, linkLayer());
    this.#markFrom(queries, (n) => ({ row: n, column: queries === keys ? n : null, isToken: true }));
    if (queries !== keys) this.#markFrom(keys, (n) => ({ row: null, column: n, isToken: true }));
  }

  /** Pointing at a token, or focusing it, marks it. */
  #markFrom(buttons, place) {
    buttons.forEach((button, n) => {
      for (const name of ["pointerenter", "focus"]) button.addEventListener(name, () => this.#mark(place(n)));
      for (const name of ["pointerleave", "blur"]) button.addEventListener(name, () => this.#mark(NOTHING));
    });
    arrowKeys([buttons]);
  }

  #mark(marked) {
    this.#marked = marked;
    this.#highlight();
  }

  /** Row, column, links and words of what is marked. */
  #highlight() {
    const { row, column, isToken } = this.#marked;
    const { queries, keys } = this.#tokens;
    const marked = { row, column, cell: this.#cell };
    const room = this.#find(".large").clientWidth;
    this.#frame = drawHeatmap(this.#canvas, this.#shown, this.#queries, this.#keys, marked, this.#colours(), room);
    for (const button of [...queries, ...keys]) button.classList.remove("query", "key");
    keys[column ?? -1]?.classList.add("key");
    queries[row ?? -1]?.classList.add("query");
    const across = queries !== keys;
    const link = (t, s, kind) => {
      return { from: queries[t], to: keys[s], weight: valueAt(this.#shown, t, s) ?? 0, kind, across };
    };
    const isCell = row !== null && !isToken;
    const takes = row === null ? [] : [...keys.keys()].map((s) => link(row, s, "takes"));
    const gives = column === null || isCell ? [] : [...queries.keys()].map((t) => link(t, column, "gives"));
    drawLinks(this.#find("svg"), [...takes, ...gives]);
    const what = this.#usesWeights(this.#attention) ? "weight" : "share of influence";
    this.#find(".readout").textContent = isCell
      ? cellInWords(this.#shown, this.#queries, this.#keys, row, column, what)
      : tokenInWords(this.#shown, this.#queries, this.#keys, row, column);
  }

  /** @param {number[] | null} cell */
  #stepThrough(cell) {
    if (!cell) return;
    this.#cell = cell;
    const title = make("h3", {}, `${named(this.#queries, cell[0])} from ${named(this.#keys, cell[1])}`);
    this.#find(".calculation").replaceChildren(title, this.#calculation(cell));
    this.#highlight();
  }

  /** @param {number[]} cell @returns {HTMLElement} */
  #calculation([t, s]) {
    const attention = this.#attention;
    if (!this.#usesWeights(attention)) {
      return stepList(influenceSteps(this.#tensor(attention.influence.matrix), t, s), format);
    }
    if (!attention.steps) return make("p", {}, "The text is too long: the page has the weights only.");
    const { scale, ...places } = attention.steps;
    const tensors = Object.fromEntries(Object.entries(places).map(([name, place]) => [name, this.#tensor(place)]));
    const weights = this.#tensor(attention.weights);
    return stepList(stepsOfCell({ ...tensors, scale }, weights, this.#state.head, t, s), format);
  }

  /** The colours of the style, for the canvas. @returns {import("./heatmap.js").Colours} */
  #colours() {
    const style = getComputedStyle(this);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    const parts = (name) => [1, 3, 5].map((n) => parseInt(read(name).slice(n, n + 2), 16));
    const [ink, faint, row, column] = ["ink", "faint", "row", "column"].map(read);
    return { low: parts("low"), high: parts("high"), ink, faint, row, column };
  }

  /** @returns {HTMLElement} */
  #find(selector) {
    return this.shadowRoot.querySelector(selector);
  }
}

customElements.define("attention-view", AttentionView);
