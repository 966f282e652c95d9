// What was measured before the page was opened: GET /api/v1/history.

/**
 * @typedef {object} Series columns over time; null where nothing was read
 * @property {number[]} at Unix seconds
 * @property {(number | null)[]} min
 * @property {(number | null)[]} max
 * @property {(number | null)[]} mean
 */

/** @typedef {{ series: string, node?: string, gpu?: string, run?: string, from: number, to: number }} Query */

const POINTS = 600; // about one a pixel or two; more is not seen

/** Whole seconds between points. @param {number} spanSeconds */
export const stepFor = (spanSeconds) => Math.max(1, Math.ceil(spanSeconds / POINTS));

/** @returns {Series} */
export const emptySeries = () => ({ at: [], min: [], max: [], mean: [] });

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

/** @param {any} body @returns {Series} @throws {Error} columns are missing or of different lengths */
export function readSeries(body) {
  const columns = ["at", "min", "max", "mean"].map((name) => body?.[name]);
  if (!columns.every((column) => Array.isArray(column) && column.length === columns[0].length)) {
    throw new Error("at, min, max and mean are not lists of one length");
  }
  const [at, min, max, mean] = columns;
  return { at, min, max, mean };
}

/**
 * Adds a live reading and lets go of what is older than the window.
 * @param {Series} series @param {number} at @param {number | null} value @param {number} spanSeconds
 */
export function extend(series, at, value, spanSeconds) {
  if (series.at.length > 0 && at <= series.at[series.at.length - 1]) return;
  series.at.push(at);
  series.min.push(value);
  series.max.push(value);
  series.mean.push(value);
  const old = series.at.findIndex((moment) => moment >= at - spanSeconds);
  if (old > 0) for (const column of Object.values(series)) column.splice(0, old);
}
