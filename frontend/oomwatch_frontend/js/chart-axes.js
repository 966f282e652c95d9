// The axes of a chart, for plotly: how they are marked, and how far they reach.

import { localStamp } from "./ink.js";
import { heights, isStacked } from "./stacks.js";
import { colour, smallPx } from "./theme.js";

/** @typedef {import("./charts.js").Chart} Chart */
/** @typedef {import("./charts.js").Row} Row */

/** @param {number} row from 0 @param {boolean} [right] */
export const yAxis = (row, right = false) => `y${right ? row + 101 : row === 0 ? "" : row + 1}`;

/** Whether the marks of the axis may be less than a minute apart. @param {Chart} chart */
const isShort = ({ range }) => range !== undefined && range[1] - range[0] < 600;

const FEW_STEPS = 10;

/** Whether the axis would else be marked between whole steps. @param {Chart} chart */
const isFew = ({ range }) => range !== undefined && range[1] - range[0] <= FEW_STEPS;

const DAY = 86_400; // seconds

/** How times are written along the axis and on pointing: as exact as can be seen, with the day over several. @param {Chart} chart */
function timeFormats(chart) {
  const span = chart.range === undefined ? 0 : chart.range[1] - chart.range[0];
  if (span > 3 * DAY) return { tickformat: "%m-%d", hoverformat: "%m-%d %H:%M" };
  if (span > DAY / 2) return { tickformat: "%m-%d %H:%M", hoverformat: "%m-%d %H:%M" };
  return { tickformat: isShort(chart) ? "%H:%M:%S" : "%H:%M", hoverformat: "%H:%M:%S" };
}

/** Labels of an axis that fit wherever they are: plotly would measure each, a tenth of what a redraw takes. */
const UNMEASURED = { ticklabeloverflow: "allow" };

/** @param {Chart} chart @param {boolean} isRoomy there is room for half a label beyond either end */
export function xaxis(chart, isRoomy) {
  return {
    anchor: yAxis(chart.rows.length - 1),
    type: chart.axis === "time" ? "date" : "linear",
    ...(chart.axis === "time"
      ? timeFormats(chart)
      : { hoverformat: ",d", tickformat: ",d", ...(isFew(chart) ? { dtick: 1 } : {}) }),
    ...(chart.ticks === undefined ? {} : { tickvals: chart.ticks.map(({ x }) => x), ticktext: chart.ticks.map(({ text }) => text) }),
    ...(chart.bare === undefined ? {} : { showticklabels: chart.bare.axis }),
    title: { text: chart.xTitle, font: { size: smallPx() }, standoff: 8 },
    ...(chart.range ? { range: chart.range.map((edge) => (chart.axis === "time" ? localStamp(edge) : edge)) } : {}),
    gridcolor: colour("grid"),
    linecolor: colour("line"),
    zeroline: false,
    showspikes: true,
    spikemode: "across",
    spikethickness: 1,
    spikedash: "solid",
    spikecolor: colour("muted"),
    fixedrange: false,
    ...(isRoomy ? UNMEASURED : {}),
  };
}

const MARKS = 5; // along an axis at most, but for 0

/**
 * @param {Row} row @param {number} index @param {number[]} domain
 * @param {number} [lane] how much of the row's height is left below it, for the lane of the bands
 */
export function yaxes(row, index, domain, lane = 0) {
  const common = { gridcolor: colour("grid"), zeroline: false, fixedrange: true, nticks: MARKS, tickformat: ",~r", ...UNMEASURED };
  const highest = highestOf(row);
  const own = { ...common, domain, range: [-lane * highest, highest] };
  const name = `yaxis${index === 0 ? "" : index + 1}`;
  if (!row.rightUnit) return { [name]: own };
  const { dtick, right } = pairOf(highest, highestOn(row, true));
  return {
    [name]: { ...own, tick0: 0, dtick },
    [`yaxis${index + 101}`]: {
      ...common,
      tick0: 0,
      dtick: right.dtick,
      range: [-lane * right.highest, right.highest],
      overlaying: yAxis(index),
      side: "right",
      showgrid: false,
    },
  };
}

/**
 * Marks of two axes at the same heights: one grid is read from both sides.
 * @param {number} highest @param {number} other the upper ends of what they show
 * @returns {{ dtick: number, right: { dtick: number, highest: number } }} how far its marks are apart, and where the second one ends
 */
export function pairOf(highest, other) {
  const dtick = roundUp(highest / MARKS);
  const marks = highest / dtick;
  const apart = roundUp(other / marks);
  return { dtick, right: { dtick: apart, highest: apart * marks } };
}

/** The next number that people count in: 1, 2, 2.5 or 5 times a power of ten. @param {number} least above 0 */
function roundUp(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 2.5, 5].map((factor) => factor * power).find((step) => step >= least * (1 - 1e-9)) ?? 10 * power;
}

/** The upper end of a row's axis. @param {Row} row */
export const highestOf = (row) => highestOn(row, false);

/** @param {Row} row @param {boolean} right of its second axis */
function highestOn(row, right) {
  const highest = [
    ...(right ? [] : (row.limits ?? []).map((limit) => limit.y)),
    ...row.lines.filter((line) => (line.right ?? false) === right && !isStacked(line)).flatMap((line) => numbers(line.high ?? line.y)),
    ...(right ? [] : heights(row.lines.filter(isStacked), Math.max(0, ...row.lines.map((line) => line.y.length)))),
  ].reduce((most, value) => Math.max(most, value), 0);
  return highest > 0 ? highest * 1.06 : 1;
}

/** @param {(number | null)[]} values */
const numbers = (values) => values.filter((value) => value !== null);
