// One run: the steps are the spine. Every row of the timeline shares them, and one cursor runs through all.

import { AlertCard } from "../elements/alert-card.js";
import { Part, fill, h, keyed, setText } from "../dom.js";
import { absent } from "../elements/absent.js";
import { openGroups } from "../groups.js";
import { percent, stepSeconds } from "../format.js";
import { gpusOfRun } from "../judge.js";
import { aged, crumbs, facts, nothing, section } from "../parts.js";
import { patch } from "../patch.js";
import { link, noteInAddress } from "../router.js";
import { RunData } from "../run-data.js";
import { readLook, writeLook } from "../run-look.js";
import { batchesOf } from "./run-batches.js";
import { differenceTable, runChoice } from "./run-compare.js";
import { configTable, coverageTable, currentPhase } from "./run-facts.js";
import { incidentList, verdictList } from "./run-history.js";
import { planTable } from "./run-plan.js";
import { RunTimeline } from "./run-timeline.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Run} Run */
/** @typedef {import("../wire.js").Alert} Alert */

/** @type {import("../main.js").MakeView} */
export const runView = (root, app, route) => new RunPage(root, app, route.args.join("/"), route.query);

class RunPage {
  /** @param {HTMLElement} root @param {App} app @param {string} name @param {Record<string, string>} query `with`: the run that it is compared with; what else, see run-look.js */
  constructor(root, app, name, query) {
    const { with: other = "" } = query;
    this.app = app;
    this.name = name;
    this.otherName = other === name ? "" : other;
    const redraw = () => this.update(new Set(["runs", "alerts"]));
    this.data = new RunData(app, name, redraw);
    this.other = this.otherName === "" ? null : new RunData(app, this.otherName, redraw);
    this.timeline = new RunTimeline(app, this.data, this.other, readLook(query), (look) => noteInAddress(writeLook(look)));
    this.steps = 0;
    this.parts = {
      note: h("p", { class: "note", role: "status" }),
      unknown: new Part("div"),
      alerts: h("div", { class: "alerts" }),
      quiet: nothing(app.words.t("alerts.none_here")),
      choice: new Part("div"),
      reshard: new Part("div"),
      facts: h("div"),
      where: new Part("div"),
      coverage: h("div"),
      plan: new Part("div"),
      batches: new Part("div"),
      config: new Part("div"),
      differences: new Part("div"),
      incidents: new Part("div"),
      verdicts: new Part("div"),
    };
    /** @type {Map<string, AlertCard>} */
    this.cards = new Map();
    this.check = h("p", { hidden: true }, h("a", { class: "check-configuration", href: link("doctor", [], { run: name }) }, app.words.t("doctor.check_run")));
    this.columns = h("div", { class: "columns" });
    root.append(this.#layout());
    this.update(new Set(["runs", "alerts", "nodes"]));
  }

  #layout() {
    const { words } = this.app;
    const { note, alerts, quiet, choice, reshard, facts: told, where, coverage } = this.parts;
    const { batches, config, differences, incidents, plan, verdicts } = this.parts;
    const left = [
      this.timeline.element,
      this.other === null ? null : section(words.t("run.differ"), differences.element),
      section(words.t("run.plan"), plan.element),
      section(words.t("coverage.title"), coverage),
      section(words.t("config.title"), this.check, config.element),
      section(words.t("run.batches"), batches.element), // the last: it fills when its answer comes
    ];
    const right = [
      section(words.t("nav.alerts"), quiet, alerts),
      section(words.t("run.incidents"), incidents.element),
      section(words.t("run.verdicts"), verdicts.element),
      section(words.t("run.facts"), told),
      section(words.t("reshard.title"), reshard.element),
      section(words.t("run.where"), where.element),
    ];
    fill(this.columns, h("div", { class: "wide" }, ...left.filter((one) => one !== null)), h("div", { class: "narrow" }, ...right));
    return h(
      "div",
      { class: "detail-page run-page" },
      h("div", { class: "run-top" }, crumbs([[words.t("nav.runs"), link("runs")]], this.name), choice.element),
      note,
      this.parts.unknown.element,
      this.columns,
    );
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    const { store } = this.app;
    const run = store.runs.get(this.name);
    this.columns.hidden = run === undefined;
    this.parts.unknown.element.hidden = run !== undefined;
    setText(this.parts.note, run !== undefined ? this.#noteOnOther() : "");
    if (run === undefined) return this.#drawUnknown(store.connection.phase === "connecting");
    if (topics.has("runs")) this.#askAnew(run);
    if (topics.has("alerts")) this.#askOfAlerts();
    if (topics.has("runs") || topics.has("alerts")) this.#drawAlerts();
    if (topics.has("runs")) this.#drawRun(run);
    if (topics.has("runs") || topics.has("nodes")) this.#drawWhere(run);
    if (["runs", "alerts", "rules"].some((topic) => topics.has(/** @type {any} */ (topic)))) {
      this.timeline.draw(run, this.#alerts());
    }
  }

  close() {
    this.data.close();
    this.other?.close();
    this.timeline.close();
  }

  /** @param {boolean} isWaiting for the server */
  #drawUnknown(isWaiting) {
    const { words } = this.app;
    const ways = /** @type {[string, string][]} */ ([[words.t("nav.runs"), link("runs")]]);
    this.parts.unknown.draw([isWaiting], () => [
      isWaiting
        ? nothing(words.t("state.connecting"))
        : absent(words.t("run.unknown", { run: this.name }), words.t("run.unknown_next"), ways),
    ]);
  }

  #noteOnOther() {
    const { store, words } = this.app;
    return this.other === null || store.runs.has(this.otherName) ? "" : words.t("run.unknown", { run: this.otherName });
  }

  /** @param {Run} run */
  #askAnew(run) {
    this.data.askBatches();
    this.other?.askBatches();
    const steps = run.steps.length + (this.app.store.runs.get(this.otherName)?.steps.length ?? 0);
    if (steps === this.steps) return;
    this.steps = steps;
    this.data.askSteps();
    this.other?.askSteps();
  }

  #askOfAlerts() {
    const told = this.#alerts().map(({ id, state, outcome }) => [id, state, outcome]);
    const state = JSON.stringify(told);
    if (state === this.toldAlerts) return;
    /** @type {string | undefined} */
    this.toldAlerts = state;
    this.data.askAlerts();
  }

  /** An alert on a whole node names no run: it concerns every run there. @returns {Alert[]} */
  #alerts() {
    const nodes = this.app.store.runs.get(this.name)?.nodes ?? [];
    return [...this.app.store.alerts.values()].filter(({ labels }) =>
      labels.run === undefined ? nodes.includes(labels.node) : labels.run === this.name,
    );
  }

  #drawAlerts() {
    const { app, cards, data, parts } = this;
    const groups = openGroups(this.#alerts());
    parts.quiet.hidden = groups.length > 0;
    keyed(
      parts.alerts,
      groups,
      ({ key }) => key,
      (group) => {
        const card = new AlertCard(app, group === groups[0]);
        cards.set(group.key, card);
        return card.element;
      },
      (_, group) => cards.get(group.key)?.draw(group),
    );
    const { incidents, alerts } = data;
    const problem = data.problems.get("incidents") ?? "";
    parts.incidents.draw([incidents, problem], () => [incidentList(app.words, incidents, problem)]);
    parts.verdicts.draw(alerts, () => [verdictList(app.words, alerts)]);
  }

  /** @param {Run} run */
  #drawRun(run) {
    const { words, store } = this.app;
    const last = run.steps.at(-1)?.step ?? null;
    const others = [...store.runs.values()].sort((a, b) => b.last_seen_at - a.last_seen_at).map((one) => one.run);
    const names = others.filter((name) => name !== this.name);
    this.parts.choice.draw([...names].sort(), () => [
      names.length === 0 ? null : runChoice(words, this.name, names, this.otherName),
    ]);
    const { reshard_marker: marker, reshard_cycles_total: total } = run;
    const timed = run.steps.some(({ step }) => step.reshard_seconds !== null);
    this.parts.reshard.draw([marker, total, timed], () => this.#reshard(run, timed));
    const { plan, problems } = this.data;
    this.parts.plan.draw([plan, problems.get("plan")], () => [planTable(words, plan, problems.get("plan") ?? "")]);
    patch(this.parts.coverage, coverageTable(words, run.coverage));
    this.#drawBatches();
    this.check.hidden = Object.keys(run.config).length === 0;
    this.parts.config.draw(run.config, () => [configTable(words, run.config)]);
    const other = store.runs.get(this.otherName);
    if (other !== undefined) {
      this.parts.differences.draw([run.config, other.config], () => [differenceTable(words, run, other)]);
    }
    patch(
      this.parts.facts,
      facts([
        [words.t("runs.step"), last === null ? "–" : words.integer.format(last.step)],
        [words.t("run.phase"), currentPhase(words, run)],
        [words.t("runs.step_time"), stepSeconds(words, last?.step_seconds ?? null)],
        [words.t("run.rollout"), stepSeconds(words, last?.rollout_seconds ?? null)],
        [words.t("run.clipped"), last?.response_clip_ratio == null ? null : percent(words, last.response_clip_ratio)],
        [words.t("run.first_seen"), aged(words, "age.ago", run.first_seen_at)],
        [words.t("runs.seen"), aged(words, "age.ago", run.last_seen_at)],
      ]),
    );
  }

  #drawBatches() {
    const { batches, problems } = this.data;
    const problem = problems.get("batches") ?? "";
    /** @type {import("./run-batches.js").Other | null} */
    const other = this.other && {
      names: [this.name, this.otherName],
      batches: this.other.batches,
      problem: this.other.problems.get("batches") ?? "",
    };
    this.parts.batches.draw([batches, problem, other], () => batchesOf(this.app.words, batches, problem, other));
  }

  /** Cycles by which marker; without a marker never "0", but how to get one. @param {Run} run @param {boolean} timed */
  #reshard(run, timed) {
    const { words } = this.app;
    if (run.reshard_marker !== null) {
      return [h("p", {}, words.count("reshard.cycles", run.reshard_cycles_total, { marker: run.reshard_marker }))];
    }
    return [
      h("p", {}, words.t("reshard.no_marker")),
      timed ? h("p", { class: "muted" }, words.t("reshard.by_time")) : null,
    ];
  }

  /** @param {Run} run */
  #drawWhere(run) {
    const where = [...gpusOfRun(this.app.store, run)].map(([node, gpus]) => ({ node, gpus: gpus.map((gpu) => gpu.facts.gpu) }));
    this.parts.where.draw([run.nodes, where], () => [this.#where(run, where)]);
  }

  /** @param {Run} run @param {{ node: string, gpus: string[] }[]} where */
  #where(run, where) {
    const { words } = this.app;
    if (run.nodes.length === 0) return nothing(words.t("run.no_nodes"));
    const items = where.map(({ node, gpus }) => {
      const unknown = gpus.length === 0 ? h("span", { class: "muted" }, words.t("run.gpus_unknown")) : null;
      const cards = gpus.map((gpu) =>
        h("a", { href: link("gpu", [node, gpu]), "aria-label": `${node} ${words.t("name.gpu", { gpu })}` }, gpu),
      );
      return h("li", {}, h("a", { href: link("node", [node]) }, node), unknown ?? h("span", { class: "cards" }, ...cards));
    });
    return h("ul", { class: "where-list" }, ...items);
  }
}
