// Where the peaks of a run lead to, as its open alerts foretell it, in steps. Pure.

/** @typedef {import("./wire.js").Alert} Alert */

/**
 * @typedef {object} Fan from now to the card's end
 * @property {Alert} alert which says so
 * @property {string | null} phase whose peaks they are
 * @property {string} place "node:gpu"
 * @property {number} level bytes now
 * @property {number} full bytes
 * @property {number} steps until it is full, expected
 * @property {number} low steps, at the earliest
 * @property {number | null} high steps, at the latest; null: there is no upper end
 */

const AHEAD_STEPS_MAX = 200; // as far as the server looks
const BEYOND = 1.5; // times the expected time: so far a fan without an end is drawn

/** @param {unknown} value @returns {number | null} */
const amount = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);

/** Of the open alerts that foretell steps, the one that is full first. @param {Iterable<Alert>} alerts @returns {Fan | null} */
export function fanOf(alerts) {
  const found = [...alerts].flatMap((alert) => readFan(alert) ?? []);
  return found.sort((a, b) => a.steps - b.steps)[0] ?? null;
}

/** @param {Alert} alert @returns {Fan | null} */
function readFan(alert) {
  const { facts, labels } = alert;
  const [steps, level, full] = [facts.eta_steps, facts.level_bytes, facts.usable_bytes].map(amount);
  if (alert.state !== "firing" || alert.stale || labels.gpu === undefined) return null;
  if (steps === null || level === null || full === null || steps <= 0) return null;
  const [seconds, early, late] = [facts.eta_seconds, facts.eta_low_seconds, facts.eta_high_seconds].map(amount);
  const inSteps = (/** @type {number | null} */ time) => (time === null || !seconds ? null : (time / seconds) * steps);
  return {
    alert,
    phase: typeof facts.phase === "string" ? facts.phase : null,
    place: `${labels.node}:${labels.gpu}`,
    level,
    full,
    steps,
    low: Math.min(steps, inSteps(early) ?? steps),
    high: inSteps(late),
  };
}

/** How many steps it reaches over. @param {Fan} fan */
const reach = ({ steps, high }) => Math.min(AHEAD_STEPS_MAX, Math.max(1, Math.ceil(high ?? BEYOND * steps)));

/** The steps that it reaches over, after the last one. @param {Fan} fan @param {number} last */
export const stepsAhead = (fan, last) => Array.from({ length: reach(fan) }, (_, index) => last + index + 1);

/**
 * The expected line, and the fan between the earliest and the latest. Without a latest time its lower edge stays level.
 * @param {Fan} fan @param {number[]} x steps @param {number} last the step that it begins with
 * @returns {{ y: (number | null)[], low: (number | null)[], high: (number | null)[] }} bytes
 */
export function linesOf(fan, x, last) {
  const { level, full, steps, low, high } = fan;
  const far = last + reach(fan);
  const rise = (/** @type {number | null} */ until) =>
    x.map((step) => {
      if (step < last || step > far) return null;
      if (until === null) return level;
      return until <= 0 ? full : level + (full - level) * Math.min(1, (step - last) / until);
    });
  return { y: rise(steps), low: rise(high), high: rise(low) };
}
