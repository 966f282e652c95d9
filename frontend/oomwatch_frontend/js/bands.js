// Stretches of time that have a name, in a chart: a lane below its last row, and a tint behind that row. They are elements
// of the page that lie behind plotly's: each shape of its own costs it half a millisecond whenever anything is drawn.

import { h, setText } from "./dom.js";
import { plotTime } from "./ink.js";
import { PATTERN_CLASS } from "./parts.js";

/**
 * @typedef {object} Band
 * @property {number} from Unix seconds
 * @property {number} to
 * @property {string} label
 * @property {string} about what hovering says
 * @property {string} colour name of a colour of the style sheet
 * @property {string} pattern as plotly names it; "" is none
 */

/** @typedef {{ left: number, right: number, top: number, height: number }} Frame px from the edges of a chart */

export const LANE_PX = 18; // these two as in the style sheet
export const LANE_GAP_PX = 6;

/** The bands of one chart, which goes on moving below them. */
export class BandLayer {
  constructor() {
    this.element = h("div", { class: "bands", "aria-hidden": "true" });
    /** @type {Band[]} */
    this.bands = [];
  }

  /** @param {Band[]} bands @param {[number, number]} range Unix seconds @param {Frame} frame */
  draw(bands, range, frame) {
    const { style } = this.element;
    for (const side of /** @type {const} */ (["left", "right", "top", "height"])) style[side] = `${frame[side]}px`;
    while (this.element.childElementCount > bands.length) this.element.lastElementChild?.remove();
    while (this.element.childElementCount < bands.length) this.element.append(blank());
    this.bands = bands;
    this.place(range);
  }

  /** Between other ends. @param {[number, number]} range Unix seconds */
  place([from, to]) {
    const span = to - from;
    const pixels = this.element.clientWidth / span;
    const elements = /** @type {HTMLElement[]} */ ([...this.element.children]);
    this.bands.forEach((band, index) => {
      const { style } = elements[index];
      style.left = `${(100 * (band.from - from)) / span}%`;
      style.width = `${(100 * (band.to - band.from)) / span}%`;
      look(elements[index], band, pixels * (band.to - band.from));
    });
  }
}

/** A band that is yet to be painted. */
const blank = () => h("div", { class: "stretch" }, h("i"), h("span"));

/** @param {HTMLElement} element @param {Band} band @param {number} pixels how wide it is */
function look(element, { colour, pattern, label }, pixels) {
  const [lane, name] = /** @type {HTMLCollectionOf<HTMLElement>} */ (element.children);
  const kind = `swatch phase ${PATTERN_CLASS[pattern] ?? ""}`;
  const ink = `var(--${colour})`;
  if (lane.className !== kind) lane.className = kind;
  if (element.style.getPropertyValue("--ink") !== ink) element.style.setProperty("--ink", ink);
  setText(name, pixels > textPixels(label) + 10 ? label : "");
}

/** About how wide a text of 11 px is: a letter 6 px, a Chinese character 11. @param {string} text */
const textPixels = (text) => [...text].reduce((sum, letter) => sum + (letter > "\u2e80" ? 11 : 6), 0);

/**
 * For plotly: an unseen line that says on hovering which band is there.
 * @param {Band[]} bands @param {number[]} x where there are readings, and so where one can point @param {string} yaxis
 */
export function bandWords(bands, x, yaxis) {
  const text = x.map((at) => bands.find(({ from, to }) => from <= at && at < to)?.about ?? null);
  return {
    type: "scatter",
    xaxis: "x",
    yaxis,
    x: x.map(plotTime),
    y: text.map((about) => (about === null ? null : 0)),
    text,
    mode: "lines", // one path; a mark would be an element for each point
    line: { width: 0 },
    hovertemplate: "%{text}<extra></extra>",
  };
}
