// The lines of a chart, and the bands around them, as traces for plotly.

import { bandWords } from "./bands.js";
import { yAxis } from "./chart-axes.js";
import { fade, plotTime } from "./ink.js";
import { isStacked, stackTraces } from "./stacks.js";
import { colour } from "./theme.js";

/** @typedef {import("./charts.js").Chart} Chart */
/** @typedef {import("./charts.js").Line} Line */
/** @typedef {import("./charts.js").Row} Row */

/** @param {Chart} chart @param {number[]} x */
const abscissa = (chart, x) => (chart.axis === "time" ? x.map(plotTime) : x);

/** @param {Chart} chart */
export function traces(chart) {
  const lines = chart.rows.flatMap((row, index) => [
    ...stackTraces(row.lines.filter(isStacked), chart.x, yAxis(index)),
    ...row.lines.filter((line) => !isStacked(line)).flatMap((line) => lineTraces(chart, row, line, index)),
  ]);
  return chart.bands === undefined ? lines : [...lines, bandWords(chart.bands, chart.x, yAxis(chart.rows.length - 1))];
}

/** @param {Chart} chart @param {Row} row @param {Line} line @param {number} index @returns {Record<string, any>[]} */
function lineTraces(chart, row, line, index) {
  const x = abscissa(chart, line.x ?? chart.x);
  const ink = colour(line.colour);
  const base = {
    x,
    type: "scatter",
    xaxis: "x",
    yaxis: yAxis(index, line.right),
    connectgaps: false,
    legendgroup: line.name,
  };
  const unit = (line.right ? row.rightUnit : row.unit) ?? "";
  const main = {
    ...base,
    y: line.y,
    name: line.name,
    mode: line.points && line.y.length <= 200 ? "lines+markers" : "lines",
    line: { color: ink, width: line.thin ? 0.6 : 1.6, dash: line.dash ?? "solid" },
    marker: { color: ink, size: 4 },
    hovertemplate: `%{${line.told ? "customdata" : "y"}:,.1f} ${unit}`,
    ...(line.told ? { customdata: line.told } : {}),
  };
  if (line.low === undefined || line.high === undefined) return [main];
  const { at, x: around, y } = bandShape(x, line.low, line.high);
  const band = { ...base, x: around, y, mode: "lines", fill: "toself", ...inkOf(ink, line) };
  if (!line.thin) return [{ ...band, line: { width: 0 }, hoverinfo: "skip" }, main];
  // Each trace costs as much as a thousand points: the outline of a layer tells what pointing at it says.
  const told = at.map((index) => (index === null ? null : (line.told ?? line.y)[index]));
  return [{ ...main, ...band, customdata: told, hoveron: "points", hovertemplate: `%{customdata:,.1f} ${unit}` }];
}

/** What a band is filled with. @param {string} ink @param {Line} line */
function inkOf(ink, { solid, pattern }) {
  const fillcolor = fade(ink, solid ?? 0.2);
  if (!pattern) return { fillcolor };
  return { fillpattern: { shape: pattern, bgcolor: fillcolor, fgcolor: ink, fgopacity: 0.7, size: 7, solidity: 0.2 } };
}

/**
 * The outline of a band, one closed shape for each stretch without a gap.
 * @template T
 * @param {T[]} x @param {(number | null)[]} low @param {(number | null)[]} high
 * @returns {{ at: (number | null)[], x: (T | null)[], y: (number | null)[] }} at: which of the given points each one is
 */
export function bandShape(x, low, high) {
  /** @type {{ at: (number | null)[], x: (T | null)[], y: (number | null)[] }} */
  const shape = { at: [], x: [], y: [] };
  let start = 0;
  for (let end = 0; end <= x.length; end += 1) {
    if (end < x.length && low[end] !== null && high[end] !== null) continue;
    const there = Array.from({ length: end - start }, (_, index) => start + index);
    const back = there.toReversed();
    if (end > start) {
      shape.at.push(...there, ...back, null);
      shape.x.push(...there.map((index) => x[index]), ...back.map((index) => x[index]), null);
      shape.y.push(...there.map((index) => high[index]), ...back.map((index) => low[index]), null);
    }
    start = end + 1;
  }
  return shape;
}
