// Why an alert is what it is, and what to change: causes with what speaks for them, and remedies with a line to copy.

import { h } from "../dom.js";
import { copyButton, prose } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../wire.js").Cause} Cause */
/** @typedef {import("../wire.js").Remedy} Remedy */

/** The most likely cause with its evidence, then the others by their names. @param {Words} words @param {Cause[]} causes */
export function why(words, causes) {
  const [first, ...others] = causes;
  if (first === undefined) return [];
  const seen = first.evidence.map((one) => h("li", {}, prose(words, words.said(one.texts, one.key))));
  const rest = others.map((one) => words.said(one.texts, one.cause)).join(words.t("alerts.cause_and"));
  return [
    h("h3", {}, words.t("alerts.causes")),
    h("p", { class: "cause" }, words.said(first.texts, first.cause)),
    seen.length === 0 ? null : h("ul", { class: "evidence" }, ...seen),
    rest === "" ? null : h("p", { class: "detail" }, words.t("alerts.other_causes", { causes: rest })),
  ];
}

/** What was worked out for this run, and beneath it what the rule says to everybody. @param {Words} words @param {Remedy[]} remedies @param {string[]} advice */
export function changes(words, remedies, advice) {
  if (remedies.length + advice.length === 0) return [];
  const general = advice.map((line) => h("li", {}, prose(words, line)));
  if (remedies.length === 0) return [h("h3", {}, words.t("alerts.advice")), h("ol", {}, ...general)];
  return [
    ...listed(words, "alerts.advice", remedies.filter((one) => !one.limits_damage)),
    ...listed(words, "alerts.limits_damage", remedies.filter((one) => one.limits_damage)),
    general.length === 0
      ? null
      : h(
          "details",
          { class: "general" },
          h("summary", { class: "detail" }, words.t("alerts.general_advice")),
          h("ul", {}, ...general),
        ),
  ];
}

/** @param {Words} words @param {string} heading @param {Remedy[]} remedies */
const listed = (words, heading, remedies) =>
  remedies.length === 0
    ? []
    : [h("h3", {}, words.t(heading)), h("ol", {}, ...remedies.map((one) => remedy(words, one)))];

/** @param {Words} words @param {Remedy} one */
function remedy(words, one) {
  return h(
    "li",
    { class: "remedy" },
    h("span", {}, words.said(one.texts, one.remedy).replaceAll(" -> ", " → ")), // else a line may end within the arrow
    one.override === null
      ? null
      : h("p", { class: "override" }, h("code", {}, one.override), copyButton(words, one.override)),
    h(
      "p",
      { class: "detail", title: one.source === null ? null : words.t("alerts.source", { source: one.source }) },
      words.t("alerts.price", { price: words.said(one.price) }),
    ),
  );
}
