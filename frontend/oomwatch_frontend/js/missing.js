// What a chart lacks, in words: stretches in which nothing was read.

import { clockTime, duration } from "./format.js";
import { gapsOf } from "./history.js";
import { timeZone } from "./zone.js";

const NAMED = 3; // of more gaps only their number and sum is told

/**
 * @param {import("./i18n.js").Words} words @param {import("./recorder.js").Recorder} recorder @param {[number, number]} ends
 * @returns {string} "" where nothing is missing
 */
export function gapText(words, recorder, ends) {
  const [name = ""] = recorder.series.keys();
  const pace = recorder.wishes.pace();
  // A point stands for the time up to the next one, and the newest reading is on its way for a while.
  const gaps = gapsOf(recorder.of(name), ends, Math.max(10, 3 * pace, 2.5 * Math.max(recorder.step, 2 * pace)));
  if (gaps.length === 0) return "";
  if (gaps.length === 1 && gaps[0][0] === ends[0] && gaps[0][1] === ends[1]) return words.t("missing.all");
  const missed = gaps.reduce((sum, [from, to]) => sum + to - from, 0);
  if (gaps.length > NAMED) return words.t("missing.many", { count: gaps.length, time: duration(words, missed) });
  return gaps.map((gap) => words.t("missing.gap", textsOf(words, gap))).join(" ");
}

/** @param {import("./i18n.js").Words} words @param {[number, number]} gap */
function textsOf(words, [from, to]) {
  const exact = to - from < 600; // seconds matter
  return { from: timeOf(words, from, exact), to: timeOf(words, to, exact), time: duration(words, to - from) };
}

/** @param {import("./i18n.js").Words} words @param {number} at @param {boolean} exact with the seconds */
function timeOf(words, at, exact) {
  if (!exact) return clockTime(words, at);
  return new Date(at * 1000).toLocaleTimeString(words.locale, { hourCycle: "h23", timeZone: timeZone() });
}

/** The right end of a chart that follows a forecast: a little beyond its end, but not too far. @param {number} now @param {number} end @param {number} most seconds */
export const roomFor = (now, end, most) => now + Math.min(most, Math.max(0, end - now) * 1.1);
