// A timeline as a table: a row for each step, a column for each line.

import { h } from "../dom.js";
import { UNKNOWN, beside, moment } from "../format.js";
import { row, table } from "../parts.js";

const ROWS_MOST = 300;

/**
 * @param {import("../i18n.js").Words} words @param {import("./step-timeline.js").Timeline} timeline
 * @param {[number, number]} range of the steps
 */
export function stepTable(words, { x, at, rows }, range) {
  const places = x.flatMap((step, index) => (step >= range[0] && step <= range[1] ? [index] : []));
  const shown = places.slice(-ROWS_MOST).reverse();
  const columns = rows.flatMap(({ row: { lines, unit, rightUnit } }) =>
    lines.map((line) => ({ line, unit: (line.right ? rightUnit : unit) ?? "" })),
  );
  const heads = [
    words.t("run.step_head"),
    words.t("run.time_head"),
    ...columns.map(({ line, unit }) => words.t("text.noted", { text: line.name, note: unit })),
  ];
  const numeric = columns.map((_, index) => index + 2);
  const body = shown.map((index) => {
    const time = at[index];
    return row(
      [
        words.integer.format(x[index]),
        time === null ? UNKNOWN : moment(words, time),
        ...columns.map(({ line, unit }) => cell(words, line, unit, index)),
      ],
      numeric,
    );
  });
  const left = places.length - shown.length;
  return h(
    "div",
    { class: "step-table" },
    h("p", { class: "muted", hidden: left === 0 }, words.t("run.table_cut", { n: shown.length, all: places.length })),
    table(words, heads, numeric, h("tbody", {}, ...body)),
  );
}

/** @param {import("../i18n.js").Words} words @param {import("../charts.js").Line} line @param {string} unit @param {number} index */
function cell(words, line, unit, index) {
  const value = line.y[index] ?? null;
  if (value === null) return UNKNOWN;
  const about = line.about?.[index] ?? null;
  const number = beside(words, value, unit);
  return about === null ? number : words.t("text.noted", { text: number, note: about });
}
