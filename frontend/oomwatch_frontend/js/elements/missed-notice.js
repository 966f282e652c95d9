// What was missed while there was no connection, until somebody has read it.

import { h } from "../dom.js";
import { clockTime, duration } from "../format.js";
import { levelOf, byUrgency } from "../judge.js";
import { markIcon } from "../marks.js";
import { link } from "../router.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../wire.js").Alert} Alert */

const SHOWN = 5;

/** @param {Words} words @param {import("../missed.js").Missed} missed @param {() => void} dismiss */
export function missedNotice(words, missed, dismiss) {
  const times = { from: clockTime(words, missed.from), to: clockTime(words, missed.to), span: duration(words, missed.to - missed.from) };
  const counts = [
    missed.fired.length > 0 ? words.count("missed.fired", missed.fired.length) : "",
    missed.ended.length > 0 ? words.count("missed.ended", missed.ended.length) : "",
  ].filter((count) => count !== "");
  const sentence = words.t("missed.what", { ...times, what: counts.join(words.t("missed.and")) });
  const alerts = [...new Map([...missed.fired, ...missed.ended].map((alert) => [alert.id, alert])).values()].sort(byUrgency);
  const rest = alerts.length - SHOWN;
  const more = rest > 0 ? h("li", {}, h("a", { href: link("alerts") }, words.count("missed.more", rest))) : null;
  return h(
    "div",
    { class: "notice missed", role: "status" },
    markIcon("watch"),
    h("span", {}, sentence),
    h("button", { type: "button", "data-focus": "missed", click: dismiss }, words.t("missed.dismiss")),
    h("ul", { class: "alert-lines" }, ...alerts.slice(0, SHOWN).map((alert) => line(words, alert, missed)), ...(more === null ? [] : [more])),
  );
}

/** @param {Words} words @param {Alert} alert @param {import("../missed.js").Missed} missed */
function line(words, alert, missed) {
  const level = alert.state === "resolved" ? "ok" : levelOf(alert);
  const both = missed.fired.some(({ id }) => id === alert.id) && alert.state === "resolved";
  const became = both ? "missed.came_and_went" : alert.state === "resolved" ? "missed.has_ended" : "missed.has_fired";
  const at = alert.state === "resolved" ? alert.ended_at : alert.fired_at;
  return h(
    "li",
    {},
    markIcon(level),
    h("a", { href: link("alerts", [], { id: alert.id }) }, words.pick(alert.texts).summary),
    h("span", { class: "when" }, words.t(became, { time: at === null ? "" : clockTime(words, at) })),
  );
}
