// Links between tokens of a text, drawn over it.

const SVG = "http://www.w3.org/2000/svg";
const FAINTEST = 0.03; // opacity below which a link is left out

/**
 * @typedef {object} Link
 * @property {Element} from   the token that takes
 * @property {Element} to     the token that gives
 * @property {number} weight  0 to 1; its square root is the opacity
 * @property {"takes" | "gives"} kind  drawn over the line of text, or under it
 * @property {boolean} across  between two texts, that of `from` above that of `to`
 */

/** An empty drawing to lie over the text. @returns {SVGElement} */
export function linkLayer() {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("aria-hidden", "true");
  return svg;
}

/**
 * @param {SVGElement} svg  lies over the text
 * @param {Link[]} links
 */
export function drawLinks(svg, links) {
  const origin = svg.getBoundingClientRect();
  svg.replaceChildren();
  for (const link of links) {
    const opacity = Math.sqrt(Math.max(0, link.weight));
    if (opacity < FAINTEST) continue;
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", curve(link, origin));
    path.setAttribute("class", link.kind);
    path.setAttribute("stroke-opacity", opacity.toFixed(4));
    path.setAttribute("stroke-width", (1 + 2.5 * opacity).toFixed(2));
    path.dataset.weight = String(link.weight);
    svg.append(path);
  }
}

/** An arc on one side of the text; a wave between two texts. @param {Link} link @param {DOMRect} origin */
function curve({ from, to, kind, across }, origin) {
  const [start, end] = [from.getBoundingClientRect(), to.getBoundingClientRect()];
  const above = kind === "takes" && !across;
  const x1 = start.left + start.width / 2 - origin.left;
  const x2 = end.left + end.width / 2 - origin.left;
  const y1 = (above ? start.top : start.bottom) - origin.top;
  const y2 = (above || across ? end.top : end.bottom) - origin.top;
  if (across) return `M ${x1} ${y1} C ${x1} ${(y1 + y2) / 2}, ${x2} ${(y1 + y2) / 2}, ${x2} ${y2}`;
  const height = Math.min(26, 8 + Math.abs(x2 - x1) * 0.08) * (above ? -1 : 1);
  if (from === to) {
    return `M ${x1 - 4} ${y1} C ${x1 - 9} ${y1 + 2 * height}, ${x1 + 9} ${y1 + 2 * height}, ${x1 + 4} ${y1}`;
  }
  return `M ${x1} ${y1} C ${x1} ${y1 + height}, ${x2} ${y2 + height}, ${x2} ${y2}`;
}
