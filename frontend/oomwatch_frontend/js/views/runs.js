// Runs: one line each, those at risk first, with how full its fullest GPU is and when that runs out.

import { h } from "../dom.js";
import { indexForecasts, isForeseen, isJudged } from "../foreseen.js";
import { UNKNOWN, percent, stepSeconds } from "../format.js";
import { LEVELS, gpuData, gpuRatio, gpusOfRun, nodeData, runLevels } from "../judge.js";
import { markIcon } from "../marks.js";
import { aged, nothing, row, table } from "../parts.js";
import { patch } from "../patch.js";
import { link } from "../router.js";
import { foreseenSentence, timeLeft } from "./next-out.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Run} Run */
/** @typedef {import("../store.js").GpuView} GpuView */
/** @typedef {import("../foreseen.js").Forecasts} Forecasts */

const COLUMNS = ["name", "fullest", "full_in", "step", "step_time", "rollout", "nodes", "gpus", "seen"];
const NUMERIC = [3, 4, 5, 6, 7];
const TOPICS = /** @type {const} */ (["runs", "alerts", "nodes", "tick"]);

/** @type {import("../main.js").MakeView} */
export function runsView(root, app) {
  const { words, store } = app;
  const body = h("tbody", {});
  const listed = table(words, COLUMNS.map((name) => words.t(`runs.${name}`)), NUMERIC, body);
  const none = nothing(words.t("runs.none"));
  root.append(h("div", { class: "detail-page runs" }, h("h1", {}, words.t("nav.runs")), listed, none));
  const update = () => {
    const levels = runLevels(store);
    const forecasts = indexForecasts(store.alerts.values(), store.runs);
    const rank = (/** @type {Run} */ run) => LEVELS.indexOf(levels.get(run.run) ?? "ok");
    const runs = [...store.runs.values()].sort((a, b) => rank(b) - rank(a) || b.last_seen_at - a.last_seen_at);
    listed.hidden = runs.length === 0;
    none.hidden = runs.length > 0;
    patch(body, ...runs.map((run) => runRow(app, run, levels.get(run.run) ?? null, forecasts)));
  };
  update();
  return {
    update: (topics) => (TOPICS.some((topic) => topics.has(topic)) ? update() : undefined),
    close: () => undefined,
  };
}

/** @param {App} app @param {Run} run @param {import("../judge.js").Level | null} level @param {Forecasts} forecasts */
function runRow(app, run, level, forecasts) {
  const { words, store } = app;
  const last = run.steps.at(-1)?.step ?? null;
  const mark = level === null ? null : markIcon(level, words.t(`mark.${level}`));
  const gpus = [...gpusOfRun(store, run).values()].flat();
  return row(
    [
      h("span", { class: "name" }, mark, h("a", { href: link("run", [run.run]) }, run.run)),
      fullestOf(app, gpus),
      fullIn(app, run, forecasts),
      last === null ? UNKNOWN : words.integer.format(last.step),
      stepSeconds(words, last?.step_seconds ?? null),
      stepSeconds(words, last?.rollout_seconds ?? null),
      String(run.nodes.length),
      gpus.length === 0 ? UNKNOWN : String(gpus.length),
      aged(words, "age.ago", run.last_seen_at),
    ],
    NUMERIC,
    run.run,
  );
}

/** The card that is fullest now, of those with current data. @param {App} app @param {GpuView[]} gpus */
function fullestOf({ words, store }, gpus) {
  const now = store.now();
  const isCurrent = (/** @type {GpuView} */ gpu) => {
    const view = store.nodes.get(gpu.node);
    return view !== undefined && gpuData(gpu, nodeData(view, now)) === "ok" && gpuRatio(gpu) !== null;
  };
  const fullest = gpus.filter(isCurrent).reduce((/** @type {GpuView | null} */ most, gpu) => (most === null || (gpuRatio(gpu) ?? 0) > (gpuRatio(most) ?? 0) ? gpu : most), null);
  if (fullest === null) return UNKNOWN;
  const { gpu } = fullest.facts;
  const said = words.t("runs.of_gpu", { percent: percent(words, gpuRatio(fullest)), node: fullest.node, gpu });
  return h("a", { href: link("gpu", [fullest.node, gpu]) }, said);
}

/** What runs out first of what an alert of the run, or of its GPUs, foresees. @param {App} app @param {Run} run @param {Forecasts} forecasts */
function fullIn({ words, store }, run, forecasts) {
  const next = forecasts.soonest.find(({ alert }) => alert.labels.run === run.run);
  if (next !== undefined) return h("a", { href: link("alerts", [], { id: next.alert.id }), title: foreseenSentence(words, next) }, h("b", {}, timeLeft(words, next)));
  if (!isForeseen(store.rules, "gpu")) return UNKNOWN;
  return h("span", { class: "muted" }, words.t(isJudged(store, run.run) ? "fleet.steady" : "fleet.unjudged"));
}
