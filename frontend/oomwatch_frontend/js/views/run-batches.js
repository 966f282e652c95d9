// What a step of a run is made of, as the server works it out, and what verl says against it.

import { h } from "../dom.js";
import { problemList } from "../elements/doctor-problems.js";
import { workingTable } from "../elements/doctor-working.js";
import { nothing } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../planwire.js").BatchesOfRun} BatchesOfRun */
/** @typedef {{ names: [string, string], batches: BatchesOfRun | null, problem: string }} Other the names of both runs; null: not asked yet */

/**
 * @param {Words} words @param {BatchesOfRun | null} batches null: not asked yet @param {string} problem why they could not be read
 * @param {Other | null} other a run to compare with @returns {(HTMLElement | null)[]}
 */
export function batchesOf(words, batches, problem, other) {
  if (problem !== "") return [nothing(words.t("run.batches_failed", { reason: problem }))];
  if (batches === null) return [nothing(words.t("run.batches_asking"))];
  if (batches.why !== null) return [nothing(words.t("config.none"))];
  const beside = other === null ? null : { names: other.names, lines: other.batches?.working ?? [] };
  return [
    problemList(words, batches.problems, { placeLink: () => null, tryOut: null }),
    other === null ? null : noteOn(words, other),
    workingTable(words, batches.working, beside),
    h("p", { class: "hint" }, release(words, batches)),
  ];
}

/** Why the other run's numbers are not there. @param {Words} words @param {Other} other */
function noteOn(words, { names: [, run], batches, problem }) {
  if (problem !== "") return nothing(words.t("run.batches_failed_of", { run, reason: problem }));
  if (batches === null) return nothing(words.t("run.batches_asking"));
  return batches.why === null ? null : nothing(words.t("run.differ_unknown", { run }));
}

/** @param {Words} words @param {BatchesOfRun} batches */
const release = (words, { release: version, release_told: isTold }) =>
  words.t(isTold ? "run.batches_release" : "run.batches_release_assumed", { version: version ?? "" });
