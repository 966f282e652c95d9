// The list of what is closest to full: GPUs and hosts, ten rows at most.

import { fill, h, keyed } from "../dom.js";
import { bandOf } from "../fleet-paint.js";
import { gibOf, percent } from "../format.js";
import { fullest } from "../judge.js";
import { markIcon } from "../marks.js";
import { bar } from "../parts.js";
import { link } from "../router.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../judge.js").AlertIndex} AlertIndex */
/** @typedef {import("../judge.js").Fullness} Fullness */

const ROWS = 10;

export class FullestList {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.element = h("ol", { class: "full" });
  }

  /** @param {AlertIndex} alerts @param {Map<string, string[]>} runs by node */
  draw(alerts, runs) {
    const { store, words } = this.app;
    const items = fullest(store, ROWS);
    keyed(
      this.element,
      items,
      (item) => item.key,
      () => h("li", {}),
      (row, item) => this.#row(row, item, alerts, runs),
    );
    if (items.length === 0 && store.nodes.size > 0) fill(this.element, h("li", { class: "nothing" }, words.t("fleet.nothing_current")));
  }

  /** @param {HTMLElement} element @param {Fullness} item @param {AlertIndex} alerts @param {Map<string, string[]>} runs */
  #row(element, item, alerts, runs) {
    const { words } = this.app;
    const level = (item.gpu === null ? alerts.nodes : alerts.gpus).get(item.key) ?? "ok";
    const tone = level === "warning" || level === "critical" ? level : `band-${bandOf(item.ratio)}`;
    const run = item.gpu === null ? (runs.get(item.node) ?? []).join(", ") : item.gpu.run;
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
        h(
          "span",
          { class: "where" },
          item.node,
          h("b", {}, item.gpu === null ? words.t("host.short") : words.t("name.gpu", { gpu: item.gpu.facts.gpu })),
        ),
        h("span", { class: "run" }, figures[3]),
        h("span", { class: "amount" }, figures[0]),
        h("span", { class: "percent" }, figures[1]),
        bar(words, item.ratio, tone),
      ),
    );
  }
}
