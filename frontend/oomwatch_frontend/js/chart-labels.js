// The titles of a chart's rows and the names of its limits: elements of the page, for they stay where they are, and plotly
// would draw and measure each again whenever anything is drawn.

import { highestOf } from "./chart-axes.js";
import { Part, h } from "./dom.js";
import { smallPx } from "./theme.js";

/** @typedef {import("./charts.js").Chart} Chart */
/** @typedef {import("./charts.js").Row} Row */
/** @typedef {import("./bands.js").Frame} Frame */
/** @typedef {{ kind: "title" | "beside" | "above", top: number, text: string, colour: string }} Label top: px */

/** The labels of one chart. */
export class LabelLayer {
  constructor() {
    this.part = new Part("div", { class: "chart-labels" });
    this.element = this.part.element;
  }

  /** @param {Chart} chart @param {Frame} frame @param {number[]} tops of its rows, px below its own */
  draw(chart, { left, right }, tops) {
    const labels = chart.rows.flatMap((row, index) => labelsOf(row, tops[index], chart));
    this.part.draw([left, right, labels], () => {
      Object.assign(this.element.style, { left: `${left}px`, right: `${right}px` });
      this.element.classList.toggle("behind", chart.bare === undefined); // of what pointing at the chart says
      return labels.map(drawn);
    });
  }
}

/** @param {Label} label */
function drawn({ kind, top, text, colour }) {
  const element = h("div", { class: kind }, text);
  element.style.top = `${top}px`;
  element.style.color = `var(--${colour}-text, var(--${colour}))`;
  return element;
}

/** @param {Row} row @param {number} top px @param {Chart} chart @returns {Label[]} */
function labelsOf(row, top, { rowHeight, bare }) {
  const perPixel = highestOf(row) / rowHeight;
  /** @type {Label[]} */
  const labels = bare === undefined ? [{ kind: "title", top, text: row.title, colour: "text" }] : [];
  const bottom = top + rowHeight;
  let least = -Infinity;
  const apart = smallPx() + 1; // nearer together the names of limits could not be read
  for (const { y, label, colour } of [...(row.limits ?? [])].sort((a, b) => a.y - b.y)) {
    const pixel = Math.max(y / perPixel, least);
    least = pixel + apart;
    labels.push({ kind: bare === undefined ? "beside" : "above", top: bottom - pixel, text: label, colour });
  }
  return labels;
}
