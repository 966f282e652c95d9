// Where an axis of wall time is marked, and how the marks are written: at whole minutes, hours and days of the reader's zone.
// Pure but for the zone.

import { aheadMs, isUtc, timeZone } from "./zone.js";

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800]; // seconds
const DAY = 86_400;

/**
 * @param {[number, number]} ends Unix seconds @param {number} most marks at most
 * @returns {{ at: number, step: number }[]}
 */
export function ticks([from, to], most) {
  const step = STEPS.find((size) => (to - from) / size <= most) ?? Math.ceil((to - from) / most / DAY) * DAY;
  const ahead = aheadMs(new Date(from * 1000)) / 1000; // midnight of the zone is a mark, not that of UTC
  const first = Math.ceil((from + ahead) / step) * step - ahead;
  const count = Math.max(0, Math.floor((to - first) / step) + 1);
  return Array.from({ length: count }, (_, index) => ({ at: first + index * step, step }));
}

/** @param {import("./i18n.js").Words} words @param {{ at: number, step: number }} tick @returns {string} "14:30", "30 Nov" at midnight */
export function tickText(words, { at, step }) {
  const date = new Date(at * 1000);
  const isMidnight = (at + aheadMs(date) / 1000) % DAY === 0;
  /** @type {Intl.DateTimeFormatOptions} */
  const day = { day: "numeric", month: "short" };
  /** @type {Intl.DateTimeFormatOptions} */
  const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(step < 60 ? { second: "2-digit" } : {}) };
  return date.toLocaleString(words.locale, { ...(isMidnight ? day : time), timeZone: timeZone() });
}

/** The zone that the marks are of. */
export const zoneName = () => (isUtc() ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone);
