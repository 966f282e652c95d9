// Numbers as people read them, as backend/oomwatch/figures.py writes them (tests/rules/figures.json): memory in GiB with one decimal, shares without decimals, units always shown.
// What is not known is a dash, never 0. Spaces before units do not break.

import { isUtc, timeZone } from "./zone.js";

/** @typedef {import("./i18n.js").Words} Words */

export const GIB = 2 ** 30;
export const MIB = 2 ** 20;
export const UNKNOWN = "–";

/** @param {Words} words @param {number | null} bytes @returns {string} "78.1", for where the unit stands beside it */
export function gibNumber(words, bytes) {
  return bytes === null ? UNKNOWN : words.decimal1.format(bytes / GIB);
}

/** @param {Words} words @param {number | null} bytes @returns {string} "78.1 GiB" */
export function gib(words, bytes) {
  return bytes === null ? UNKNOWN : `${gibNumber(words, bytes)}\u00a0GiB`;
}

/** @param {Words} words @param {number | null} used @param {number | null} whole @returns {string} "78.1 / 79.2 GiB" */
export function gibOf(words, used, whole) {
  return `${gibNumber(words, used)} / ${gibNumber(words, whole)}\u00a0GiB`;
}

/** Sums over a fleet: in TiB where GiB would be too long to read. @param {Words} words @param {number} used @param {number} whole */
export function memoryOf(words, used, whole) {
  if (whole < 10 * 1024 * GIB) return gibOf(words, used, whole);
  return gibOf(words, used / 1024, whole / 1024).replace("GiB", "TiB");
}

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];
const SIZE_BELOW = 999.95; // of a unit; what would be rounded to 1,000 is told in the next one

/** Bytes in the unit that suits them, as of files; memory is always told in GiB. @param {Words} words @param {number | null} bytes @returns {string} "3.4 MiB" */
export function size(words, bytes) {
  if (bytes === null) return UNKNOWN;
  let [value, step] = [bytes, 0];
  for (; Math.abs(value) >= SIZE_BELOW && step < SIZES.length - 1; step += 1) value /= 1024;
  return `${(step === 0 ? words.integer : words.decimal1).format(value)}\u00a0${SIZES[step]}`;
}

/**
 * A share without decimals; the last one before full with one, so that 100 means full.
 * @param {Words} words @param {number | null} ratio @returns {string} "98 %"
 */
export function percent(words, ratio) {
  if (ratio === null) return UNKNOWN;
  const share = ratio * 100;
  if (share >= 99 && share < 100) return `${words.decimal1.format(Math.floor(share * 10) / 10)}\u00a0%`;
  return `${words.integer.format(share)}\u00a0%`;
}

/** A share of time, as whole percent. @param {Words} words @param {number | null} ratio @returns {string} "99 %" */
export function wholePercent(words, ratio) {
  return ratio === null ? UNKNOWN : `${words.integer.format(ratio * 100)}\u00a0%`;
}

const DURATIONS = /** @type {const} */ ([
  ["figure.days", 86400],
  ["figure.hours", 3600],
  ["figure.minutes", 60],
  ["figure.seconds", 1],
]);

const SECONDS_READ_BELOW_MINUTES = 10;

/**
 * How long something lasts: two units at most, tenths below ten seconds.
 * @param {Words} words @param {number | null} seconds
 * @returns {string} "0.4 s", "12 s", "1 min 40 s", "14 min", "3 h 20 min", "2 d 4 h"
 */
export function duration(words, seconds) {
  if (seconds === null) return UNKNOWN;
  if (seconds > 0 && seconds < 9.95) return words.t("figure.seconds", { count: tenths(words, seconds) });
  return inUnits(words, seconds, SECONDS_READ_BELOW_MINUTES);
}

/**
 * How long a stretch up to now is, as it is said after "the last": a single day in hours.
 * @param {Words} words @param {number} seconds @returns {string} "24 h", "7 d"
 */
export function stretch(words, seconds) {
  const isOneDay = Math.floor(Math.round(seconds) / 86400) === 1;
  return isOneDay ? inUnits(words, seconds, SECONDS_READ_BELOW_MINUTES, DURATIONS.slice(1)) : duration(words, seconds);
}

/** @param {Words} words @param {number} value "1.9", "2" */
const tenths = (words, value) => words.decimal1.format(value).replace(/\.0$/, "");

/** @param {Words} words @param {number} seconds @param {number} whole from so many minutes on without seconds @param {readonly (typeof DURATIONS[number])[]} [durations] the units */
function inUnits(words, seconds, whole, durations = DURATIONS) {
  let rest = Math.max(0, Math.round(seconds));
  const found = durations.findIndex(([, size]) => rest >= size);
  /** @type {string[]} */
  const parts = [];
  for (const [key, size] of found === -1 ? durations.slice(-1) : durations.slice(found, found + 2)) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0 || parts.length === 0) parts.push(words.t(key, { count }));
    if (key === "figure.minutes" && count >= whole) break;
  }
  return parts.join(" ");
}

/**
 * The time of a step or a part of it: in seconds, to compare one step with the next.
 * @param {Words} words @param {number | null} seconds @returns {string} "165 s"
 */
export function stepSeconds(words, seconds) {
  if (seconds === null || seconds < 9.95 || seconds >= 600) return duration(words, seconds);
  return words.t("figure.seconds", { count: Math.round(seconds) });
}

/**
 * A number where its unit stands beside it, or above it: seconds as those of steps, a count as it is counted, others
 * with one decimal. @param {Words} words @param {number} value @param {string} unit "s", "GiB", "%", or what is counted
 */
export function beside(words, value, unit) {
  if (unit === "GiB" || unit === "TiB" || unit === "%") return words.decimal1.format(value);
  return unit === "s" && Math.abs(value) < 9.95 ? tenths(words, value) : unit === "s" ? words.integer.format(value) : plain(words, value);
}

/** A number without a unit; below a hundred three digits count. @param {Words} words @param {number} value "12,345", "51.3" */
function plain(words, value) {
  return (Number.isInteger(value) || Math.abs(value) >= 100 ? words.integer : words.digits3).format(value);
}

/** Nearer than this a forecast has come due, as in backend/oomwatch/figures.py. */
const DUE_SECONDS = 10;

/** Whether what is foretold is to be expected at once. @param {number | null} seconds @param {number | null} steps */
export function isDue(seconds, steps) {
  return seconds === null ? steps !== null && Math.round(steps) < 1 : seconds < DUE_SECONDS;
}

/**
 * How long until something, in time and steps; that it is no whole step is not told where the time is; one of them where the other is not known.
 * @param {Words} words @param {number | null} seconds @param {number | null} steps @returns {string} "14 min (6 steps)"
 */
export function timeAndSteps(words, seconds, steps) {
  const inSteps = steps === null ? null : words.count("figure.steps", Math.round(steps));
  if (seconds === null) return inSteps ?? duration(words, seconds);
  if (inSteps === null || Math.round(steps ?? 0) < 1) return duration(words, seconds);
  return words.t("figure.time_and_steps", { time: duration(words, seconds), steps: inSteps });
}

/**
 * How old something is, in whole units: without the seconds of minutes, for it is drawn anew while it grows.
 * @param {Words} words @param {number} seconds @returns {string} "12 s", "1 min"
 */
export function age(words, seconds) {
  return inUnits(words, Math.floor(seconds), 1);
}

/** How old something is, roughly: in one unit. @param {Words} words @param {number} seconds @returns {string} "3 h" */
export function roughAge(words, seconds) {
  const unit = seconds >= 86400 ? 86400 : seconds >= 3600 ? 3600 : 1;
  return age(words, Math.floor(seconds / unit) * unit);
}

/** @param {Words} words @param {number} unixSeconds @returns {string} date and time with the zone, for hovering */
export function moment(words, unixSeconds) {
  return new Date(unixSeconds * 1000).toLocaleString(words.locale, {
    dateStyle: "medium",
    timeStyle: "long",
    hour12: false,
    timeZone: timeZone(),
  });
}

/** Keeps a number and its unit on one line, in sentences that came as they are. @param {string} text */
export const unbroken = (text) => text.replace(/(\d) (?=(?:%|[KMGT]iB|min|[smhd]|°C)(?!\w)|分钟|小时|[秒天步])/g, "$1\u00a0");

/**
 * When something will be: the time of day, with the date where that is not today, and the zone where it is not the reader's.
 * @param {Words} words @param {number} unixSeconds @param {number} [now] Unix seconds @param {boolean} [exact] with seconds
 * @returns {string} "14:30", "30 Nov, 09:00"
 */
export function clockTime(words, unixSeconds, now = Date.now() / 1000, exact = false) {
  const at = new Date(unixSeconds * 1000);
  const zone = timeZone();
  const day = (/** @type {Date} */ one) => one.toLocaleDateString("en", { timeZone: zone });
  const today = day(at) === day(new Date(now * 1000));
  /** @type {Intl.DateTimeFormatOptions} */
  const time = { hour: "2-digit", minute: "2-digit", ...(exact ? { second: "2-digit" } : {}), hourCycle: "h23", timeZone: zone };
  const said = at.toLocaleString(words.locale, today ? time : { day: "numeric", month: "short", ...time });
  return isUtc() ? `${said}\u00a0UTC` : said;
}

/**
 * A number of an alert in its unit ("ratio", "bytes", "seconds", "per_minute", "count").
 * @param {Words} words @param {number | null} value @param {string | null} unit @returns {string}
 */
export function quantity(words, value, unit) {
  if (value === null) return UNKNOWN;
  if (unit === "ratio") return percent(words, value);
  if (unit === "bytes") return gib(words, value);
  if (unit === "seconds") return duration(words, value);
  if (unit === "celsius") return `${words.integer.format(value)}\u00a0°C`;
  return unit === "per_minute" ? words.t("figure.per_minute", { value: plain(words, value) }) : plain(words, value);
}
