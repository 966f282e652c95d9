// The timeline of a run: its steps, its peaks, what is foretold, its alerts, and the run that it is compared with.

import { StepTimeline } from "../elements/step-timeline.js";
import { h, setText } from "../dom.js";
import { gpusOfRun } from "../judge.js";
import { allowedIncrease } from "../run-baseline.js";
import { containersOf } from "../run-containers.js";
import { flagsOf } from "../run-flags.js";
import { fanOf, stepsAhead } from "../run-forecast.js";
import { timelineRows } from "../run-rows.js";
import { columnsOf, lastAttempt, union } from "../run-steps.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Run} Run */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../run-data.js").RunData} RunData */
/** @typedef {import("../run-look.js").Look} Look */

export class RunTimeline {
  /** @param {App} app @param {RunData} data @param {RunData | null} other of the run that it is compared with @param {Look} look @param {(look: Look) => void} looked */
  constructor(app, data, other, look, looked) {
    this.app = app;
    this.data = data;
    this.other = other;
    this.drawn = "";
    this.note = h("p", { class: "note", role: "status" });
    const failed = (/** @type {Error} */ error) => setText(this.note, app.words.t("chart.failed", { reason: error.message }));
    this.timeline = new StepTimeline(app.words, failed, look, looked);
    this.element = h("section", {}, this.note, this.timeline.element);
  }

  close() {
    this.timeline.close();
  }

  /** @param {Run} run @param {Alert[]} alerts those that concern it */
  draw(run, alerts) {
    const { words, store } = this.app;
    const told = this.data.steps();
    const points = lastAttempt(told.filter(({ step }) => !step.validation_only));
    this.timeline.element.hidden = points.length === 0;
    if (points.length === 0) return void setText(this.note, words.t("run.no_steps"));
    if (this.note.textContent === words.t("run.no_steps")) setText(this.note, "");
    if (this.#unchanged(points, alerts)) return;
    const fan = fanOf(alerts);
    const last = points[points.length - 1].step.step;
    const own = points.map(({ step }) => step.step);
    const others = this.other === null ? [] : stepsOf(this.other);
    const ahead = fan === null ? [] : stepsAhead(fan, last);
    const x = union(union(own, others), ahead);
    const increase = allowedIncrease(store.rules);
    const columns = columnsOf(told, this.data.peaks, increase, x);
    const rows = timelineRows(words, {
      columns,
      other:
        this.other === null
          ? null
          : { name: this.other.name, columns: columnsOf(this.other.steps(), this.other.peaks, increase, x) },
      forecast: fan === null ? null : { fan, last },
      cards: this.#cards(run),
      hosts: this.#hosts(run),
      containers: containersOf(points, x, this.data.containers),
      limits: this.#limits(run),
      notes: { peaks: this.#notePeaks(own[0]) },
    });
    this.timeline.draw({ x, at: columns.at, last: x.indexOf(last), foretold: ahead.at(-1) ?? last, rows, flags: this.#flags(alerts, points) });
  }

  /** @param {import("../wire.js").StepPoint[]} points @param {Alert[]} alerts */
  #unchanged(points, alerts) {
    const { store } = this.app;
    const { data, other } = this;
    const of = (/** @type {RunData | null} */ one) => [one?.steps().length, one?.peaks === null, one?.peaks?.step.at(-1), one?.older.length, one?.containersAt, one?.containers.size];
    const told = alerts.map(({ id, state, severity, stale, facts }) => [id, state, severity, stale, facts.eta_steps]);
    const state = JSON.stringify([points.length, points.at(-1)?.at, of(data), of(other), told, data.alerts.length, store.rules.length, [...data.problems]]);
    if (state === this.drawn) return true;
    this.drawn = state;
    return false;
  }

  /** What the cards of a run can hold: each size once. @param {Run} run */
  #cards(run) {
    const known = [...gpusOfRun(this.app.store, run).values()].flat().map((gpu) => gpu.usableBytes);
    const told = (this.data.peaks?.gpus ?? []).map((source) => source.usable_bytes);
    return [...new Set(known.length === 0 ? told : known)];
  }

  /** @param {Run} run */
  #hosts(run) {
    const sizes = run.nodes.flatMap((name) => this.app.store.nodes.get(name)?.info.facts.host?.memory_total_bytes ?? []);
    return [...new Set(sizes)];
  }

  /** Of the containers that its nodes work in: each size once. @param {Run} run */
  #limits(run) {
    const sizes = run.nodes.flatMap((name) => this.app.store.nodes.get(name)?.info.facts.host?.memory_limit_bytes ?? []);
    return [...new Set(sizes)];
  }

  /** From when on the peaks are known. Until it is, that keeps the row's place. @param {number} first step that is shown */
  #notePeaks(first) {
    const { words } = this.app;
    const { peaks, problems } = this.data;
    const problem = problems.get("peaks") ?? "";
    if (problem !== "") return words.t("run.peaks_failed", { reason: problem });
    if (peaks === null) return words.t("run.peaks_asking");
    const from = peaks.known_from_step;
    return from === null || from <= first ? "" : words.t("run.peaks_from", { step: from });
  }

  /** @param {Alert[]} alerts @param {import("../wire.js").StepPoint[]} points */
  #flags(alerts, points) {
    const { words } = this.app;
    const told = new Map(this.data.alerts.map((row) => [row.id, row.summary]));
    const all = new Map([...this.data.alerts, ...alerts].map((alert) => [alert.id, alert]));
    const summary = (/** @type {string} */ id) => {
      const open = alerts.find((alert) => alert.id === id);
      return open === undefined ? (told.get(id) ?? "") : words.pick(open.texts).summary;
    };
    return flagsOf(all.values(), points).map((flag) => ({ ...flag, summary: summary(flag.id) }));
  }
}

/** @param {RunData} data */
const stepsOf = (data) =>
  lastAttempt(data.steps().filter(({ step }) => !step.validation_only)).map(({ step }) => step.step);
