// Silences as values: what to begin with, when they end, how they are written. Pure.

/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {import("./wire.js").Matcher} Matcher */
/** @typedef {import("./wire.js").Silence} Silence */
/** @typedef {"30m" | "2h" | "8h" | "tomorrow" | "own"} Choice */
/** @typedef {{ used: boolean, matcher: Matcher }} Offer a matcher as the form begins with it */

export const LABELS = ["alert", "severity", "node", "gpu", "run"];
export const OPERATORS = /** @type {const} */ (["=", "!=", "=~", "!~"]);
export const CHOICES = /** @type {readonly Choice[]} */ (["30m", "2h", "8h", "tomorrow", "own"]);

const SECONDS = { "30m": 1800, "2h": 7200, "8h": 28800 };
const MORNING_HOUR = 9;

/** @param {Alert} alert @returns {Record<string, string>} all that matchers see of it */
const labelsOf = ({ labels, alert, severity }) => ({ ...labels, alert, severity });

/**
 * What a silence of these alerts begins with: what they have in common, each of which can be left out. The severity is
 * offered unticked: whoever hides a warning seldom means to be woken by its twin.
 * @param {Alert[]} alerts @returns {Offer[]}
 */
export function offersFor(alerts) {
  const all = alerts.map(labelsOf);
  return LABELS.flatMap((label) => {
    const values = new Set(all.map((labels) => labels[label]));
    const [value] = values;
    if (values.size !== 1 || value === undefined) return [];
    return [{ used: label !== "severity", matcher: { label, op: /** @type {const} */ ("="), value } }];
  });
}

/** As people write it in a terminal and in alerts.yaml. @param {Matcher} matcher */
export function matcherText({ label, op, value }) {
  return `${label}${op}"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}

/**
 * @param {Choice} choice @param {number} now Unix seconds @param {number | null} own what was given for "own"
 * @returns {number | null} Unix seconds; null while nothing that can be read was given
 */
export function endOf(choice, now, own) {
  if (choice === "own") return own;
  if (choice === "tomorrow") return tomorrowMorning(now);
  return now + SECONDS[choice];
}

/** The next day's 09:00 where the reader is. @param {number} now Unix seconds */
function tomorrowMorning(now) {
  const at = new Date(now * 1000);
  at.setDate(at.getDate() + 1);
  at.setHours(MORNING_HOUR, 0, 0, 0);
  return at.getTime() / 1000;
}

/** Which open alerts a silence holds back now. @param {Iterable<Alert>} alerts @param {string} id @returns {Alert[]} */
export const heldBy = (alerts, id) =>
  [...alerts].filter(
    ({ state, muted }) => state !== "resolved" && muted.some((mute) => mute.kind === "silence" && mute.by === id),
  );
