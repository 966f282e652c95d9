// What is wrong with a configuration: what verl would refuse, what has no effect, which settings there are not.

import { h } from "../dom.js";
import { markIcon } from "../marks.js";
import { copyButton, prose } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../doctorwire.js").Report} Report */
/**
 * What a report leads to: a button to the line of the text that a place names, where it names one; and a line tried at once,
 * where there is a text to try it on.
 * @typedef {{ placeLink: (place: string | null) => HTMLElement | null, tryOut: ((line: string) => void) | null }} Ways
 */

const MARKS = /** @type {const} */ ({ error: "critical", warning: "warning", info: "watch" });
const UNKNOWN_KEY = "unknown_key"; // told below, with the key that is nearest

/** Errors first, each with what to write instead. @param {Words} words @param {Report["problems"]} problems @param {Ways} ways */
export function problemList(words, problems, ways) {
  const items = problems
    .filter(({ check }) => check !== UNKNOWN_KEY)
    .map((one) => {
      const mark = MARKS[one.severity];
      const says = one.verl_says === null ? null : h("div", { class: "detail" }, words.t("doctor.verl_says"), " ", h("q", {}, one.verl_says));
      const remedy = one.remedy === null ? null : h("div", { class: "detail" }, prose(words, one.remedy));
      const valid = one.valid.length === 0 ? null : h("div", { class: "detail" }, words.t("doctor.valid", { values: one.valid.join(words.t("text.and")) }));
      const text = h("div", {}, h("div", {}, prose(words, one.message), " ", ways.placeLink(one.place)), says, valid, remedy, suggestion(words, one.suggestion, ways));
      return h("li", {}, markIcon(mark, words.t(`doctor.severity_${one.severity}`)), text);
    });
  return items.length === 0 ? null : h("ul", { class: "doctor-list" }, ...items);
}

/** A line for the command, to be copied or tried. @param {Words} words @param {string | null} line @param {Ways} ways */
export function suggestion(words, line, { tryOut }) {
  if (line === null) return null;
  const button = tryOut === null ? null : h("button", { type: "button", class: "copy", click: () => tryOut(line) }, words.t("doctor.try"));
  return h("div", { class: "override" }, h("code", {}, line), copyButton(words, line), button);
}

/** Values without effect, and which wins. @param {Report} report @param {Words} words @param {Ways} ways */
export function shadowedList(words, report, ways) {
  const items = report.shadowed.map(({ message, place }) => h("li", {}, markIcon("watch"), h("div", {}, prose(words, message), " ", ways.placeLink(place))));
  return items.length === 0 ? null : h("ul", { class: "doctor-list" }, ...items);
}

/** Settings that verl has not, each with the nearest that it has. @param {Words} words @param {Report} report @param {Ways} ways */
export function unknownList(words, report, ways) {
  const items = report.unknown.map(({ key, message, place }) =>
    h("li", {}, markIcon("warning"), h("div", {}, h("code", {}, key), " ", prose(words, message), " ", ways.placeLink(place) ?? h("span", { class: "muted" }, place))),
  );
  return items.length === 0 ? null : h("ul", { class: "doctor-list" }, ...items);
}
