// Taking care of alerts: one by one, or in one request where a group is exactly what some labels say.

import { ApiError, ask, each } from "./api.js";
import { matcherText, offersFor } from "./silencing.js";
import { readAcknowledged } from "./wire.js";

/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {import("./wire.js").Matcher} Matcher */
/** @typedef {{ by: string, note: string | null }} Word */

/** @param {string} id */
const pathOf = (id) => `alerts/${encodeURIComponent(id)}/acknowledge`;

/** @param {string[]} ids */
export const takeBack = (ids) => each(ids, (id) => ask("DELETE", pathOf(id)));

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
  const matchers = ids.length === 1 ? null : matchersOf(all, meant);
  if (matchers === null) return each(ids, (id) => ask("POST", pathOf(id), word));
  try {
    const answer = await ask("POST", "alerts/acknowledge", { match: matchers.map(matcherText), ...word });
    return { done: readAcknowledged(answer), errors: [] };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { done: [], errors: [error] };
  }
}
