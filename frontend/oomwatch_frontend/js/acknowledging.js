// Taking care of alerts: one by one, or in one request where a group is exactly what some labels say.

import { ApiError, ask, each } from "./api.js";
import { matcherText, offersFor } from "./silencing.js";
import { readAcknowledged } from "./wire.js";

/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {import("./wire.js").Matcher} Matcher */
/** @typedef {{ by: string, note: string | null }} Word */

/** @param {string} id */
const pathOf = (id) => `alerts/${encodeURIComponent(id)}/acknowledge`;

/** Nobody takes care of these any more, in one request. @param {string[]} ids @returns {Promise<{ done: string[], errors: ApiError[] }>} */
export const takeBack = (ids) => answered(ask("POST", "alerts/unacknowledge", { ids }));

/**
 * What says of exactly these alerts, among all that fire, that they are meant; null: nothing does.
 * @param {Iterable<Alert>} all @param {Alert[]} meant @returns {Matcher[] | null}
 */
export function matchersOf(all, meant) {
  const matchers = offersFor(meant).map(({ matcher }) => matcher);
  const ids = new Set(meant.map((alert) => alert.id));
  const met = [...all].filter(
    (alert) => alert.state === "firing" && matchers.every((matcher) => meets(alert, matcher)),
  );
  return met.length === ids.size && met.every((alert) => ids.has(alert.id)) ? matchers : null;
}

/** @param {Alert} alert @param {Matcher} matcher one that compares for equality */
function meets({ alert, severity, labels }, { label, value }) {
  const own = label === "alert" ? alert : label === "severity" ? severity : (labels[label] ?? "");
  return own === value;
}

/**
 * @param {Iterable<Alert>} all @param {Alert[]} meant @param {Word} word
 * @returns {Promise<{ done: string[], errors: ApiError[] }>} the ids of those that somebody takes care of now
 */
export async function acknowledge(all, meant, word) {
  const ids = meant.map((alert) => alert.id);
  if (ids.length === 1) return each(ids, (id) => ask("POST", pathOf(id), word));
  const matchers = matchersOf(all, meant);
  const which = matchers === null ? { ids } : { match: matchers.map(matcherText) };
  const { done, errors } = await answered(ask("POST", "alerts/acknowledge", { ...which, ...word }));
  const left = errors.length > 0 ? 0 : ids.filter((id) => !done.includes(id)).length;
  return { done, errors: left > 0 ? [new ApiError(409, "")] : errors }; // what ended meanwhile
}

/** @param {Promise<unknown>} answer which holds ids @returns {Promise<{ done: string[], errors: ApiError[] }>} */
async function answered(answer) {
  try {
    return { done: readAcknowledged(await answer), errors: [] };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { done: [], errors: [error] };
  }
}
