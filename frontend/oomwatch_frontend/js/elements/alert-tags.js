// The small signs behind an alert's sentence: what holds it, who has it, since when.

import { h } from "../dom.js";
import { isAcknowledged } from "../groups.js";
import { markIcon, signIcon } from "../marks.js";
import { aged } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../groups.js").Group} Group */
/** @typedef {import("../dom.js").Child} Child */

/** @param {Words} words @param {Group} group @returns {Child[]} */
export function groupTags(words, group) {
  const { alerts } = group;
  const [worst] = alerts;
  if (alerts.length === 1) return alertTags(words, worst);
  const open = alerts.filter((alert) => alert.state !== "resolved");
  const stale = open.filter((alert) => alert.stale).length;
  return [
    ...(alerts.some((alert) => alert.simulated) ? [demo(words)] : []),
    ...(stale > 0 ? [staleTag(words, words.t("group.stale", { n: stale, of: alerts.length }))] : []),
    ...(open.length > 0 ? [groupAcknowledged(words, group)] : []),
    ...(group.standing === "muted" ? [mutedTag(words)] : []),
    moved(words, group.standing === "ended", startAndEnd(alerts)),
  ];
}

/** @param {Alert[]} alerts */
function startAndEnd(alerts) {
  const started_at = Math.min(...alerts.map((alert) => alert.started_at));
  return { started_at, ended_at: Math.max(...alerts.map((alert) => alert.ended_at ?? started_at)) };
}

/** @param {Words} words @param {Group} group @returns {Child} */
function groupAcknowledged(words, group) {
  const { alerts } = group;
  const taken = alerts.filter((alert) => alert.acknowledged !== null);
  if (taken.length === 0) return null;
  const names = [...new Set(taken.map((alert) => alert.acknowledged?.by ?? ""))].join(words.t("text.and"));
  if (isAcknowledged(group)) return acknowledgedTag(words.t("ack.tag", { by: names }));
  return acknowledgedTag(words.t("ack.some", { n: taken.length, of: alerts.length }));
}

/** @param {Words} words @param {Alert} alert @returns {Child[]} */
export function alertTags(words, alert) {
  const ended = alert.state === "resolved";
  const { acknowledged } = alert;
  return [
    ...(alert.simulated ? [demo(words)] : []),
    ...(alert.stale && !ended ? [staleTag(words, words.t("alerts.stale"))] : []),
    ...(alert.state === "pending" ? [h("span", { class: "tag" }, words.t("alerts.pending"))] : []),
    ...(acknowledged !== null && !ended ? [acknowledgedTag(words.t("ack.tag", { by: acknowledged.by }))] : []),
    ...(alert.muted.length > 0 && !ended ? [mutedTag(words)] : []),
    moved(words, ended, alert),
  ];
}

/** @param {Words} words */
const demo = (words) => h("span", { class: "demo" }, words.t("demo.badge"));

/** @param {Words} words @param {string} text */
const staleTag = (words, text) =>
  h("span", { class: "tag", title: words.t("alerts.stale_why") }, markIcon("stale"), text);

/** @param {string} text */
const acknowledgedTag = (text) => h("span", { class: "tag" }, signIcon("acknowledged"), text);

/** @param {Words} words */
const mutedTag = (words) => h("span", { class: "tag" }, signIcon("muted"), words.t("mute.tag"));

/** @param {Words} words @param {boolean} ended @param {{ started_at: number, ended_at: number | null }} times @returns {Child} */
function moved(words, ended, { started_at, ended_at }) {
  if (!ended) return aged(words, "alerts.since", started_at);
  return ended_at === null ? null : aged(words, "alerts.ended_ago", ended_at);
}
