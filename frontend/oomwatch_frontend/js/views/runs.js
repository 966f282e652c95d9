// Runs: one line each, those at risk first.

import { h } from "../dom.js";
import { stepSeconds } from "../format.js";
import { LEVELS, gpusOfRun, indexAlerts } from "../judge.js";
import { markIcon } from "../marks.js";
import { aged, nothing, row, table } from "../parts.js";
import { patch } from "../patch.js";
import { link } from "../router.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Run} Run */

const NUMERIC = [1, 2, 3, 4, 5];

/** @type {import("../main.js").MakeView} */
export function runsView(root, app) {
  const { words, store } = app;
  const body = h("tbody", {});
  const heads = ["name", "step", "step_time", "rollout", "nodes", "gpus", "seen"].map((name) =>
    words.t(`runs.${name}`),
  );
  const listed = table(heads, NUMERIC, body);
  const none = nothing(words.t("runs.none"));
  root.append(h("div", { class: "detail-page" }, h("h1", {}, words.t("nav.runs")), listed, none));
  const update = () => {
    const levels = indexAlerts(store.alerts.values()).runs;
    const rank = (/** @type {Run} */ run) => LEVELS.indexOf(levels.get(run.run) ?? "ok");
    const runs = [...store.runs.values()].sort((a, b) => rank(b) - rank(a) || b.last_seen_at - a.last_seen_at);
    listed.hidden = runs.length === 0;
    none.hidden = runs.length > 0;
    patch(body, ...runs.map((run) => runRow(app, run, levels.get(run.run) ?? null)));
  };
  update();
  return {
    update: (topics) => (topics.has("runs") || topics.has("alerts") || topics.has("nodes") ? update() : undefined),
    close: () => undefined,
  };
}

/** @param {App} app @param {Run} run @param {import("../judge.js").Level | null} level */
function runRow(app, run, level) {
  const { words, store } = app;
  const last = run.steps.at(-1)?.step ?? null;
  const mark = level === null ? null : markIcon(level, words.t(`mark.${level}`));
  const gpus = [...gpusOfRun(store, run).values()].flat().length;
  return row(
    [
      h("span", { class: "name" }, mark, h("a", { href: link("run", [run.run]) }, run.run)),
      last === null ? "–" : words.integer.format(last.step),
      stepSeconds(words, last?.step_seconds ?? null),
      stepSeconds(words, last?.rollout_seconds ?? null),
      String(run.nodes.length),
      gpus === 0 ? "–" : String(gpus),
      aged(words, "age.ago", run.last_seen_at),
    ],
    NUMERIC,
    run.run,
  );
}
