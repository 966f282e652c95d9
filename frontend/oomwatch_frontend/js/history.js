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

/** @typedef {{ series: string, node?: string, gpu?: string, run?: string, from: number, to: number }} Query */

const POINTS = 600; // about one a pixel or two; more is not seen

/** Whole seconds between points. @param {number} spanSeconds */
export const stepFor = (spanSeconds) => Math.max(1, Math.ceil(spanSeconds / POINTS));

/** @returns {Series} */
export const emptySeries = () => ({ at: [], min: [], max: [], mean: [], readings: 1, newest: -Infinity });

/**
 * @param {Query} query @param {AbortSignal} signal @returns {Promise<Series>}
 * @throws {Error} with the server's reason
 */
export async function fetchHistory(query, signal) {
  const { from, to, ...labels } = query;
  const search = new URLSearchParams({
    ...labels,
    from: String(Math.floor(from)),
    to: String(Math.ceil(to)),
    step: String(stepFor(to - from)),
  });
  const response = await fetch(`api/v1/history?${search}`, { signal, headers: { accept: "application/json" } });
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Error(body?.error ?? `HTTP ${response.status}`);
  return readSeries(body);
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
 */
export function extend(series, at, value, spanSeconds) {
  const last = series.at.length - 1;
  if (last >= 0 && at <= series.newest) return;
  series.newest = at;
  const step = stepFor(spanSeconds);
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
