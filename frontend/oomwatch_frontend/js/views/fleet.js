// Fleet: every GPU at a glance, what is closest to full, and the nodes that need somebody.

import { fill, h, keyed, setText } from "../dom.js";
import { FEW_NODES, FleetMap } from "../fleet-canvas.js";
import { bandOf } from "../fleet-paint.js";
import { gib, gibOf, memoryOf, percent, roughAge } from "../format.js";
import { fullest, gpuData, gpuRatio, hostUse, indexAlerts, nodeData, runOfGpu, runsByNode } from "../judge.js";
import { markIcon } from "../marks.js";
import { bar, nothing, runLinks, table } from "../parts.js";
import { link } from "../router.js";
import { gpuKey } from "../store.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */
/** @typedef {import("../judge.js").AlertIndex} AlertIndex */
/** @typedef {import("../judge.js").Fullness} Fullness */
/** @typedef {import("../fleet-paint.js").NodeCells} NodeCells */
/** @typedef {{ node: string, gpus: number[] }} Part a node on the map, or those of its GPUs that are in one run */

const ROWS = 10;
const COLLATOR = new Intl.Collator("en", { numeric: true });

/** @type {import("../main.js").MakeView} */
export const fleetView = (root, app, route) => new Fleet(root, app, route.query.by === "run" ? "run" : "node");

class Fleet {
  /** @param {HTMLElement} root @param {App} app @param {"node" | "run"} grouping */
  constructor(root, app, grouping) {
    this.app = app;
    this.grouping = grouping;
    this.allNodes = false;
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
    this.full = h("ol", { class: "full" });
    this.nodeBody = h("tbody", {});
    this.nodeHead = h("h2", {});
    this.more = h("button", { type: "button", hidden: true, click: () => this.#toggleAll() });
    this.empty = h("div", { class: "welcome", hidden: true });
    this.content = this.#layout();
    root.append(this.empty, this.content);
    this.map.start();
    this.update(new Set(["nodes", "runs", "alerts", "tick"]));
  }

  #layout() {
    const { words } = this.app;
    const groups = ["node", "run"].map((by) =>
      h("a", { href: link("fleet", [], by === "node" ? {} : { by }), "aria-current": this.grouping === by ? "true" : null }, words.t(`fleet.by_${by}`)),
    );
    const heads = ["node", "state", "run", "gpus", "used", "host", "sensors"].map((name) => words.t(`nodes.${name}`));
    return h(
      "div",
      { class: "fleet" },
      h("section", { class: "map-side" }, h("div", { class: "toolbar" }, h("div", { class: "choice", role: "group", "aria-label": words.t("fleet.group") }, ...groups), this.totals), this.map.element, legend(words)),
      h("aside", {}, h("h2", {}, words.t("fleet.full")), this.full),
      h("section", { class: "nodes-side" }, h("div", { class: "toolbar" }, this.nodeHead, this.more), table(heads, [3, 4, 5], this.nodeBody)),
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
    this.#drawFull();
    this.#drawNodes();
  }

  close() {
    this.map.close();
  }

  #showEmpty() {
    const { store, words } = this.app;
    const empty = store.nodes.size === 0;
    this.content.hidden = empty;
    if (this.empty.hidden === !empty) return;
    this.empty.hidden = !empty;
    const command = `oomwatch-agent --server ${location.protocol === "https:" ? location.origin : location.host}`;
    fill(this.empty, h("p", {}, words.t("fleet.start")), h("pre", {}, command), h("p", { class: "muted" }, words.t("fleet.demo")), h("pre", {}, `${command} --simulate demo`));
  }

  // -------------------------------------------------------------- map

  #arrange() {
    const groups = this.grouping === "run" ? this.#partsByRun() : new Map([["", this.#sorted().map((view) => wholeNode(view))]]);
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
    if (this.names.length !== nodes.size || this.names.some((name) => !nodes.has(name))) this.names = [...nodes.keys()].sort(COLLATOR.compare);
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
        const run = runOfGpu(gpu, this.runs) ?? none;
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
      lines.push(h("span", { class: "figure" }, `${gibOf(words, card.usedBytes, card.usableBytes)}\u2002${percent(words, gpuRatio(card))}`));
      lines.push(words.t("fleet.free", { free: gib(words, card.usableBytes - (card.usedBytes ?? 0)) }));
    } else lines.push(words.t(data === "lost" ? "gpu.lost" : "gpu.no_data"), stateText(words, view, store.now()));
    const alerts = this.#alertsOf(node, card.facts.gpu).map((alert) => h("span", { class: "alerting" }, words.pick(alert.texts).summary));
    return [...lines, runOfGpu(card, this.runs) ?? "", ...alerts].filter((line) => line !== "");
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
    return [...this.app.store.alerts.values()].filter((alert) => alert.state !== "resolved" && alert.labels.node === node && alert.labels.gpu === gpu);
  }

  /** @param {number} index @param {number} gpu */
  #announce(index, gpu) {
    return this.#describe(index, gpu).map((line) => (typeof line === "string" ? line : (line.textContent ?? ""))).join(", ");
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
    if (usable > 0) parts.push(words.t("fleet.in_use", { memory: memoryOf(words, used, usable), percent: percent(words, used / usable) }));
    setText(this.totals, parts.join(" · "));
  }

  #drawFull() {
    const { store, words } = this.app;
    keyed(this.full, fullest(store, ROWS), (item) => item.key, () => h("li", {}), (element, item) => this.#fullRow(element, item));
    if (this.full.childElementCount === 0 && store.nodes.size > 0) fill(this.full, nothing(words.t("fleet.nothing_current")));
  }

  /** @param {HTMLElement} element @param {Fullness} item */
  #fullRow(element, item) {
    const { words } = this.app;
    const level = (item.gpu === null ? this.alerts.nodes : this.alerts.gpus).get(item.key) ?? "ok";
    const tone = level === "warning" || level === "critical" ? level : `band-${bandOf(item.ratio)}`;
    const run = item.gpu === null ? (this.runs.get(item.node) ?? []).join(", ") : runOfGpu(item.gpu, this.runs);
    const figures = [gibOf(words, item.used, item.whole), percent(words, item.ratio), level, run ?? ""];
    const state = JSON.stringify(figures);
    if (element.dataset.state === state) return;
    element.dataset.state = state;
    const href = item.gpu === null ? link("node", [item.node]) : link("gpu", [item.node, item.gpu.facts.gpu]);
    fill(
      element,
      h(
        "a",
        { href },
        level === "ok" ? h("span", { class: "mark" }) : markIcon(level, words.t(`mark.${level}`)),
        h("span", { class: "where" }, item.node, h("b", {}, item.gpu === null ? words.t("host.short") : words.t("name.gpu", { gpu: item.gpu.facts.gpu }))),
        h("span", { class: "run" }, figures[3]),
        h("span", { class: "amount" }, figures[0]),
        h("span", { class: "percent" }, figures[1]),
        bar(words, item.ratio, tone),
      ),
    );
  }

  #toggleAll() {
    this.allNodes = !this.allNodes;
    this.#drawNodes();
  }

  #drawNodes() {
    const { store, words } = this.app;
    const now = store.now();
    const views = this.#sorted();
    const many = views.length > FEW_NODES;
    const troubled = views.filter((view) => this.#needs(view, now));
    const first = new Set(troubled);
    const shown = many && !this.allNodes ? troubled : [...troubled, ...views.filter((view) => !first.has(view))];
    setText(this.nodeHead, many && !this.allNodes ? words.count("nodes.needing", troubled.length) : words.t("nodes.title"));
    this.more.hidden = !many;
    setText(this.more, this.allNodes ? words.t("nodes.fewer") : words.count("nodes.all", views.length));
    keyed(this.nodeBody, shown, (view) => view.info.node, () => h("tr", {}), (element, view) => this.#nodeRow(element, view, now));
    const bare = /** @type {HTMLElement} */ (this.nodeBody.closest(".scroll"));
    bare.hidden = shown.length === 0;
  }

  /** @param {NodeView} view @param {number} now */
  #needs(view, now) {
    const { node, state, facts } = view.info;
    if (state === "stopped") return false; // it said goodbye
    if (nodeData(view, now) !== "ok" || this.alerts.nodes.has(node)) return true;
    if (facts.sources.some((source) => !["ok", "waiting", "missing"].includes(source.state))) return true;
    return view.gpus.some((gpu) => gpu.status !== "ok" || this.alerts.gpus.has(gpuKey(node, gpu.facts.gpu)));
  }

  /** @param {HTMLElement} element @param {NodeView} view @param {number} now */
  #nodeRow(element, view, now) {
    const { words } = this.app;
    const { node, facts } = view.info;
    const current = nodeData(view, now) === "ok";
    const host = current ? hostUse(view) : null;
    const known = current ? view.gpus.filter((gpu) => gpu.usedBytes !== null) : [];
    const used = known.reduce((sum, gpu) => sum + (gpu.usedBytes ?? 0), 0);
    const usable = known.reduce((sum, gpu) => sum + gpu.usableBytes, 0);
    const silent = facts.sources.filter((source) => source.state !== "ok").map((source) => `${source.name}: ${words.t(`sensors.${source.state}`)}`);
    const runs = this.runs.get(node) ?? [];
    const texts = [
      stateText(words, view, now),
      runs.join(", "),
      String(view.gpus.length),
      usable > 0 ? `${gibOf(words, used, usable)}\u2002${percent(words, used / usable)}` : "–",
      host === null ? "–" : `${gibOf(words, host.used, host.whole)}\u2002${percent(words, host.ratio)}`,
      silent.length === 0 ? words.t("sensors.all_ok") : silent.join(", "),
    ];
    const level = this.alerts.nodes.get(node) ?? null;
    const state = JSON.stringify([texts, level, current]);
    if (element.dataset.state === state) return;
    element.dataset.state = state;
    element.className = current ? "" : "not-current";
    const mark = level !== null ? markIcon(level, words.t(`mark.${level}`)) : current ? null : markIcon("stale");
    const cells = [h("span", { class: "name" }, mark, h("a", { href: link("node", [node]) }, node)), ...texts];
    cells[2] = runLinks(runs);
    fill(element, ...cells.map((cell, index) => h("td", { class: [3, 4, 5].includes(index) ? "number" : null }, cell)));
  }
}

/** @param {NodeView} view @returns {Part} */
const wholeNode = (view) => ({ node: view.info.node, gpus: view.gpus.map((_, index) => index) });

/** How a node is: in words that say since when. @param {import("../i18n.js").Words} words @param {NodeView} view @param {number} now */
export function stateText(words, view, now) {
  const { state } = view.info;
  const ago = roughAge(words, now - view.heardAt);
  if (state === "stopped") return words.t("node.stopped", { age: ago });
  if (state === "silent") return words.t("node.silent", { age: ago });
  return nodeData(view, now) === "ok" ? words.t("node.live") : words.t("node.stale", { age: ago });
}

/** @param {import("../i18n.js").Words} words */
function legend(words) {
  const bands = [0, 1, 2, 3].map((band) => h("li", {}, h("i", { class: `swatch tone-band-${band}` }), words.t(`legend.band_${band}`)));
  const marks = /** @type {const} */ (["watch", "warning", "critical"]).map((mark) => h("li", {}, markIcon(mark), words.t(`mark.${mark}`)));
  const data = /** @type {const} */ (["stale", "lost"]).map((mark) => h("li", {}, markIcon(mark), words.t(`legend.${mark}`)));
  return h("ul", { class: "legend", "aria-label": words.t("legend.title") }, ...bands, ...marks, ...data);
}

