// What a chart shows, as numbers in a table: for whoever cannot see it, and to copy.

import { Part, h } from "../dom.js";
import { UNKNOWN, moment } from "../format.js";
import { summaries } from "../history.js";
import { row, table } from "../parts.js";
import { noteInAddress, parseRoute } from "../router.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../history.js").Series} Series */

const ROWS = 30;
const REDRAW_SECONDS = 10; // a table that moves cannot be read

/** @typedef {{ name: string, series: Series, text: (value: number) => string }} Column */

export class ChartTable {
  /** @param {Words} words */
  constructor(words) {
    this.words = words;
    this.part = new Part("div");
    /** @type {() => { columns: Column[], ends: [number, number], stretch: string }} */
    this.ask = () => ({ columns: [], ends: [0, 0], stretch: "" });
    const toggle = () => {
      noteInAddress({ view: this.element.open ? "table" : "" });
      this.draw(this.ask);
    };
    const open = parseRoute(location.hash).query.view === "table";
    this.element = h("details", { class: "chart-table", open, toggle }, h("summary", {}, words.t("chart.table")), this.part.element);
  }

  /** @param {() => { columns: Column[], ends: [number, number], stretch: string }} ask what to show; asked only while it is open */
  draw(ask) {
    this.ask = ask;
    if (!this.element.open) return;
    const { columns, ends, stretch } = ask();
    const shown = [stretch, columns.map(({ name }) => name), Math.floor(ends[1] / REDRAW_SECONDS)];
    this.part.draw(shown, () => this.#table(columns, ends));
  }

  /** @param {Column[]} columns @param {[number, number]} ends */
  #table(columns, ends) {
    const { words } = this;
    const numeric = columns.map((_, index) => index + 1);
    const rows = summaries(columns.map(({ series }) => series), ends, ROWS).map(({ at, cells }) =>
      row([moment(words, at), ...cells.map((cell, index) => told(words, cell, columns[index].text))], numeric),
    );
    const heads = [words.t("chart.from"), ...columns.map(({ name }) => name)];
    return [h("p", { class: "hint" }, words.t("chart.table_hint")), table(words, heads, numeric, h("tbody", {}, ...rows))];
  }
}

/** @param {Words} words @param {import("../history.js").Summary} cell @param {(value: number) => string} text */
function told(words, cell, text) {
  if (cell === null) return UNKNOWN;
  const [min, mean, max] = [cell.min, cell.mean, cell.max].map(text);
  return min === max ? mean : words.t("text.noted", { text: mean, note: `${min} – ${max}` });
}
