// Fleet: every GPU at a glance, what runs out next, and the nodes that need somebody.

import { h, setText } from "../dom.js";
import { firstRun } from "../elements/first-run.js";
import { FleetMap } from "../fleet-canvas.js";
import { GROUPINGS, byNode, byRisk, byRun, readGrouping } from "../fleet-groups.js";
import { dataIn, ratioIn } from "../fleet-look.js";
import { Scene } from "../fleet-scene.js";
import { indexForecasts } from "../foreseen.js";
import { gib, gibOf, memoryOf, percent } from "../format.js";
import { gpuData, gpuRatio, hostUse, indexAlerts, nodeData, runsByNode } from "../judge.js";
import { isKiosk, startKiosk } from "../kiosk.js";
import { inOrder } from "../naming.js";
import { link, parseRoute } from "../router.js";
import { legend } from "./fleet-legend.js";
import { NextOut, foreseenSentence, timeLeft } from "./next-out.js";
import { NodesTable, stateText } from "./nodes-table.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */
/** @typedef {import("../store.js").Topic} Topic */
/** @typedef {import("../fleet-groups.js").Grouping} Grouping */
/** @typedef {import("../fleet-groups.js").Group} Group */

const STORED = "oomwatch.fleet.by";
const SORTED_FOR_SECONDS = 10; // a map sorted by risk stands still for so long, and as long as somebody reads it

/** What the address says, else what was chosen last. @param {Record<string, string>} query @returns {Grouping} */
function chosenGrouping(query) {
  const asked = readGrouping(query.by);
  if (asked !== null) localStorage.setItem(STORED, asked);
  return asked ?? readGrouping(localStorage.getItem(STORED)) ?? "node";
}

/** Another grouping changes nothing else of what the address says. @param {MouseEvent} event */
function keepQuery(event) {
  const choice = /** @type {HTMLAnchorElement} */ (event.currentTarget);
  const { view, args, query } = parseRoute(location.hash);
  choice.hash = link(view, args, { ...query, ...parseRoute(choice.hash).query });
}

/** @type {import("../main.js").MakeView} */
export const fleetView = (root, app, route) => new Fleet(root, app, chosenGrouping(route.query), isKiosk(route));

class Fleet {
  /** @param {HTMLElement} root @param {App} app @param {Grouping} grouping @param {boolean} kiosk */
  constructor(root, app, grouping, kiosk) {
    this.app = app;
    this.grouping = grouping;
    /** @type {string[]} */
    this.names = [];
    this.shape = ""; // what the map was last arranged for
    this.sortedAt = 0;
    this.scene = new Scene();
    this.alerts = indexAlerts(app.store.alerts.values());
    this.forecasts = indexForecasts(app.store.alerts.values(), app.store.runs);
    this.runs = runsByNode(app.store);
    this.map = this.#map(kiosk);
    this.totals = h("p", { class: "totals" });
    this.next = new NextOut(app);
    this.table = new NodesTable(app);
    this.empty = firstRun(app.words);
    this.empty.hidden = true;
    this.content = this.#layout();
    root.append(h("h1", { class: "unseen" }, app.words.t("nav.fleet")), this.empty, this.content);
    this.update(new Set(["nodes", "runs", "alerts", "tick"]));
    this.map.start();
  }

  /** @param {boolean} kiosk */
  #map(kiosk) {
    const { words, store } = this.app;
    const handlers = {
      open: (/** @type {number} */ block, /** @type {number | null} */ gpu) => this.#open(block, gpu),
      describe: (/** @type {number} */ block, /** @type {number | null} */ gpu) => this.#describe(block, gpu),
      announce: (/** @type {number} */ block, /** @type {number} */ gpu) => this.#announce(block, gpu),
      now: () => store.now(),
      isKiosk: () => kiosk,
    };
    const sayings = {
      percent: (/** @type {number | null} */ ratio) => percent(words, ratio),
      soon: (/** @type {number} */ index) => this.#soon(index),
      note: (/** @type {number} */ block) => this.#note(block),
    };
    return new FleetMap(this.scene, handlers, sayings, { label: words.t("fleet.map"), help: words.t("fleet.keys") });
  }

  #layout() {
    const { words } = this.app;
    const groups = GROUPINGS.map((by) =>
      h("a", { href: link("fleet", [], { by }), click: keepQuery, "aria-current": this.grouping === by ? "true" : null }, words.t(`fleet.by_${by}`)),
    );
    const choice = h("div", { class: "choice", role: "group", "aria-label": words.t("fleet.group") }, ...groups);
    const wall = h("button", { type: "button", class: "wall", title: words.t("fleet.wall_why"), click: startKiosk }, words.t("fleet.wall"));
    return h(
      "div",
      { class: "fleet" },
      h("section", { class: "map-side" }, h("div", { class: "toolbar" }, choice, this.totals, wall), this.map.element, legend(words)),
      h("aside", {}, h("h2", {}, words.t("fleet.next")), this.next.element),
      this.table.element,
    );
  }

  /** @param {Set<Topic>} topics */
  update(topics) {
    const { store } = this.app;
    const alerted = topics.has("alerts");
    if (alerted) this.alerts = indexAlerts(store.alerts.values());
    if (alerted || topics.has("runs")) this.forecasts = indexForecasts(store.alerts.values(), store.runs);
    if (topics.has("nodes") || topics.has("runs")) this.runs = runsByNode(store);
    this.#showEmpty();
    if (topics.has("nodes") || topics.has("runs") || (this.grouping === "risk" && this.#mayMove(alerted))) this.#arrange();
    else if (alerted) this.scene.mark(this.alerts, this.forecasts);
    this.map.show(alerted);
    this.#drawTotals();
    this.next.draw(this.alerts, this.forecasts, this.runs);
    this.table.draw(this.#sorted(), this.alerts, this.runs);
  }

  close() {
    this.map.close();
  }

  /** @param {boolean} alerted */
  #mayMove(alerted) {
    return !this.map.isRead && (alerted || this.app.store.now() - this.sortedAt > SORTED_FOR_SECONDS);
  }

  #showEmpty() {
    const { store } = this.app;
    const empty = store.nodes.size === 0;
    this.content.hidden = empty;
    this.empty.hidden = !empty || store.connection.phase === "connecting";
  }

  // -------------------------------------------------------------- map

  #arrange() {
    const { store } = this.app;
    const groups = this.#groups();
    const parts = groups.flatMap((group) => group.parts);
    const shape = JSON.stringify(groups);
    this.sortedAt = store.now();
    const { focus } = this.map;
    const held = focus === null ? null : this.scene.at(focus.block, focus.gpu).card;
    this.scene.arrange(store, parts);
    this.scene.mark(this.alerts, this.forecasts);
    if (shape === this.shape) return;
    this.shape = shape;
    this.map.arrange(
      groups.map(({ key, parts }) => ({
        title: this.#titleOf(key),
        nodes: parts.map((part) => ({ name: part.node, gpus: part.gpus.length })),
      })),
    );
    if (held !== null) this.map.point(this.scene.find(held.node, held.facts.gpu));
  }

  /** @returns {Group[]} */
  #groups() {
    const views = this.#sorted();
    if (this.grouping === "run") return byRun(views);
    if (this.grouping === "risk") return byRisk(views, this.alerts, this.forecasts, this.app.store.now());
    return byNode(views);
  }

  /** @param {string} key of a group */
  #titleOf(key) {
    const { words } = this.app;
    if (this.grouping === "node") return null;
    if (this.grouping === "risk") return words.t(`risk.${key}`);
    return key === "" ? words.t("fleet.no_run") : key;
  }

  /** All nodes in the order of their names. */
  #sorted() {
    const { nodes } = this.app.store;
    if (this.names.length !== nodes.size || this.names.some((name) => !nodes.has(name)))
      this.names = inOrder(nodes.keys());
    return this.names.map((name) => /** @type {NodeView} */ (nodes.get(name)));
  }

  /** @param {number} index */
  #soon(index) {
    const foreseen = this.scene.foreseen[index];
    return foreseen === null ? "" : timeLeft(this.app.words, foreseen, true);
  }

  /** @param {number} block */
  #note(block) {
    const { words, store } = this.app;
    const { view, look } = this.scene.nodes[block];
    if (dataIn(look) !== "ok") return stateText(words, view, store.now());
    const ratio = ratioIn(look);
    return ratio === null ? "" : words.t("fleet.host", { percent: percent(words, ratio) });
  }

  /** @param {number} block @param {number | null} gpu */
  #open(block, gpu) {
    const { view, card } = this.scene.at(block, gpu);
    location.hash = card === null ? link("node", [view.info.node]) : link("gpu", [view.info.node, card.facts.gpu]);
  }

  /** @param {number} block @param {number | null} gpu */
  #describe(block, gpu) {
    const { view, card, foreseen } = this.scene.at(block, gpu);
    const { words, store } = this.app;
    const { node } = view.info;
    if (card === null) return [h("b", {}, node), ...this.#hostLines(view), ...(this.runs.get(node) ?? [])];
    const data = gpuData(card, nodeData(view, store.now()));
    const lines = [h("b", {}, `${node} · ${words.t("name.gpu", { gpu: card.facts.gpu })}`), card.facts.name];
    if (data === "ok") lines.push(...this.#memoryLines(card));
    else lines.push(words.t(data === "lost" ? "gpu.lost" : "gpu.no_data"), stateText(words, view, store.now()));
    if (foreseen !== null) lines.push(h("span", { class: "figure" }, foreseenSentence(words, foreseen)));
    const alerts = this.#alertsOf(node, card.facts.gpu)
      .filter((alert) => alert.id !== foreseen?.alert.id)
      .map((alert) => h("span", { class: "alerting" }, words.pick(alert.texts).summary));
    return [...lines, card.run ?? "", ...alerts].filter((line) => line !== "");
  }

  /** @param {import("../store.js").GpuView} card */
  #memoryLines(card) {
    const { words } = this.app;
    const used = `${gibOf(words, card.usedBytes, card.usableBytes)}\u2002${percent(words, gpuRatio(card))}`;
    return [
      h("span", { class: "figure" }, used),
      words.t("fleet.free", { free: gib(words, card.usableBytes - (card.usedBytes ?? 0)) }),
    ];
  }

  /** @param {NodeView} view */
  #hostLines(view) {
    const { words, store } = this.app;
    const host = hostUse(view);
    const now = store.now();
    if (host === null || nodeData(view, now) !== "ok") return [stateText(words, view, now)];
    const foreseen = this.forecasts.things.get(view.info.node);
    const used = `${words.t("host.memory")} ${gibOf(words, host.used, host.whole)}\u2002${percent(words, host.ratio)}`;
    return foreseen === undefined ? [used] : [used, h("span", { class: "figure" }, foreseenSentence(words, foreseen))];
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
      .join(this.app.words.t("text.and"));
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
