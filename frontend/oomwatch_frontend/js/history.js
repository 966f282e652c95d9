// What was measured before the page was opened: GET /api/v1/history and /api/v1/phases.

import { readPhases } from "./wire.js";

/**
 * @typedef {object} Series columns over time; null where nothing was read
 * @property {number[]} at Unix seconds
 * @property {(number | null)[]} min
 * @property {(number | null)[]} max
 * @property {(number | null)[]} mean
 * @property {number} readings how many readings the last point was made of, as far as is known
 * @property {number} newest time of the last reading
 */

/** @typedef {{ series: string[], node?: string, gpu?: string, run?: string, from: number, to: number }} Query */

const POINTS = 600; // where it is not known how wide the chart is

/** Whole seconds between points: never more points than pixels. @param {number} spanSeconds @param {number} [pixels] */
export const stepFor = (spanSeconds, pixels = POINTS) => Math.max(1, Math.ceil(spanSeconds / Math.max(1, pixels)));

/** @returns {Series} */
export const emptySeries = () => ({ at: [], min: [], max: [], mean: [], readings: 1, newest: -Infinity });

/**
 * Several figures of one thing, in one request.
 * @param {Query} query @param {AbortSignal} signal @param {number} [step] seconds between points
 * @returns {Promise<Series[]>} in the order in which they are asked for
 * @throws {Error} with the server's reason
 */
export async function fetchHistory(query, signal, step = stepFor(query.to - query.from)) {
  const { series, from, to, ...labels } = query;
  const search = new URLSearchParams([
    ...series.map((name) => ["series", name]),
    ...Object.entries(labels),
    ["from", String(Math.floor(from))],
    ["to", String(Math.ceil(to))],
    ["step", String(step)],
  ]);
  const response = await fetch(`api/v1/history?${search}`, { signal, headers: { accept: "application/json" } });
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Error(body?.error ?? `HTTP ${response.status}`);
  const found = series.length === 1 ? [body] : body;
  if (!Array.isArray(found) || found.length !== series.length) throw new Error("not as many series as were asked for");
  return found.map(readSeries);
}

/**
 * The phases that a run went through.
 * @param {string} run @param {number} from @param {number} to @param {AbortSignal} signal
 * @returns {Promise<import("./wire.js").PhaseSpan[]>}
 * @throws {Error} with the server's reason
 */
export async function fetchPhases(run, from, to, signal) {
  const search = new URLSearchParams({ run, from: String(from), to: String(to) });
  const response = await fetch(`api/v1/phases?${search}`, { signal, headers: { accept: "application/json" } });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return readPhases(await response.json());
}

/** @param {any} body @returns {Series} @throws {Error} columns are missing or of different lengths */
export function readSeries(body) {
  const columns = ["at", "min", "max", "mean"].map((name) => body?.[name]);
  if (!columns.every((column) => Array.isArray(column) && column.length === columns[0].length)) {
    throw new Error("at, min, max and mean are not lists of one length");
  }
  const [at, min, max, mean] = columns;
  return { at, min, max, mean, readings: 1, newest: at.at(-1) ?? -Infinity };
}

/**
 * Adds a live reading, in points as wide as those of the history: a page that stays open for a day does not choke on
 * a point a second. What is older than the window goes.
 * @param {Series} series @param {number} at @param {number | null} value @param {number} spanSeconds
 * @param {number} [step] seconds between points
 */
export function extend(series, at, value, spanSeconds, step = stepFor(spanSeconds)) {
  const last = series.at.length - 1;
  if (last >= 0 && at <= series.newest) return;
  series.newest = at;
  if (last >= 0 && Math.floor(at / step) === Math.floor(series.at[last] / step)) merge(series, last, value);
  else append(series, at, value);
  const old = series.at.findIndex((moment) => moment >= at - spanSeconds);
  if (old > 0) for (const column of [series.at, series.min, series.max, series.mean]) column.splice(0, old);
}

/** @param {Series} series @param {number} at @param {number | null} value */
function append(series, at, value) {
  series.at.push(at);
  for (const column of [series.min, series.max, series.mean]) column.push(value);
  series.readings = 1;
}

/** @param {Series} series @param {number} last @param {number | null} value */
function merge(series, last, value) {
  const { min, max, mean } = series;
  const [low, high, middle] = [min[last], max[last], mean[last]];
  if (value === null) return;
  series.readings += 1;
  if (low === null || high === null || middle === null) {
    min[last] = max[last] = mean[last] = value;
    series.readings = 1;
    return;
  }
  min[last] = Math.min(low, value);
  max[last] = Math.max(high, value);
  mean[last] = middle + (value - middle) / series.readings;
}

/**
 * Times and means, with a gap wherever nothing came for longer than so many seconds.
 * @param {Series} series @param {number} seconds @returns {{ at: number[], mean: (number | null)[] }}
 */
export function withGaps(series, seconds) {
  /** @type {{ at: number[], mean: (number | null)[] }} */
  const out = { at: [], mean: [] };
  series.at.forEach((at, index) => {
    const before = series.at[index - 1] ?? at;
    if (at - before > seconds) {
      out.at.push(before + seconds);
      out.mean.push(null);
    }
    out.at.push(at);
    out.mean.push(series.mean[index]);
  });
  return out;
}

/**
 * Stretches of at least so many seconds in which nothing was read, within a time.
 * @param {Series} series @param {[number, number]} ends Unix seconds @param {number} seconds @returns {[number, number][]}
 */
export function gapsOf(series, [from, to], seconds) {
  const read = series.at.filter((at, index) => series.mean[index] !== null && at >= from && at <= to);
  /** @type {[number, number][]} */
  const gaps = [];
  let before = from;
  for (const at of [...read, to]) {
    if (at - before > seconds) gaps.push([before, at]);
    before = at;
  }
  return gaps;
}

/** Whether readings come as steadily as a probe's, and not as log lines do. @param {Series} series @param {number} seconds the pace */
export function isSteady({ at }, seconds) {
  const steady = at.filter((moment, index) => index > 0 && moment - at[index - 1] <= seconds).length;
  return at.length > 1 && steady >= (at.length - 1) / 2;
}

/**
 * What a series said last, for each of these moments; null where that is longer ago than so many seconds.
 * @param {Series} series @param {number[]} moments in order @param {number} seconds @returns {(number | null)[]}
 */
export function heldAt(series, moments, seconds) {
  let next = 0;
  return moments.map((moment) => {
    while (next < series.at.length && series.at[next] <= moment) next += 1;
    const last = next - 1;
    return last >= 0 && moment - series.at[last] <= seconds ? series.mean[last] : null;
  });
}

/** @typedef {{ min: number, mean: number, max: number } | null} Summary null: nothing was read */

/**
 * The same as numbers to read: so many stretches of equal length, each with the least, mean and greatest of every series.
 * @param {Series[]} all @param {[number, number]} ends Unix seconds @param {number} count
 * @returns {{ at: number, cells: Summary[] }[]} the newest first
 */
export function summaries(all, [from, to], count) {
  const width = (to - from) / count;
  const tables = all.map((series) => summariesOf(series, from, width));
  const stretches = Array.from({ length: count }, (_, index) => count - 1 - index);
  return stretches.map((index) => ({
    at: from + index * width,
    cells: tables.map((table) => table.get(index) ?? null),
  }));
}

/** @param {Series} series @param {number} from @param {number} width */
function summariesOf(series, from, width) {
  /** @type {Map<number, { min: number, max: number, mean: number, points: number }>} */
  const table = new Map();
  series.at.forEach((at, point) => {
    const [min, mean, max] = [series.min[point], series.mean[point], series.max[point]];
    if (min === null || mean === null || max === null) return;
    const index = Math.floor((at - from) / width);
    const known = table.get(index) ?? { min, max, mean, points: 0 };
    const points = known.points + 1;
    table.set(index, {
      min: Math.min(known.min, min),
      max: Math.max(known.max, max),
      mean: known.mean + (mean - known.mean) / points,
      points,
    });
  });
  return table;
}

/** What was measured before, and what came since it was asked for. @param {Series} before @param {Series} live @returns {Series} */
export function joined(before, live) {
  const last = before.at[before.at.length - 1] ?? -Infinity;
  const from = live.at.findIndex((at) => at > last);
  if (from === -1) return before;
  const after = (/** @type {"at" | "min" | "max" | "mean"} */ column) => [
    ...before[column],
    ...live[column].slice(from),
  ];
  return {
    ...live,
    at: /** @type {number[]} */ (after("at")),
    min: after("min"),
    max: after("max"),
    mean: after("mean"),
  };
}
