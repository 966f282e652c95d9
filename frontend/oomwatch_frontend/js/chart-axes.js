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

/**
 * @param {Row} row @param {number} index @param {number[]} domain
 * @param {number} [lane] how much of the row's height is left below it, for the lane of the bands
 */
export function yaxes(row, index, domain, lane = 0) {
  const common = { gridcolor: colour("grid"), zeroline: false, fixedrange: true, nticks: 5, tickformat: ",~r", ...UNMEASURED };
  const highest = highestOf(row);
  /** @type {Record<string, any>} */
  const axes = {
    [`yaxis${index === 0 ? "" : index + 1}`]: { ...common, domain, range: [-lane * highest, highest] },
  };
  if (row.rightUnit) {
    const right = {
      ...common,
      tickmode: "auto",
      tickformat: ",d",
      overlaying: yAxis(index),
      side: "right",
      rangemode: "tozero",
      showgrid: false,
    };
    axes[`yaxis${index + 101}`] = right;
  }
  return axes;
}

/** The upper end of a row's axis. @param {Row} row */
export function highestOf(row) {
  const highest = [
    ...(row.limits ?? []).map((limit) => limit.y),
    ...row.lines.filter((line) => !line.right && !isStacked(line)).flatMap((line) => numbers(line.high ?? line.y)),
    ...heights(row.lines.filter(isStacked), Math.max(0, ...row.lines.map((line) => line.y.length))),
  ].reduce((most, value) => Math.max(most, value), 0);
  return highest > 0 ? highest * 1.06 : 1;
}

/** @param {(number | null)[]} values */
const numbers = (values) => values.filter((value) => value !== null);
