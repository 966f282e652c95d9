// Fleet: every GPU at a glance, what is closest to full, and the nodes that need somebody.

import { h, setText } from "../dom.js";
import { firstRun } from "../elements/first-run.js";
import { FleetMap } from "../fleet-canvas.js";
import { gib, gibOf, memoryOf, percent } from "../format.js";
import { gpuData, gpuRatio, hostUse, indexAlerts, nodeData, runsByNode } from "../judge.js";
import { markIcon } from "../marks.js";
import { link } from "../router.js";
import { gpuKey } from "../store.js";
import { FullestList } from "./fullest.js";
import { NodesTable, stateText } from "./nodes-table.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */
/** @typedef {import("../judge.js").AlertIndex} AlertIndex */
/** @typedef {import("../fleet-paint.js").NodeCells} NodeCells */
/** @typedef {{ node: string, gpus: number[] }} Part a node on the map, or those of its GPUs that are in one run */

const COLLATOR = new Intl.Collator("en", { numeric: true });

/** @type {import("../main.js").MakeView} */
export const fleetView = (root, app, route) => new Fleet(root, app, route.query.by === "run" ? "run" : "node");

class Fleet {
  /** @param {HTMLElement} root @param {App} app @param {"node" | "run"} grouping */
  constructor(root, app, grouping) {
    this.app = app;
    this.grouping = grouping;
    /** @type {string[]} */
    this.names = [];
    /** What the map was last arranged for. */
    this.shape = "";
    /** @type {Part[]} in the order of the map */
    this.ordered = [];
    this.alerts = indexAlerts(app.store.alerts.values());
    this.runs = runsByNode(app.store);
    this.map = new FleetMap(
      {
        open: (node, gpu) => this.#open(node, gpu),
        describe: (node, gpu) => this.#describe(node, gpu),
        announce: (node, gpu) => this.#announce(node, gpu),
        percent: (ratio) => percent(app.words, ratio),
      },
      { label: app.words.t("fleet.map"), help: app.words.t("fleet.keys") },
    );
    this.totals = h("p", { class: "totals" });
    this.full = new FullestList(app);
    this.table = new NodesTable(app);
    this.empty = firstRun(app.words);
    this.empty.hidden = true;
    this.content = this.#layout();
    root.append(h("h1", { class: "unseen" }, app.words.t("nav.fleet")), this.empty, this.content);
    this.map.start();
    this.update(new Set(["nodes", "runs", "alerts", "tick"]));
  }

  #layout() {
    const { words } = this.app;
    const groups = ["node", "run"].map((by) =>
      h(
        "a",
        { href: link("fleet", [], by === "node" ? {} : { by }), "aria-current": this.grouping === by ? "true" : null },
        words.t(`fleet.by_${by}`),
      ),
    );
    return h(
      "div",
      { class: "fleet" },
      h(
        "section",
        { class: "map-side" },
        h(
          "div",
          { class: "toolbar" },
          h("div", { class: "choice", role: "group", "aria-label": words.t("fleet.group") }, ...groups),
          this.totals,
        ),
        this.map.element,
        legend(words),
      ),
      h("aside", {}, h("h2", {}, words.t("fleet.full")), this.full.element),
      this.table.element,
    );
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    const { store } = this.app;
    if (topics.has("alerts")) this.alerts = indexAlerts(store.alerts.values());
    if (topics.has("nodes") || topics.has("runs")) this.runs = runsByNode(store);
    this.#showEmpty();
    if (topics.has("nodes") || (topics.has("runs") && this.grouping === "run")) this.#arrange();
    else this.map.show(this.#cells());
    this.#drawTotals();
    this.full.draw(this.alerts, this.runs);
    this.table.draw(this.#sorted(), this.alerts, this.runs);
  }

  close() {
    this.map.close();
  }

  #showEmpty() {
    const { store } = this.app;
    const empty = store.nodes.size === 0;
    this.content.hidden = empty;
    this.empty.hidden = !empty || store.connection.phase === "connecting";
  }

  // -------------------------------------------------------------- map

  #arrange() {
    const groups =
      this.grouping === "run" ? this.#partsByRun() : new Map([["", this.#sorted().map((view) => wholeNode(view))]]);
    this.ordered = [...groups.values()].flat();
    const sections = [...groups].map(([title, parts]) => ({
      title: title === "" ? null : title,
      nodes: parts.map((part) => ({ name: part.node, gpus: part.gpus.length })),
    }));
    const shape = JSON.stringify(sections);
    if (shape === this.shape) return this.map.show(this.#cells());
    this.shape = shape;
    this.map.arrange(sections, this.#cells());
  }

  /** All nodes in the order of their names. */
  #sorted() {
    const { nodes } = this.app.store;
    if (this.names.length !== nodes.size || this.names.some((name) => !nodes.has(name)))
      this.names = [...nodes.keys()].sort(COLLATOR.compare);
    return this.names.map((name) => /** @type {NodeView} */ (nodes.get(name)));
  }

  /** A node that works on two runs is shown in both, with its GPUs of each. @returns {Map<string, Part[]>} */
  #partsByRun() {
    const none = this.app.words.t("fleet.no_run");
    /** @type {Map<string, Part[]>} */
    const groups = new Map();
    for (const view of this.#sorted()) {
      /** @type {Map<string, number[]>} */
      const byRun = new Map();
      view.gpus.forEach((gpu, index) => {
        const run = gpu.run ?? none;
        byRun.set(run, [...(byRun.get(run) ?? []), index]);
      });
      for (const [run, gpus] of byRun) groups.set(run, [...(groups.get(run) ?? []), { node: view.info.node, gpus }]);
    }
    const rest = groups.get(none);
    if (groups.delete(none) && rest !== undefined) groups.set(none, rest);
    return groups;
  }

  /** @returns {NodeCells[]} */
  #cells() {
    const now = this.app.store.now();
    return this.ordered.flatMap((part) => {
      const view = this.app.store.nodes.get(part.node);
      if (view === undefined) return [];
      const data = nodeData(view, now);
      return {
        name: part.node,
        note: this.#note(view, now),
        level: this.alerts.nodes.get(part.node) ?? "ok",
        data,
        hostRatio: hostUse(view)?.ratio ?? null,
        cells: part.gpus.map((index) => this.#cell(view.gpus[index], data)),
      };
    });
  }

  /** @param {import("../store.js").GpuView} gpu @param {import("../judge.js").Data} ofNode */
  #cell(gpu, ofNode) {
    const level = this.alerts.gpus.get(gpuKey(gpu.node, gpu.facts.gpu)) ?? "ok";
    return { gpu: gpu.facts.gpu, ratio: gpuRatio(gpu), level, data: gpuData(gpu, ofNode) };
  }

  /** @param {NodeView} view @param {number} now */
  #note(view, now) {
    const { words } = this.app;
    if (nodeData(view, now) !== "ok") return stateText(words, view, now);
    const host = hostUse(view);
    return host === null ? "" : words.t("fleet.host", { percent: percent(words, host.ratio) });
  }

  /** What lies at a place of the map. @param {number} block @param {number | null} cell */
  #at(block, cell) {
    const part = this.ordered[block];
    const view = /** @type {NodeView} */ (this.app.store.nodes.get(part.node));
    return { view, card: cell === null ? null : view.gpus[part.gpus[cell]] };
  }

  /** @param {number} block @param {number | null} cell */
  #open(block, cell) {
    const { view, card } = this.#at(block, cell);
    location.hash = card === null ? link("node", [view.info.node]) : link("gpu", [view.info.node, card.facts.gpu]);
  }

  /** @param {number} block @param {number | null} cell */
  #describe(block, cell) {
    const { view, card } = this.#at(block, cell);
    const { words, store } = this.app;
    const { node } = view.info;
    if (card === null) return [h("b", {}, node), ...this.#hostLines(view), ...(this.runs.get(node) ?? [])];
    const data = gpuData(card, nodeData(view, store.now()));
    const lines = [h("b", {}, `${node} · ${words.t("name.gpu", { gpu: card.facts.gpu })}`), card.facts.name];
    if (data === "ok") {
      lines.push(
        h(
          "span",
          { class: "figure" },
          `${gibOf(words, card.usedBytes, card.usableBytes)}\u2002${percent(words, gpuRatio(card))}`,
        ),
      );
      lines.push(words.t("fleet.free", { free: gib(words, card.usableBytes - (card.usedBytes ?? 0)) }));
    } else lines.push(words.t(data === "lost" ? "gpu.lost" : "gpu.no_data"), stateText(words, view, store.now()));
    const alerts = this.#alertsOf(node, card.facts.gpu).map((alert) =>
      h("span", { class: "alerting" }, words.pick(alert.texts).summary),
    );
    return [...lines, card.run ?? "", ...alerts].filter((line) => line !== "");
  }

  /** @param {NodeView} view */
  #hostLines(view) {
    const { words, store } = this.app;
    const host = hostUse(view);
    const now = store.now();
    if (host === null || nodeData(view, now) !== "ok") return [stateText(words, view, now)];
    return [`${words.t("host.memory")} ${gibOf(words, host.used, host.whole)}\u2002${percent(words, host.ratio)}`];
  }

  /** @param {string} node @param {string} gpu */
  #alertsOf(node, gpu) {
    return [...this.app.store.alerts.values()].filter(
      (alert) => alert.state !== "resolved" && alert.labels.node === node && alert.labels.gpu === gpu,
    );
  }

  /** @param {number} index @param {number} gpu */
  #announce(index, gpu) {
    return this.#describe(index, gpu)
      .map((line) => (typeof line === "string" ? line : (line.textContent ?? "")))
      .join(", ");
  }

  // -------------------------------------------------------------- beside and below

  #drawTotals() {
    const { store, words } = this.app;
    const now = store.now();
    let gpus = 0;
    let used = 0;
    let usable = 0;
    for (const view of store.nodes.values()) {
      gpus += view.gpus.length;
      if (nodeData(view, now) !== "ok") continue;
      for (const gpu of view.gpus) {
        if (gpu.usedBytes === null) continue;
        used += gpu.usedBytes;
        usable += gpu.usableBytes;
      }
    }
    const parts = [words.count("fleet.gpus", gpus), words.count("fleet.nodes", store.nodes.size)];
    if (usable > 0)
      parts.push(
        words.t("fleet.in_use", { memory: memoryOf(words, used, usable), percent: percent(words, used / usable) }),
      );
    setText(this.totals, parts.join(" · "));
  }
}

/** @param {NodeView} view @returns {Part} */
const wholeNode = (view) => ({ node: view.info.node, gpus: view.gpus.map((_, index) => index) });

/** @param {import("../i18n.js").Words} words */
function legend(words) {
  const bands = [0, 1, 2, 3].map((band) =>
    h("li", {}, h("i", { class: `swatch tone-band-${band}` }), words.t(`legend.band_${band}`)),
  );
  const marks = /** @type {const} */ (["watch", "warning", "critical"]).map((mark) =>
    h("li", {}, markIcon(mark), words.t(`mark.${mark}`)),
  );
  const data = /** @type {const} */ (["stale", "lost"]).map((mark) =>
    h("li", {}, markIcon(mark), words.t(`legend.${mark}`)),
  );
  return h("ul", { class: "legend", "aria-label": words.t("legend.title") }, ...bands, ...marks, ...data);
}
