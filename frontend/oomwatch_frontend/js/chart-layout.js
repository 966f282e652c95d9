// How a chart is laid out, for plotly: where its rows are, and what surrounds them.

import { LANE_GAP_PX, LANE_PX } from "./bands.js";
import { xaxis, yAxis, yaxes } from "./chart-axes.js";
import { escapeMarkup, plotTime } from "./ink.js";
import { colour, smallPx } from "./theme.js";

/** @typedef {import("./charts.js").Chart} Chart */

export const LEFT_PX = 44;
const BARE_PX = 8; // above and below a chart without a title or an axis
const TOP_PX = 26; // room for a row's title above it
const BOTTOM_PX = 44;
const BOTTOM_WIDE_PX = 51; // where text is larger
const BETWEEN_PX = 34;

/** Room for the marks of the axis and its title. */
const bottom = () => (smallPx() > 12 ? BOTTOM_WIDE_PX : BOTTOM_PX);

/** What is left below the last row, px. @param {Chart["bands"]} bands */
const laneOf = (bands) => (bands === undefined ? 0 : LANE_PX + LANE_GAP_PX);

/** How high a chart is, px. @param {Chart} chart */
export function heightOf({ rows, rowHeight, bands, bare, xTitle }) {
  const inner = rows.length * rowHeight + (rows.length - 1) * BETWEEN_PX + laneOf(bands);
  const top = bare === undefined ? TOP_PX : BARE_PX;
  const below = bare === undefined ? (xTitle === "" ? bottom() / 2 : bottom()) : bare.axis ? bottom() : BARE_PX;
  return { top, inner, below, whole: top + inner + below };
}

/** Where its rows are, and the lane below them. @param {Chart} chart @returns {import("./bands.js").Frame} */
export function frameOf(chart) {
  const { top, inner } = heightOf(chart);
  return { left: LEFT_PX, right: rightMargin(chart), top, height: inner };
}

/** Where each row begins, px. @param {Chart} chart */
export function topsOf(chart) {
  const { top } = heightOf(chart);
  return chart.rows.map((_, index) => top + index * (chart.rowHeight + BETWEEN_PX));
}

/** @param {Chart} chart */
export function layout(chart) {
  const { bare } = chart;
  const { top, inner, below, whole: height } = heightOf(chart);
  const right = rightMargin(chart);
  /** @type {Record<string, any>} */
  const out = {
    height,
    margin: { l: LEFT_PX, r: right, t: top, b: below },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: colour("font"), size: smallPx(), color: colour("muted") },
    ...(bare === undefined ? { hovermode: "x unified", hoversubplots: "axis" } : { hovermode: false }),
    hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("line"), font: { color: colour("text"), size: smallPx() } },
    showlegend: false,
    dragmode: bare !== undefined && matchMedia("(pointer: coarse)").matches ? false : "zoom", // a finger scrolls
    uirevision: chart.stretch ?? "kept", // a zoom survives new readings
    xaxis: xaxis(chart, right >= LEFT_PX),
    annotations: flagLabels(chart),
    /** @type {object[]} */
    shapes: flagLines(chart),
  };
  const tops = topsOf(chart);
  chart.rows.forEach((row, index) => {
    const above = tops[index] - top;
    const height = chart.rowHeight + (index === chart.rows.length - 1 ? laneOf(chart.bands) : 0);
    const domain = [Math.max(0, 1 - (above + height) / inner), 1 - above / inner];
    Object.assign(out, yaxes(row, index, domain, height / chart.rowHeight - 1));
    out.shapes.push(...limitLines(row, index));
  });
  return out;
}

/** Room for the names of limits, or for a second axis. @param {Chart} chart */
function rightMargin({ rows, bare }) {
  if (bare !== undefined) return bare.right;
  if (rows.some((row) => row.limits?.length)) return 8 * smallPx();
  return rows.some((row) => row.rightUnit) ? 52 : 12;
}

/** @param {import("./charts.js").Row} row @param {number} index */
function limitLines({ limits = [] }, index) {
  return limits.map(({ y, colour: name }) => {
    const line = { color: colour(name), width: 1.2, dash: "dash" };
    return { type: "line", xref: "paper", x0: 0, x1: 1, yref: yAxis(index), y0: y, y1: y, line };
  });
}

/** A line across all rows for each flag. @param {Chart} chart */
function flagLines({ axis, flags = [] }) {
  return flags.map((flag) => {
    const x = axis === "time" ? plotTime(flag.x) : flag.x;
    const line = { color: colour(flag.colour), width: 1.2, dash: "dot" };
    return { type: "line", layer: "below", xref: "x", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line };
  });
}

/** @param {Chart} chart */
function flagLabels({ axis, flags = [] }) {
  return flags.map((flag) => ({
    x: axis === "time" ? plotTime(flag.x) : flag.x,
    yref: "paper",
    ...(flag.top ? { y: 1, yanchor: "top", xanchor: "right" } : { y: 0, yanchor: "bottom", yshift: -2 }),
    showarrow: false,
    text: flag.top ? escapeMarkup(flag.glyph) : flag.glyph,
    font: { size: smallPx() + 1, color: colour(`${flag.colour}-text`) || colour(flag.colour) },
    hovertext: escapeMarkup(flag.label),
  }));
}
