// The only file that draws with plotly.
// For charts over time that a person may zoom: Chart.zoomed, Chart.stretch; for stacks: Line.solid, pattern, thin, told, Row.named.

import { LANE_AXIS, LANE_GAP_PX, LANE_PX, bandLabels, bandTraces } from "./bands.js";
import { escapeMarkup, fade, fromStamp, localStamp, plotTime } from "./ink.js";
import { loadPlotly } from "./plotly.js";
import { heights, stackTraces } from "./stacks.js";
import { colour } from "./theme.js";

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {(number | null)[]} y
 * @property {number[]} [x] where it differs from the row's
 * @property {(number | null)[]} [low] with `high`: a band behind the line
 * @property {(number | null)[]} [high]
 * @property {string} colour name of a colour of the style sheet
 * @property {"solid" | "dot" | "dash"} [dash]
 * @property {boolean} [points] marks at the points, for few of them
 * @property {boolean} [right] against the axis on the right
 * @property {string} [right_title]
 * @property {number} [solid] how much of its colour the band has, instead of a faint one
 * @property {boolean} [thin] no line along its y: the band tells
 * @property {string} [pattern] of the band or the bar, as plotly names it; "" is none
 * @property {(number | null)[]} [told] what pointing at it says, where that is not y: the height of a layer of a stack
 * @property {boolean} [stack] a bar, upon those of the lines before it that are bars too
 * @property {(string | null)[]} [about] what belongs to each value, for whoever tells it (plotly does not)
 * @property {boolean} [peak] of several values the highest counts where there is room for one only
 */

/**
 * @typedef {object} Row one plot of a stack that shares its x
 * @property {string} title
 * @property {string} unit
 * @property {Line[]} lines
 * @property {{ y: number, label: string, colour: string }[]} [limits]
 * @property {string} [rightUnit]
 * @property {boolean} [named] the names of its lines stand beside the chart, and not above the row
 */

/**
 * @typedef {object} Chart
 * @property {"time" | "step"} axis
 * @property {number[]} x Unix seconds or steps
 * @property {string} xTitle
 * @property {[number, number]} [range]
 * @property {Row[]} rows
 * @property {number} rowHeight px
 * @property {{ x: number, label: string, glyph: string, colour: string, top?: boolean }[]} [flags] alerts, across all rows; `top` names a line at its upper end
 * @property {import("./bands.js").Band[]} [bands] stretches of time that have a name, oldest first
 * @property {(from: number, to: number) => void} [zoomed] a person dragged across a stretch of x; whoever draws shows it
 * @property {string} [stretch] with `zoomed`: names what `range` shows, and where it changes, `range` is in force again
 * @property {{ right: number, axis: boolean }} [bare] the page itself draws titles, legend and cursor: plotly only the
 *   lines, `right` px from the edge, and the axis below where there is one
 * @property {{ x: number, text: string }[]} [ticks] what stands below, in place of plotly's own choice
 */

const REDRAW_MS = 500;

/** A chart in an element. draw() may be called as often as readings come; it is drawn at most twice a second. */
export class ChartView {
  /** @param {HTMLElement} element @param {(error: Error) => void} failed plotly could not be loaded @param {HTMLElement} [frame] busy until all there is has been drawn */
  constructor(element, failed, frame) {
    this.element = element;
    this.failed = failed;
    this.frame = frame;
    this.isLoading = false; // of `next`: more of it is on its way
    void loadPlotly().catch(() => undefined); // while what is to be drawn is on its way; draw() says what went wrong
    /** @type {Chart | null} */
    this.next = null;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.timer = null;
    this.drawnAt = -Infinity;
    this.closed = false;
    this.listens = false;
    this.held = false; // a button is down in it: to draw now would end the drag
    element.addEventListener("pointerdown", () => {
      this.held = true;
      addEventListener("pointerup", () => this.#letGo(), { once: true });
      addEventListener("pointercancel", () => this.#letGo(), { once: true });
    });
  }

  #letGo() {
    this.held = false;
    if (this.next !== null && !this.closed) this.draw(this.next, this.isLoading);
  }

  /** @param {Chart} chart @param {boolean} [isLoading] more of it is on its way */
  draw(chart, isLoading = false) {
    this.next = chart;
    this.isLoading = isLoading;
    if (isLoading) this.frame?.setAttribute("aria-busy", "true");
    this.element.style.minHeight = `${heightOf(chart).whole}px`; // nothing below it moves when it is there
    this.timer ??= setTimeout(() => this.#draw(), Math.max(0, this.drawnAt + REDRAW_MS - performance.now()));
  }

  async #draw() {
    try {
      const plotly = await loadPlotly();
      const { next: chart, isLoading } = this;
      if (this.closed || chart === null) return;
      if (this.held) return void (this.timer = null); // letting go draws it
      if (document.hidden)
        return void document.addEventListener("visibilitychange", () => this.#draw(), { once: true });
      this.drawnAt = performance.now();
      this.timer = null;
      const settings = { displayModeBar: false, responsive: true, doubleClick: chart.zoomed ? false : "reset+autosize" };
      await plotly.react(this.element, traces(chart), layout(chart, this.element.clientWidth), settings);
      if (!this.listens && chart.zoomed) this.#listen();
      this.frame?.setAttribute("aria-busy", String(isLoading));
    } catch (error) {
      this.timer = null;
      this.frame?.setAttribute("aria-busy", "false");
      this.failed(/** @type {Error} */ (error));
    }
  }

  #listen() {
    this.listens = true;
    const plot = /** @type {any} */ (this.element);
    plot.on("plotly_relayout", (/** @type {Record<string, unknown>} */ change) => {
      const ends = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (ends.some((end) => end === undefined)) return;
      const [from, to] = ends.map((end) => (this.next?.axis === "time" ? fromStamp(String(end)) : Number(end)));
      this.next?.zoomed?.(from, to);
    });
  }

  close() {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    void loadPlotly().then((plotly) => plotly.purge(this.element)).catch(() => undefined);
  }
}

/** @param {Chart} chart @param {number[]} x */
const abscissa = (chart, x) => (chart.axis === "time" ? x.map(plotTime) : x);

/** @param {number} row from 0 @param {boolean} [right] */
const yAxis = (row, right = false) => `y${right ? row + 101 : row === 0 ? "" : row + 1}`;

/** @param {Chart} chart */
function traces(chart) {
  const lines = chart.rows.flatMap((row, index) => [
    ...stackTraces(row.lines.filter(isStacked), chart.x, yAxis(index)),
    ...row.lines.filter((line) => !isStacked(line)).flatMap((line) => lineTraces(chart, row, line, index)),
  ]);
  return chart.bands === undefined ? lines : [...lines, ...bandTraces(chart.bands, chart.x, highestOf(chart.rows[0]))];
}

/** @param {Line} line */
const isStacked = (line) => line.stack === true;

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

export const LEFT_PX = 44;
const BARE_PX = 8; // above and below a chart without a title or an axis
const TOP_PX = 26; // room for a row's title above it
const BOTTOM_PX = 44;
const BETWEEN_PX = 34;

/** How high a chart is, px. @param {Chart} chart */
function heightOf({ rows, rowHeight, bands, bare, xTitle }) {
  const lane = bands === undefined ? 0 : LANE_PX + LANE_GAP_PX;
  const inner = rows.length * rowHeight + (rows.length - 1) * BETWEEN_PX + lane;
  const top = bare === undefined ? TOP_PX : BARE_PX;
  const below = bare === undefined ? (xTitle === "" ? BOTTOM_PX / 2 : BOTTOM_PX) : bare.axis ? BOTTOM_PX : BARE_PX;
  return { top, inner, below, whole: top + inner + below };
}

/** @param {Chart} chart @param {number} width px */
function layout(chart, width) {
  const { bare } = chart;
  const { top, inner, below, whole: height } = heightOf(chart);
  const right = rightMargin(chart);
  /** @type {Record<string, any>} */
  const out = {
    height,
    margin: { l: LEFT_PX, r: right, t: top, b: below },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: colour("font"), size: 12, color: colour("muted") },
    ...(bare === undefined ? { hovermode: "x unified", hoversubplots: "axis" } : { hovermode: false }),
    hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("line"), font: { color: colour("text"), size: 12 } },
    showlegend: false,
    dragmode: bare !== undefined && matchMedia("(pointer: coarse)").matches ? false : "zoom", // a finger scrolls
    uirevision: chart.stretch ?? "kept", // a zoom survives new readings
    xaxis: xaxis(chart),
    annotations: [],
    shapes: [],
  };
  chart.rows.forEach((row, index) => {
    const bottom = inner - (index + 1) * chart.rowHeight - index * BETWEEN_PX;
    const domain = [Math.max(0, bottom / inner), Math.min(1, (bottom + chart.rowHeight) / inner)];
    Object.assign(out, yaxes(row, index, domain));
    if (bare === undefined) out.annotations.push(...titles(row, domain[1]));
    out.annotations.push(...limitLabels(row, index, chart.rowHeight, bare !== undefined));
    out.shapes.push(...limitLines(row, index));
  });
  if (chart.bands !== undefined) {
    const bare = { showgrid: false, zeroline: false, showticklabels: false, fixedrange: true };
    out[`yaxis${LANE_AXIS}`] = { ...bare, domain: [0, LANE_PX / inner], range: [0, 1] };
    const pixels = width - LEFT_PX - right;
    out.annotations.push(...bandLabels(chart.bands, chart.range ?? [0, 0], pixels));
  }
  for (const flag of chart.flags ?? []) {
    const x = chart.axis === "time" ? plotTime(flag.x) : flag.x;
    const line = { color: colour(flag.colour), width: 1.2, dash: "dot" };
    out.shapes.push({ type: "line", layer: "below", xref: "x", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line });
    out.annotations.push({
      x,
      yref: "paper",
      ...(flag.top ? { y: 1, yanchor: "top", xanchor: "right" } : { y: 0, yanchor: "bottom", yshift: -2 }),
      showarrow: false,
      text: flag.top ? escapeMarkup(flag.glyph) : flag.glyph,
      font: { size: 13, color: colour(`${flag.colour}-text`) || colour(flag.colour) },
      hovertext: escapeMarkup(flag.label),
    });
  }
  return out;
}

/** Room for the names of limits, or for a second axis. @param {Chart} chart */
function rightMargin({ rows, bare }) {
  if (bare !== undefined) return bare.right;
  if (rows.some((row) => row.limits?.length)) return 96;
  return rows.some((row) => row.rightUnit) ? 52 : 12;
}

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

/** @param {Chart} chart */
function xaxis(chart) {
  const lowest = chart.bands === undefined ? yAxis(chart.rows.length - 1) : `y${LANE_AXIS}`;
  return {
    anchor: lowest,
    type: chart.axis === "time" ? "date" : "linear",
    ...(chart.axis === "time"
      ? timeFormats(chart)
      : { hoverformat: ",d", tickformat: ",d", ...(isFew(chart) ? { dtick: 1 } : {}) }),
    ...(chart.ticks === undefined ? {} : { tickvals: chart.ticks.map(({ x }) => x), ticktext: chart.ticks.map(({ text }) => text) }),
    ...(chart.bare === undefined ? {} : { showticklabels: chart.bare.axis }),
    title: { text: chart.xTitle, font: { size: 12 }, standoff: 8 },
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
    ...(rightMargin(chart) < LEFT_PX ? {} : UNMEASURED), // there is room for half a label beyond either end
  };
}

/** @param {Row} row @param {number} index @param {number[]} domain */
function yaxes(row, index, domain) {
  const common = { gridcolor: colour("grid"), zeroline: false, fixedrange: true, nticks: 5, tickformat: ",~r", ...UNMEASURED };
  /** @type {Record<string, any>} */
  const axes = {
    [`yaxis${index === 0 ? "" : index + 1}`]: { ...common, domain, range: [0, highestOf(row)] },
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
function highestOf(row) {
  const highest = [
    ...(row.limits ?? []).map((limit) => limit.y),
    ...row.lines.filter((line) => !line.right && !isStacked(line)).flatMap((line) => numbers(line.high ?? line.y)),
    ...heights(row.lines.filter(isStacked), Math.max(0, ...row.lines.map((line) => line.y.length))),
  ].reduce((most, value) => Math.max(most, value), 0);
  return highest > 0 ? highest * 1.06 : 1;
}

/** @param {(number | null)[]} values */
const numbers = (values) => values.filter((value) => value !== null);

/** The row's title, and the names of its lines in their colours: a legend where it is needed. @param {Row} row @param {number} top */
function titles(row, top) {
  const base = { xref: "paper", yref: "paper", y: top, yanchor: "bottom", showarrow: false, yshift: 4 };
  const title = {
    ...base,
    x: 0,
    xanchor: "left",
    text: `<b>${escapeMarkup(row.title)}</b>`,
    font: { color: colour("text"), size: 13 },
  };
  const names = row.lines.map(
    (line) =>
      `<span style="color:${colour(line.colour)}">━ ${escapeMarkup(line.right ? `${line.name} (${row.rightUnit})` : line.name)}</span>`,
  );
  const legend = { ...base, x: 1, xanchor: "right", text: names.join("   "), font: { size: 12 } };
  return row.lines.length > 1 && !row.named ? [title, legend] : [title];
}

/** @param {Row} row @param {number} index */
function limitLines(row, index) {
  return (row.limits ?? []).map(({ y, colour: name }) => ({
    type: "line",
    xref: "paper",
    x0: 0,
    x1: 1,
    yref: yAxis(index),
    y0: y,
    y1: y,
    line: { color: colour(name), width: 1.2, dash: "dash" },
  }));
}

const LABEL_PX = 13; // of the name of a limit: nearer together they could not be read

/**
 * @param {Row} row @param {number} index @param {number} height of the row in px
 * @param {boolean} inside above the line, where the margin is too small
 */
function limitLabels(row, index, height, inside) {
  const place = inside ? { xanchor: "right", yanchor: "bottom" } : { xanchor: "left", xshift: 6, yanchor: "middle" };
  const perPixel = highestOf(row) / height;
  let least = -Infinity;
  const rising = [...(row.limits ?? [])].sort((a, b) => a.y - b.y);
  return rising.map(({ y, label, colour: name }) => {
    const pixel = Math.max(y / perPixel, least);
    least = pixel + LABEL_PX;
    return {
      xref: "paper",
      x: 1,
      ...place,
      yref: yAxis(index),
      y,
      yshift: pixel - y / perPixel,
      showarrow: false,
      text: escapeMarkup(label),
      font: { size: 11, color: colour(`${name}-text`) || colour(name) },
    };
  });
}
