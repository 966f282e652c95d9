// What waiting costs, in sentences: time, steps, and the work that is lost.

import { h } from "../dom.js";
import { clockTime, duration, isDue, timeAndSteps } from "../format.js";
import { prose } from "../parts.js";
import { costOfWaiting, isOver } from "../waiting.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Alert} Alert */

const MEMORY = ["usable_bytes", "limit_bytes"]; // facts of alerts that are about what can be full

/** @param {App} app @param {Alert} alert @returns {string[]} none where waiting costs nothing that is known */
export function waitingLines({ words, store }, alert) {
  if (alert.state === "resolved" || isOver(alert)) return [];
  const { full, lost, slowerSeconds } = costOfWaiting(store, alert);
  /** @type {string[]} */
  const lines = [];
  if (full !== null) lines.push(fullLine(words, full, store.now()));
  else if (alert.state === "firing" && MEMORY.some((name) => name in alert.facts)) lines.push(words.t("waiting.unknown"));
  if (lost !== null) lines.push(lostLine(words, lost));
  if (slowerSeconds !== null) lines.push(words.t("waiting.slower", { time: duration(words, slowerSeconds) }));
  return lines;
}

/** @param {import("../i18n.js").Words} words @param {import("../foreseen.js").Foreseen} full @param {number} now */
function fullLine(words, { thing, seconds, steps }, now) {
  if (isDue(seconds, steps)) return words.t(`waiting.full_now_${thing}`);
  const time = timeAndSteps(words, seconds, steps);
  if (seconds === null) return words.t(`waiting.full_${thing}`, { time });
  return words.t(`waiting.full_${thing}_at`, { time, clock: clockTime(words, now + seconds) });
}

/** @param {import("../i18n.js").Words} words @param {import("../waiting.js").Lost} lost */
function lostLine(words, { steps, seconds, every }) {
  if (steps === 0) return words.count("waiting.lost_none", every);
  const work = timeAndSteps(words, seconds, steps);
  return words.t(every < 1 ? "waiting.lost_all" : "waiting.lost", { work, every });
}

/** @param {App} app @param {string[]} lines @returns {import("../dom.js").Child[]} */
export function waiting({ words }, lines) {
  if (lines.length === 0) return [];
  return [h("h3", {}, words.t("waiting.title")), ...lines.map((line) => h("p", {}, prose(words, line)))];
}
