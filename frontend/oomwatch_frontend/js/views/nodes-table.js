// The table of nodes: all of a small fleet, and of a large one those that need somebody.

import { h, keyed, setText } from "../dom.js";
import { FEW_NODES } from "../fleet-canvas.js";
import { gibOf, percent, roughAge } from "../format.js";
import { hostUse, nodeData } from "../judge.js";
import { markIcon } from "../marks.js";
import { runLinks, table } from "../parts.js";
import { patch } from "../patch.js";
import { link, noteInAddress, parseRoute } from "../router.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */
/** @typedef {import("../judge.js").AlertIndex} AlertIndex */

const COLUMNS = ["node", "state", "run", "gpus", "used", "host", "sources"];
const NUMERIC = [3, 4, 5];

export class NodesTable {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.all = parseRoute(location.hash).query.nodes === "all";
    this.head = h("h2", {});
    this.more = h("button", { type: "button", hidden: true, click: () => this.#toggle() });
    this.body = h("tbody", {});
    this.table = table(
      app.words,
      COLUMNS.map((name) => app.words.t(`nodes.${name}`)),
      NUMERIC,
      this.body,
    );
    this.element = h(
      "section",
      { class: "nodes-side" },
      h("div", { class: "toolbar" }, this.head, this.more),
      this.table,
    );
    /** @type {() => void} */
    this.again = () => {};
  }

  #toggle() {
    this.all = !this.all;
    noteInAddress({ nodes: this.all ? "all" : "" });
    this.again();
  }

  /** @param {NodeView[]} views in the order to show them @param {AlertIndex} alerts @param {Map<string, string[]>} runs by node */
  draw(views, alerts, runs) {
    const { store, words } = this.app;
    this.again = () => this.draw(views, alerts, runs);
    const now = store.now();
    const many = views.length > FEW_NODES;
    const troubled = views.filter((view) => needsSomebody(view, alerts, now));
    const first = new Set(troubled);
    const shown = many && !this.all ? troubled : [...troubled, ...views.filter((view) => !first.has(view))];
    setText(this.head, many && !this.all ? words.count("nodes.needing", troubled.length) : words.t("nodes.title"));
    this.more.hidden = !many;
    setText(this.more, this.all ? words.t("nodes.fewer") : words.count("nodes.all", views.length));
    keyed(
      this.body,
      shown,
      (view) => view.info.node,
      () => h("tr", {}),
      (row, view) => this.#row(row, view, alerts, runs),
    );
    this.table.hidden = shown.length === 0;
  }

  /** @param {HTMLElement} element @param {NodeView} view @param {AlertIndex} alerts @param {Map<string, string[]>} byNode */
  #row(element, view, alerts, byNode) {
    const { words, store } = this.app;
    const now = store.now();
    const { node, facts } = view.info;
    const current = nodeData(view, now) === "ok";
    const host = current ? hostUse(view) : null;
    const known = current ? view.gpus.filter((gpu) => gpu.usedBytes !== null) : [];
    const used = known.reduce((sum, gpu) => sum + (gpu.usedBytes ?? 0), 0);
    const usable = known.reduce((sum, gpu) => sum + gpu.usableBytes, 0);
    const silent = facts.sources
      .filter((source) => source.state !== "ok")
      .map((source) => words.t("sources.one", { name: source.name, state: words.t(`sources.${source.state}`) }));
    const runs = byNode.get(node) ?? [];
    const texts = [
      stateText(words, view, now),
      runs.join(words.t("text.and")),
      String(view.gpus.length),
      usable > 0 ? `${gibOf(words, used, usable)}\u2002${percent(words, used / usable)}` : "–",
      host === null ? "–" : `${gibOf(words, host.used, host.whole)}\u2002${percent(words, host.ratio)}`,
      silent.length === 0 ? words.t("sources.all_ok") : silent.join(words.t("sources.and")),
    ];
    const level = alerts.nodes.get(node) ?? null;
    const shape = JSON.stringify([runs, level, current]);
    if (element.dataset.shape === shape) {
      texts.forEach((text, index) => index !== 1 && setText(element.children[index + 1], text)); // the runs are links
      return;
    }
    element.dataset.shape = shape;
    element.className = current ? "" : "not-current";
    const mark = level !== null ? markIcon(level, words.t(`mark.${level}`)) : current ? null : markIcon("stale");
    const cells = [h("span", { class: "name" }, mark, h("a", { href: link("node", [node]) }, node)), ...texts];
    cells[2] = runLinks(runs);
    patch(element, ...cells.map((cell, index) => h("td", { class: NUMERIC.includes(index) ? "number" : null }, cell)));
  }
}

/** Whether a person should look at a node. @param {NodeView} view @param {AlertIndex} alerts @param {number} now */
function needsSomebody(view, alerts, now) {
  const { node, state, facts } = view.info;
  if (state === "stopped") return false; // it said goodbye
  if (nodeData(view, now) !== "ok" || alerts.hosts.has(node)) return true;
  if (facts.sources.some((source) => !["ok", "waiting", "missing"].includes(source.state))) return true;
  return view.gpus.some((gpu) => gpu.status !== "ok");
}

/** How a node is: in words that say since when. @param {import("../i18n.js").Words} words @param {NodeView} view @param {number} now */
export function stateText(words, view, now) {
  const { state } = view.info;
  const ago = roughAge(words, now - view.heardAt);
  if (state === "stopped") return words.t("node.stopped", { age: ago });
  if (state === "silent") return words.t("node.silent", { age: ago });
  return nodeData(view, now) === "ok" ? words.t("node.live") : words.t("node.stale", { age: ago });
}
