// One run: the steps are the spine. Every row of the chart shares them, and one cursor runs through all.

import { ChartView } from "../charts.js";
import { fill, h, setText } from "../dom.js";
import { GIB, gibNumber, percent, stepSeconds } from "../format.js";
import { gpusOfRun, levelOf } from "../judge.js";
import { GLYPHS } from "../marks.js";
import { aged, alertLines, crumbs, facts, nothing, section } from "../parts.js";
import { link } from "../router.js";
import { byState } from "./alerts.js";
import { configTable, currentPhase, coverageTable } from "./run-facts.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Run} Run */
/** @typedef {import("../wire.js").Step} Step */
/** @typedef {import("../wire.js").StepPoint} StepPoint */
/** @typedef {import("../charts.js").Row} Row */

/** @type {import("../main.js").MakeView} */
export const runView = (root, app, route) => new RunPage(root, app, route.args[0] ?? "");

class RunPage {
  /** @param {HTMLElement} root @param {App} app @param {string} name */
  constructor(root, app, name) {
    this.app = app;
    this.name = name;
    const { words } = app;
    this.parts = {
      note: h("p", { class: "note", role: "status" }),
      plot: h("div", { class: "plot" }),
      alerts: h("div"),
      reshard: h("div"),
      facts: h("div"),
      where: h("div"),
      coverage: h("div"),
      config: h("div"),
    };
    this.chart = new ChartView(this.parts.plot, (error) =>
      setText(this.parts.note, words.t("chart.failed", { reason: error.message })),
    );
    root.append(
      h(
        "div",
        { class: "detail-page" },
        crumbs([[words.t("nav.runs"), link("runs")]], name),
        h(
          "div",
          { class: "columns" },
          h(
            "div",
            { class: "wide" },
            h("section", {}, this.parts.note, this.parts.plot),
            section(words.t("coverage.title"), this.parts.coverage),
            section(words.t("config.title"), this.parts.config),
          ),
          h(
            "div",
            { class: "narrow" },
            section(words.t("nav.alerts"), this.parts.alerts),
            section(words.t("reshard.title"), this.parts.reshard),
            section(words.t("run.facts"), this.parts.facts),
            section(words.t("run.where"), this.parts.where),
          ),
        ),
      ),
    );
    this.update(new Set(["runs", "alerts", "nodes"]));
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    const { store, words } = this.app;
    const run = store.runs.get(this.name);
    if (run === undefined) {
      setText(
        this.parts.note,
        words.t(store.connection.phase === "connecting" ? "state.connecting" : "run.unknown", { run: this.name }),
      );
      return;
    }
    if (topics.has("alerts")) fill(this.parts.alerts, alertLines(words, this.#alerts()));
    if (topics.has("runs")) this.#drawRun(run);
    if (topics.has("runs") || topics.has("nodes")) fill(this.parts.where, this.#where(run));
    if (topics.has("runs") || topics.has("alerts")) this.#drawChart(run);
  }

  close() {
    this.chart.close();
  }

  #alerts() {
    const nodes = this.app.store.runs.get(this.name)?.nodes ?? [];
    // An alert on a whole node names no run: it concerns every run there.
    return [...this.app.store.alerts.values()].filter(({ labels }) =>
      labels.run === undefined ? nodes.includes(labels.node) : labels.run === this.name,
    );
  }

  /** @param {Run} run */
  #drawRun(run) {
    const { words } = this.app;
    const last = run.steps.at(-1)?.step ?? null;
    fill(this.parts.reshard, ...this.#reshard(run));
    fill(this.parts.coverage, coverageTable(words, run.coverage));
    fill(this.parts.config, configTable(words, run.config));
    fill(
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

  /** Cycles by which marker; without a marker never "0", but how to get one. @param {Run} run */
  #reshard(run) {
    const { words } = this.app;
    if (run.reshard_marker !== null) {
      return [h("p", {}, words.count("reshard.cycles", run.reshard_cycles_total, { marker: run.reshard_marker }))];
    }
    const timed = run.steps.some(({ step }) => step.reshard_seconds !== null);
    return [
      h("p", {}, words.t("reshard.no_marker")),
      timed ? h("p", { class: "muted" }, words.t("reshard.by_time")) : null,
    ].filter((part) => part !== null);
  }

  /** @param {Run} run */
  #where(run) {
    const { store, words } = this.app;
    if (run.nodes.length === 0) return nothing(words.t("run.no_nodes"));
    const items = [...gpusOfRun(store, run)].map(([name, gpus]) => {
      const unknown = gpus.length === 0 ? h("span", { class: "muted" }, words.t("run.gpus_unknown")) : null;
      const cards = gpus.map((gpu) =>
        h(
          "a",
          {
            href: link("gpu", [name, gpu.facts.gpu]),
            "aria-label": `${name} ${words.t("name.gpu", { gpu: gpu.facts.gpu })}`,
          },
          gpu.facts.gpu,
        ),
      );
      return h("li", {}, h("a", { href: link("node", [name]) }, name), unknown ?? h("span", { class: "cards" }, ...cards));
    });
    return h("ul", { class: "where-list" }, ...items);
  }

  /** @param {Run} run */
  #drawChart(run) {
    const { words } = this.app;
    const points = lastAttempt(run.steps.filter(({ step }) => !step.validation_only));
    setText(this.parts.note, points.length === 0 ? words.t("run.no_steps") : "");
    const rows = points.length === 0 ? [] : this.#rows(points);
    this.parts.plot.hidden = rows.length === 0;
    if (rows.length === 0) return;
    this.chart.draw({
      axis: "step",
      x: points.map(({ step }) => step.step),
      range: [points[0].step.step - 0.5, points[points.length - 1].step.step + 0.5],
      xTitle: words.t("run.step_axis"),
      rowHeight: 132,
      rows,
      flags: this.#flags(points),
    });
  }

  /** @param {StepPoint[]} points @returns {Row[]} only those that the run's step lines have numbers for */
  #rows(points) {
    const { words } = this.app;
    /** @param {(step: Step) => number | null} of */
    const column = (of) => points.map(({ step }) => of(step));
    /** @param {(step: Step) => number | null} of */
    const memory = (of) =>
      column((step) => {
        const bytes = of(step);
        return bytes === null ? null : bytes / GIB;
      });
    const rollout = {
      name: words.t("run.rollout"),
      y: column((step) => step.rollout_seconds),
      colour: "accent",
      points: true,
    };
    const length = {
      name: words.t("run.response"),
      y: column((step) => step.response_length_mean_tokens),
      colour: "second",
      right: true,
      dash: /** @type {const} */ ("dot"),
    };
    const reserved = {
      name: words.t("torch.reserved_peak"),
      y: memory((step) => step.torch_reserved_peak_bytes),
      colour: "accent",
      points: true,
    };
    const allocated = {
      name: words.t("torch.allocated_peak"),
      y: memory((step) => step.torch_allocated_peak_bytes),
      colour: "second",
      points: true,
    };
    const step = { name: words.t("run.step_time"), y: column((of) => of.step_seconds), colour: "accent", points: true };
    const reshard = {
      name: words.t("run.reshard"),
      y: column((of) => of.reshard_seconds),
      colour: "accent",
      points: true,
    };
    const host = {
      name: words.t("host.memory"),
      y: memory((of) => of.host_used_bytes),
      colour: "accent",
      points: true,
    };
    /** @type {Row[]} */
    const all = [
      { title: rollout.name, unit: "s", lines: [rollout, length], rightUnit: words.t("unit.tokens") },
      { title: step.name, unit: "s", lines: [step] },
      { title: words.t("torch.title"), unit: "GiB", lines: [reserved, allocated], ...this.#capacity() },
      { title: reshard.name, unit: "s", lines: [reshard] },
      { title: host.name, unit: "GiB", lines: [host] },
    ];
    return all
      .map(known)
      .filter((row) => row.lines.length > 0)
      .map((row) => ({ ...row, title: `${row.title} (${row.unit})` }));
  }

  /** What a card of this run can hold, where all its cards are alike. */
  #capacity() {
    const { store, words } = this.app;
    const run = store.runs.get(this.name);
    const gpus = run === undefined ? [] : [...gpusOfRun(store, run).values()].flat();
    const sizes = new Set(gpus.map((gpu) => gpu.usableBytes));
    if (sizes.size !== 1) return {};
    const [usable] = sizes;
    return {
      limits: [
        { y: usable / GIB, label: words.t("chart.usable", { amount: gibNumber(words, usable) }), colour: "muted" },
      ],
    };
  }

  /** Alerts at the step that was running when they began. @param {StepPoint[]} points */
  #flags(points) {
    const told = this.#alerts()
      .filter((alert) => alert.state !== "pending")
      .sort(byState);
    const flags = told.map((alert) => {
      const next = points.find((point) => point.at >= alert.started_at) ?? points[points.length - 1];
      const level = levelOf({ ...alert, state: "firing" });
      const colour = alert.state === "resolved" ? "muted" : level;
      return {
        x: next.step.step,
        label: this.app.words.pick(alert.texts).summary,
        glyph: GLYPHS[level].trim(),
        colour,
      };
    });
    return flags.filter((flag, index) => flags.findIndex((other) => other.x === flag.x) === index); // the worst of a step
  }
}

/**
 * The steps as they count: after a resume a run does some steps again, and those it did before are void.
 * @param {StepPoint[]} points in the order they were read @returns {StepPoint[]} in the order of the steps
 */
export function lastAttempt(points) {
  /** @type {StepPoint[]} */
  const kept = [];
  for (const point of points) {
    while (kept.length > 0 && kept[kept.length - 1].step.step >= point.step.step) kept.pop();
    kept.push(point);
  }
  return kept;
}

/** @param {Row} row @returns {Row} without the lines that have no number at all */
function known(row) {
  const lines = row.lines.filter((line) => line.y.some((value) => value !== null));
  const right = lines.some((line) => line.right);
  return { ...row, lines: lines.length === 1 && right ? [] : lines, rightUnit: right ? row.rightUnit : undefined };
}
