// What the page asks the server of one run: the peaks of its steps, its batches, steps from before the page knew it, what its alerts
// came to, and the reports of what ran out of memory. A question that fails is told, and the rest is shown.

import { ApiError, ask } from "./api.js";
import { fetchHistory } from "./history.js";
import { hostUse } from "./judge.js";
import { readBatches, readPlan } from "./planwire.js";
import { NODES_MOST } from "./run-containers.js";
import { withOlder } from "./run-steps.js";
import { WireError, readAlertRows, readIncidents, readPeaks, readSteps } from "./wire.js";

/** @typedef {import("./main.js").App} App */
/** @typedef {import("./wire.js").StepPoint} StepPoint */

const STEPS_TOLD = 500; // of a run that has more, the page is told no more by itself
const STEPS_MOST = 10_000;
const ALERTS_MOST = 200;
const PATIENCE_MS = 1500; // what comes together is asked for once
const CURVES_SECONDS = 30; // between two looks at what was read over the whole run

export class RunData {
  /** @param {App} app @param {string} name @param {() => void} changed */
  constructor(app, name, changed) {
    this.app = app;
    this.name = name;
    this.changed = changed;
    /** @type {import("./wire.js").Peaks | null} */
    this.peaks = null;
    /** @type {import("./planwire.js").Plan | null} */
    this.plan = null;
    /** @type {import("./planwire.js").BatchesOfRun | null} */
    this.batches = null;
    this.batchesOf = ""; // the configuration that they were asked for
    /** @type {StepPoint[]} */
    this.older = [];
    /** @type {import("./wire.js").AlertRow[]} */
    this.alerts = [];
    /** @type {import("./wire.js").Incident[] | null} null: not known yet */
    this.incidents = null;
    /** @type {Map<string, string>} why an answer is missing, by what was asked */
    this.problems = new Map();
    this.abort = new AbortController();
    /** @type {Map<string, ReturnType<typeof setTimeout>>} */
    this.timers = new Map();
    this.hasAskedOlder = false;
    /** What was in use in the containers of its nodes, over the time of its steps. @type {Map<string, import("./history.js").Series>} */
    this.containers = new Map();
    this.containersAt = -Infinity;
  }

  close() {
    this.abort.abort();
    for (const timer of this.timers.values()) clearTimeout(timer);
  }

  /** All steps that are known, as they were read. @returns {StepPoint[]} */
  steps() {
    return withOlder(this.older, this.app.store.runs.get(this.name)?.steps ?? []);
  }

  /** A step was done. Of a run that the page does not know, the server knows no steps either. */
  askSteps() {
    if (!this.app.store.runs.has(this.name)) return;
    const path = `runs/${encodeURIComponent(this.name)}`;
    this.#soon("peaks", `${path}/peaks`, (answer) => (this.peaks = readPeaks(answer)));
    this.#soon("plan", `${path}/plan`, (answer) => (this.plan = readPlan(answer)));
    if (this.problems.get("batches")) this.batchesOf = ""; // to ask again
    void this.askContainers();
    const told = this.app.store.runs.get(this.name)?.steps.length ?? 0;
    if (this.hasAskedOlder || told < STEPS_TOLD) return;
    this.hasAskedOlder = true;
    this.#soon("steps", `${path}/steps?limit=${STEPS_MOST}`, (answer) => (this.older = readSteps(answer)));
  }

  /** Its configuration may be another one, or it took its first step: what verl says against it then is no refusal. */
  askBatches() {
    const run = this.app.store.runs.get(this.name);
    const told = JSON.stringify([run?.config, run !== undefined && run.steps.length > 0]);
    if (run === undefined || told === this.batchesOf) return;
    this.batchesOf = told;
    const search = new URLSearchParams({ lang: this.app.words.language });
    this.#soon("batches", `runs/${encodeURIComponent(this.name)}/batches?${search}`, (answer) => (this.batches = readBatches(answer)));
  }

  /** The memory of the containers that its nodes work in, where they do, from the first step to the last. */
  async askContainers() {
    const { store } = this.app;
    const points = this.steps();
    const [first, last] = [points[0], points.at(-1)];
    const nodes = this.#contained();
    if (first === undefined || last === undefined || nodes.length === 0 || store.now() < this.containersAt + CURVES_SECONDS) return;
    this.containersAt = store.now();
    const [from, to] = [Math.max(0, first.at - (first.step.step_seconds ?? 0)), last.at];
    const ask = (/** @type {string} */ node) =>
      fetchHistory({ series: ["host_cgroup_used_bytes"], node, from, to }, this.abort.signal);
    const answers = await Promise.allSettled(nodes.map(ask));
    if (this.abort.signal.aborted) return;
    answers.forEach((answer, index) => {
      if (answer.status === "fulfilled") this.containers.set(nodes[index], answer.value[0]);
    });
    this.changed();
  }

  /** Its nodes that have a limit below the machine's, the fullest first. */
  #contained() {
    const { store } = this.app;
    const views = (store.runs.get(this.name)?.nodes ?? []).flatMap((name) => store.nodes.get(name) ?? []);
    const limited = views.filter(({ info }) => info.facts.host?.memory_limit_bytes != null);
    const fullest = limited.sort((a, b) => (hostUse(b)?.ratio ?? 0) - (hostUse(a)?.ratio ?? 0));
    return fullest.slice(0, NODES_MOST).map(({ info }) => info.node);
  }

  /** An alert has changed. */
  askAlerts() {
    const search = new URLSearchParams({ run: this.name, limit: String(ALERTS_MOST), lang: this.app.words.language });
    this.#soon("alerts", `alerts?${search}`, (answer) => (this.alerts = readAlertRows(answer)));
    this.#soon("incidents", "incidents", (answer) => {
      this.incidents = readIncidents(answer).filter(({ run }) => run === this.name);
    });
  }

  /** @param {string} what @param {string} path @param {(answer: unknown) => void} take */
  #soon(what, path, take) {
    if (this.timers.has(what)) return;
    const isFirst = !this.problems.has(what);
    if (isFirst) this.problems.set(what, "");
    this.timers.set(what, setTimeout(() => void this.#ask(what, path, take), isFirst ? 0 : PATIENCE_MS));
  }

  /** @param {string} what @param {string} path @param {(answer: unknown) => void} take */
  async #ask(what, path, take) {
    this.timers.delete(what);
    try {
      take(await ask("GET", path, undefined, this.abort.signal));
      this.problems.set(what, "");
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      if (this.abort.signal.aborted) return;
      this.problems.set(what, error.message);
    }
    this.changed();
  }
}
