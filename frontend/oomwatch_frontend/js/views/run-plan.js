// What each phase of a run was expected to hold, beside what it held, and what that says of the estimate.

import { h } from "../dom.js";
import { UNKNOWN, gib, gibNumber } from "../format.js";
import { markIcon } from "../marks.js";
import { nothing, phaseName, row, table } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../planwire.js").Plan} Plan */
/** @typedef {import("../planwire.js").PlannedPhase} PlannedPhase */

const NUMERIC = [1, 2, 3, 4];
const HEADS = ["run.phase", "run.plan_expected", "run.plan_measured", "run.plan_error", "run.plan_next"];
const BILLION = 1e9;

/** @param {Words} words @param {Plan | null} plan null: not asked yet @param {string} problem why it could not be read */
export function planTable(words, plan, problem) {
  if (problem !== "") return nothing(words.t("run.plan_failed", { reason: problem }));
  if (plan === null) return nothing(words.t("run.plan_asking"));
  if (plan.why !== null) return nothing(words.t(`run.no_plan_${plan.why}`));
  const rows = plan.phases.map((one) => row(cells(words, one), NUMERIC));
  const heads = HEADS.map((key) => words.t(key));
  return h("div", { class: "run-plan" }, h("p", {}, headline(words, plan)), table(words, heads, NUMERIC, h("tbody", {}, ...rows)), ...notes(words, plan));
}

/** @param {Words} words @param {Plan} plan */
function headline(words, { model, parameters, capacity_bytes: capacity, verdict, peak_phase: peak }) {
  const size = words.t("run.plan_parameters", { n: words.decimal1.format((parameters ?? 0) / BILLION) });
  return words.t("run.plan_says", {
    model: model === null ? size : words.t("run.plan_model", { model, size }),
    card: gib(words, capacity),
    verdict: words.t(`run.plan_${verdict}`),
    phase: phaseName(words, peak ?? ""),
  });
}

/** @param {Words} words @param {PlannedPhase} one @returns {import("../dom.js").Child[]} */
function cells(words, one) {
  const range = words.t("run.plan_range", { low: gibNumber(words, one.low_bytes), high: gibNumber(words, one.high_bytes) });
  const mostly = words.t(`plan.part.${one.part}`);
  const trouble = one.trouble === null ? null : h("div", { class: "muted" }, words.t(`plan.trouble.${one.trouble}`));
  return [
    h("div", {}, phaseName(words, one.phase), h("div", { class: "muted" }, words.t("run.plan_mostly", { part: mostly })), trouble),
    h("div", {}, gib(words, one.expected_bytes), h("div", { class: "muted" }, range)),
    measured(words, one),
    signed(words, one.error_ratio),
    gib(words, one.next_bytes),
  ];
}

/** @param {Words} words @param {PlannedPhase} one */
function measured(words, { measured_bytes: bytes, stands }) {
  if (bytes === null || stands === null) return UNKNOWN;
  const mark = stands === "above" ? markIcon("watch") : null;
  return h("div", {}, gib(words, bytes), h("div", { class: "muted" }, mark, mark === null ? null : " ", words.t(`run.plan_${stands}`)));
}

/** @param {Words} words @param {number | null} ratio */
function signed(words, ratio) {
  if (ratio === null) return UNKNOWN;
  return `${ratio > 0 ? "+" : ""}${words.integer.format(Math.round(ratio * 100))}\u00a0%`;
}

/** How the numbers are meant. @param {Words} words @param {Plan} plan */
function notes(words, { length_tokens: tokens, assumed }) {
  const lengths = tokens === null ? words.t("run.plan_no_lengths") : words.t("run.plan_lengths", { tokens: words.integer.format(tokens) });
  return [lengths, ...assumed.map((name) => words.t(`plan.assumed.${name}`))].map((note) => h("p", { class: "muted" }, note));
}
