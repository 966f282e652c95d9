// What a changed rule file would have done with the last hours.

import { h } from "../dom.js";
import { clockTime, stretch } from "../format.js";
import { nothing, row, table } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../rulewire.js").Tryout} Tryout */
/** @typedef {import("../rulewire.js").RuleTried} RuleTried */

const NUMERIC = [1, 2, 3, 4, 5, 6];

/** @param {Words} words @param {Tryout} result */
export function tryoutResult(words, result) {
  const { tried } = result;
  const span = { span: stretch(words, tried.end_at - tried.start_at), from: clockTime(words, tried.start_at), gpus: tried.gpus };
  const now = result.in_force_count;
  const counts = { n: result.count, now: now ?? 0 };
  const sentence = words.count(now === null ? "rules.would_alone" : "rules.would_have", result.count, { ...span, ...counts });
  return h(
    "section",
    { class: "tryout" },
    h("h2", {}, words.t("rules.result")),
    h("p", { class: "about" }, sentence),
    tried.complete ? null : h("p", {}, words.t("rules.incomplete")),
    result.note === null ? null : h("p", { class: "muted" }, result.note),
    result.rules.length === 0 ? nothing(words.t("rules.all_same")) : tableOf(words, result.rules),
    result.same.length > 0 ? h("p", { class: "muted" }, words.count("rules.same", result.same.length)) : null,
    result.left_out.length > 0 ? h("p", { class: "muted" }, words.t("rules.left_out", { rules: result.left_out.join(words.t("text.and")) })) : null,
    ...result.defects.map((defect) => h("p", { class: "muted" }, defect)),
  );
}

/** @param {Words} words @param {RuleTried[]} rules */
function tableOf(words, rules) {
  const heads = ["rule", "would", "in_force", "new", "gone", "true", "false", "where"].map((name) => words.t(`rules.col_${name}`));
  const rows = rules.map((rule) => {
    const { tried } = rule;
    const more = tried.subjects_count - tried.subjects.length;
    const where = tried.subjects.join(words.t("text.and")) + (more > 0 ? ` +${more}` : "");
    const name = h("span", {}, `${rule.alert}/${rule.severity}`, rule.change === null ? null : h("span", { class: "muted" }, ` ${words.t(`rules.change_${rule.change}`)}`));
    const numbers = [tried.count, rule.in_force?.count ?? null, rule.new, rule.gone, tried.happened, tried.false];
    return row([name, ...numbers.map((number) => (number === null ? "–" : words.integer.format(number))), where], NUMERIC);
  });
  return table(words, heads, NUMERIC, h("tbody", {}, ...rows));
}
