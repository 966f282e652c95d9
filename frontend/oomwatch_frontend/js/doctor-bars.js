// Bars of an estimate: one scale for all, on which each has what is expected, how sure that is, and what there is. Pure.

/** @typedef {{ low_bytes: number, expected_bytes: number, high_bytes: number, capacity_bytes: number | null }} Sizes */
/** @typedef {{ expected: number, low: number, high: number, capacity: number | null }} Shares of the scale's length, 0 to 1 */

const ROOM = 1.04; // beyond the largest, so that its end is seen

/** The length of the scale in bytes. @param {Sizes[]} rows */
export const scaleOf = (rows) => ROOM * Math.max(1, ...rows.flatMap((row) => [row.high_bytes, row.capacity_bytes ?? 0]));

/** @param {Sizes} row @param {number} scale @returns {Shares} */
export const sharesOf = ({ low_bytes, expected_bytes, high_bytes, capacity_bytes }, scale) => ({
  low: low_bytes / scale,
  expected: expected_bytes / scale,
  high: high_bytes / scale,
  capacity: capacity_bytes === null ? null : capacity_bytes / scale,
});

/** The mark of a verdict. @type {Record<import("./doctorwire.js").Verdict, import("./headline.js").Mark>} */
export const MARKS = { refused: "critical", will_not_fit: "critical", tight: "warning", fits: "ok", unknown: "watch" };
