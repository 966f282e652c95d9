// What a run tells, its configuration, and the phase that it is in.

import { h } from "../dom.js";
import { nothing, aged, phaseName, prose, row, table } from "../parts.js";
import { markIcon } from "../marks.js";
import { UNKNOWN } from "../format.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../wire.js").Run} Run */
/** @typedef {import("../wire.js").Coverage} Coverage */

/** Each signal with its source, or with what is missing and how to switch it on. @param {Words} words @param {Coverage[]} coverage */
export function coverageTable(words, coverage) {
  if (coverage.length === 0) return nothing(words.t("coverage.none"));
  const names = ["signal", "source", "seen", "count", "problem"];
  const rows = coverage.map((one) => {
    const seen = one.last_seen_at === null ? UNKNOWN : aged(words, "age.ago", one.last_seen_at);
    const mark = markIcon(one.problem === null ? "ok" : one.source === null ? "stale" : "watch");
    return row(
      [
        h("span", { class: "name" }, mark, words.t(`coverage.signal.${one.signal}`)),
        one.source ?? UNKNOWN,
        seen,
        one.count === 0 ? UNKNOWN : words.integer.format(one.count),
        problemOf(words, one),
      ],
      [3],
    );
  });
  const heads = names.map((name) => words.t(`coverage.${name}`));
  return h("div", { class: "coverage" }, table(words, heads, [3], h("tbody", {}, ...rows)));
}

/** @param {Words} words @param {Coverage} coverage */
function problemOf(words, { problem, texts }) {
  if (problem === null) return "";
  return prose(words, words.said(texts, problem));
}

/** The settings that memory depends on, as the trainer printed them. @param {Words} words @param {Run["config"]} config */
export function configTable(words, config) {
  const names = Object.keys(config).sort();
  if (names.length === 0) return nothing(words.t("config.none"));
  const rows = names.map((name) => row([h("code", {}, name), valueOf(config[name])], [1]));
  const heads = [words.t("config.key"), words.t("config.value")];
  return h("div", { class: "config" }, table(words, heads, [1], h("tbody", {}, ...rows)));
}

/** As trainers write it. @param {string | number | boolean} value */
export const valueOf = (value) => (typeof value === "boolean" ? (value ? "True" : "False") : String(value));

/** The phase that a mark told, else the last one that a step line told of. @param {Words} words @param {Run} run @returns {HTMLElement | null} null: none is known */
export function currentPhase(words, run) {
  const last = run.phases.at(-1);
  if (last === undefined) return null;
  const name = phaseName(words, last.phase);
  if (last.end_at === null) return h("span", {}, h("b", {}, name), " ", aged(words, "phases.since", last.start_at));
  return h("span", { class: "muted" }, `${words.t("phases.last", { phase: name })} `, aged(words, "phases.ended", last.end_at));
}
