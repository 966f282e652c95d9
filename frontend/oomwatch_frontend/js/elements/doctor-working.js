// The arithmetic line by line, with the user's numbers.

import { h } from "../dom.js";
import { UNKNOWN } from "../format.js";
import { phaseName, row, table } from "../parts.js";
import { besideOne } from "../run-differences.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../doctorwire.js").WorkingLine} WorkingLine */
/** @typedef {{ names: [string, string], lines: WorkingLine[] }} Beside the names of both, and the other's numbers */

const NUMERIC = [1, 2];

/** @param {Words} words @param {WorkingLine[]} lines @param {Beside | null} [beside] the same of another configuration */
export function workingTable(words, lines, beside = null) {
  const numeric = beside === null ? NUMERIC : [...NUMERIC, 3];
  const rows = besideOne(lines, beside?.lines ?? []).map(({ line, own, other }) => {
    const values = beside === null ? [value(words, own)] : compared(words, own, other);
    return row([nameOf(words, line), howOf(words, line), ...values], numeric);
  });
  const named = beside === null ? [words.t("config.value")] : beside.names;
  const heads = [words.t("doctor.number"), words.t("doctor.formula"), ...named];
  return h("div", { class: "doctor-working" }, table(words, heads, numeric, h("tbody", {}, ...rows)), noteOn(words, lines));
}

/** @param {Words} words @param {number | null} number */
const value = (words, number) => (number === null ? UNKNOWN : words.integer.format(number));

/** What differs stands out. @param {Words} words @param {number | null} own @param {number | null} other */
function compared(words, own, other) {
  const values = [own, other].map((number) => value(words, number));
  return own === other ? values : values.map((text) => h("b", {}, text));
}

/** @param {Words} words @param {WorkingLine} line */
function nameOf(words, { phase, label, assumed }) {
  return h("span", {}, phase === null ? null : h("b", {}, `${phaseName(words, phase)} `), label, assumed.length === 0 ? null : " *");
}

/** @param {Words} words @param {WorkingLine} line */
function howOf(words, { formula, missing }) {
  return missing.length === 0 ? formula : h("span", { class: "muted" }, words.t("doctor.needs"), " ", ...missing.map(code));
}

/** What nobody told. @param {Words} words @param {WorkingLine[]} lines */
function noteOn(words, lines) {
  const assumed = [...new Set(lines.flatMap((line) => line.assumed))];
  return assumed.length === 0 ? null : h("p", { class: "hint" }, words.t("doctor.assumed"), " ", ...assumed.map(code));
}

/** @param {string} key */
const code = (key) => h("code", {}, key);
