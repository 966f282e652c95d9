// What to change: the changes that make it fit together, each remedy by itself, and how far each setting can go.

import { MARKS } from "../doctor-bars.js";
import { h } from "../dom.js";
import { UNKNOWN } from "../format.js";
import { markIcon } from "../marks.js";
import { copyButton, prose, row, table } from "../parts.js";
import { suggestion } from "./doctor-problems.js";
import { shownValue } from "./doctor-settings.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../doctorwire.js").Report} Report */
/** @typedef {import("./doctor-problems.js").Ways} Ways */

/** All changes as a diff, and as one line behind the command. @param {Words} words @param {import("../doctorwire.js").Plan} plan @param {Ways} ways */
export function planBox(words, plan, ways) {
  const lines = plan.diff.split("\n").map((line) => h("span", { class: line.startsWith("+") ? "added" : "removed" }, `${line}\n`));
  const end = words.t(plan.enough ? "doctor.plan_enough" : "doctor.plan_eases");
  return h(
    "div",
    { class: "doctor-plan" },
    h("p", {}, markIcon(MARKS[plan.outcome.verdict]), end),
    h("pre", { class: "diff", tabindex: 0, role: "group", "aria-label": words.t("doctor.diff") }, ...lines),
    suggestion(words, plan.override, ways),
  );
}

/** The best first, each with its effect and price. @param {Words} words @param {Report} report @param {Ways} ways */
export function adviceList(words, report, ways) {
  const items = report.advice.map((one) =>
    h(
      "li",
      {},
      h("div", { class: "advice-text" }, prose(words, one.text), one.enough ? h("b", { class: "tag" }, words.t("doctor.enough")) : null),
      suggestion(words, one.override, ways),
      h("dl", {}, h("dt", {}, words.t("doctor.effect")), h("dd", {}, one.effect), h("dt", {}, words.t("doctor.price")), h("dd", {}, price(words, one))),
    ),
  );
  return items.length === 0 ? null : h("ol", { class: "doctor-advice" }, ...items);
}

/** @param {Words} words @param {import("../doctorwire.js").Advice} advice */
const price = (words, { price: said, price_level }) => words.t("text.noted", { text: said, note: words.t(`doctor.price_${price_level}`) });

/** @param {Words} words @param {Report} report */
export function largestTable(words, report) {
  const rows = report.largest.map(({ key, value, at_most, now, override }) =>
    row(
      [
        h("code", {}, key),
        shownValue(now),
        value === null ? words.t("doctor.none") : shownValue(value),
        at_most === null || at_most === value ? UNKNOWN : shownValue(at_most),
        override === null || value === now ? null : copyButton(words, override),
      ],
      [1, 2, 3],
    ),
  );
  const heads = [words.t("config.key"), words.t("doctor.now"), words.t("doctor.largest"), words.t("doctor.at_most"), ""];
  return table(words, heads, [1, 2, 3], h("tbody", {}, ...rows));
}
