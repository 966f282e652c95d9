// When a memory will be full, as an open alert foretells it: which alert, and how to draw it. Pure.

/** @typedef {import("./wire.js").Alert} Alert */

/**
 * @typedef {object} Forecast
 * @property {string} key the same as long as the alert says the same
 * @property {import("./wire.js").Severity} severity
 * @property {number} eta seconds until full, expected
 * @property {number} low seconds, at the earliest
 * @property {number | null} high seconds, at the latest; null: there is no upper end
 * @property {number | null} steps until full
 * @property {number} level bytes of the peaks now
 * @property {number} full bytes at which it is full
 */

/** @param {unknown} value @returns {number | null} */
const amount = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);

/**
 * What an open alert foretells. Of several the gravest, and of these the soonest.
 * @param {Iterable<Alert>} alerts @param {(alert: Alert) => boolean} isHere @returns {Forecast | null}
 */
export function forecastOf(alerts, isHere) {
  const found = [...alerts]
    .filter((alert) => alert.state !== "resolved" && !alert.stale && isHere(alert))
    .flatMap((alert) => readForecast(alert) ?? []);
  const rank = (/** @type {Forecast} */ one) => ["critical", "warning", "info"].indexOf(one.severity);
  return found.sort((a, b) => rank(a) - rank(b) || a.eta - b.eta)[0] ?? null;
}

/** @param {Alert} alert @returns {Forecast | null} null: it foretells no time, or not of how much */
function readForecast({ id, severity, facts }) {
  const eta = amount(facts.eta_seconds);
  const level = amount(facts.level_bytes) ?? amount(facts.used_bytes);
  const whole = amount(facts.usable_bytes) ?? amount(facts.limit_bytes); // of a device, or of a host
  if (eta === null || level === null || whole === null) return null;
  const full = whole * (amount(facts.until_ratio) ?? 1); // Ray ends workers before a host is full
  const [low, high, steps] = [facts.eta_low_seconds, facts.eta_high_seconds, facts.eta_steps].map(amount);
  return { key: `${id} ${eta} ${level}`, severity, eta, low: Math.min(eta, low ?? eta), high, steps, level, full };
}

/**
 * The expected line from now to full, and the fan between the earliest and the latest. Without a latest time the lower
 * edge stays level.
 * @param {Forecast} forecast @param {number} at when that was said, Unix seconds
 * @returns {{ x: number[], y: number[], low: number[], high: number[] }} bytes
 */
export function fanOf({ eta, low, high, level, full }, at) {
  const rise = (/** @type {number} */ seconds, /** @type {number} */ until) =>
    until <= 0 ? full : level + (full - level) * Math.min(1, seconds / until);
  const corners = [...new Set([0, low, eta, high ?? eta])].filter((seconds) => seconds >= 0).sort((a, b) => a - b);
  return {
    x: corners.map((seconds) => at + seconds),
    y: corners.map((seconds) => rise(seconds, eta)),
    low: corners.map((seconds) => (high === null ? level : rise(seconds, high))),
    high: corners.map((seconds) => rise(seconds, low)),
  };
}
