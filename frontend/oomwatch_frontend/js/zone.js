// In which zone times are written: this browser's own, or UTC, as logs often are.

/** @typedef {"local" | "utc"} Zone */

/** @type {Zone} */
let current = "local";

/** @param {Zone} zone */
export function setZone(zone) {
  current = zone;
}

export const isUtc = () => current === "utc";

/** For Intl; undefined is the browser's own. */
export const timeZone = () => (isUtc() ? "UTC" : undefined);

/** How far the zone is ahead of UTC at a moment, milliseconds. @param {Date} date */
export const aheadMs = (date) => (isUtc() ? 0 : -date.getTimezoneOffset() * 60_000);
