// The arithmetic line by line, with the user's numbers.

import { h } from "../dom.js";
import { UNKNOWN } from "../format.js";
import { phaseName, row, table } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */

/** @param {Words} words @param {import("../doctorwire.js").WorkingLine[]} lines */
export function workingTable(words, lines) {
  const assumed = [...new Set(lines.flatMap((line) => line.assumed))];
  const rows = lines.map(({ phase, label, formula, value, assumed: taken, missing }) => {
    const name = h("span", {}, phase === null ? null : h("b", {}, `${phaseName(words, phase)} `), label, taken.length === 0 ? null : " *");
    const how = missing.length === 0 ? formula : h("span", { class: "muted" }, words.t("doctor.needs"), " ", ...missing.map((key) => h("code", {}, key)));
    return row([name, how, value === null ? UNKNOWN : words.integer.format(value)], [1, 2]);
  });
  const heads = [words.t("doctor.number"), words.t("doctor.formula"), words.t("config.value")];
  const note = assumed.length === 0 ? null : h("p", { class: "hint" }, words.t("doctor.assumed"), " ", ...assumed.map((key) => h("code", {}, key)));
  return h("div", { class: "doctor-working" }, table(heads, [1, 2], h("tbody", {}, ...rows)), note);
}
