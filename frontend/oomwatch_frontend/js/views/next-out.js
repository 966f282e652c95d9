// The list of what runs out next: what is foreseen first, soonest first, then what has an alert, the worst first, then what is
// closest to full. Ten rows at most.

import { fill, h, keyed } from "../dom.js";
import { isForeseen } from "../foreseen.js";
import { duration, gibOf, percent, roughAge } from "../format.js";
import { bandOf } from "../fleet-look.js";
import { LEVELS, fullest, fullnessOf, gpuRatio, hostUse } from "../judge.js";
import { markIcon, signIcon } from "../marks.js";
import { bar } from "../parts.js";
import { link } from "../router.js";
import { gpuKey } from "../store.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../judge.js").AlertIndex} AlertIndex */
/** @typedef {import("../foreseen.js").Forecasts} Forecasts */
/** @typedef {import("../foreseen.js").Foreseen} Foreseen */
/** @typedef {import("../store.js").Store} Store */
/** @typedef {import("../i18n.js").Words} Words */

/**
 * @typedef {object} Row
 * @property {string} key
 * @property {string} node
 * @property {import("../store.js").GpuView | null} gpu null: something of the node
 * @property {string | null} path of a disk
 * @property {Foreseen | null} foreseen
 * @property {number | null} used bytes
 * @property {number | null} whole bytes
 */

export const ROWS = 10;
const GRAVE = LEVELS.indexOf("warning"); // what is only to be watched stands where its memory puts it
const ROUGHLY_FROM = 3 * 3600; // seconds: of what is so far off nobody believes the minutes

/** @param {Store} store @param {Forecasts} forecasts @param {number} [count] @param {AlertIndex | null} [alerts] @returns {Row[]} */
export function nextOut(store, forecasts, count = ROWS, alerts = null) {
  const rows = forecasts.soonest.slice(0, count).map((one) => rowOf(store, one));
  const taken = new Set(forecasts.things.keys());
  for (const one of [...(alerts === null ? [] : alerting(store, alerts)), ...fullest(store, count)]) {
    if (rows.length >= count) break;
    if (taken.has(one.key)) continue;
    taken.add(one.key);
    rows.push({ key: one.key, node: one.node, gpu: one.gpu, path: null, foreseen: null, used: one.used, whole: one.whole });
  }
  return rows;
}

/** What an alert is about and has current data: the worst first, then the fullest. @param {Store} store @param {AlertIndex} alerts */
function alerting(store, alerts) {
  const now = store.now();
  const found = [...alerts.gpus, ...alerts.nodes].flatMap(([key, level]) => {
    const rank = LEVELS.indexOf(level);
    const one = rank < GRAVE ? null : fullnessOf(store, key, now);
    return one === null ? [] : [{ ...one, rank }];
  });
  return found.sort((a, b) => b.rank - a.rank || b.ratio - a.ratio);
}

/** @param {Store} store @param {Foreseen} foreseen @returns {Row} */
function rowOf(store, foreseen) {
  const { node, gpu } = foreseen.alert.labels;
  const view = store.nodes.get(node);
  const card = view?.gpus.find(({ facts }) => facts.gpu === gpu) ?? null;
  const { path, used_bytes, limit_bytes } = foreseen.alert.facts;
  const row = { key: foreseen.key, node, gpu: card, path: typeof path === "string" ? path : null, foreseen };
  if (card !== null) return { ...row, used: card.usedBytes, whole: card.usableBytes };
  const told = { used: numeric(used_bytes), whole: numeric(limit_bytes) };
  const host = foreseen.thing !== "host" || view === undefined ? null : hostUse(view);
  return { ...row, ...(host === null ? told : { used: host.used, whole: host.whole }) };
}

/** @param {string | number | undefined} value */
const numeric = (value) => (typeof value === "number" ? value : null);

/** How long something has, in a few letters. @param {Words} words @param {Foreseen} foreseen @param {boolean} [roughly] in one unit */
export function timeLeft(words, { seconds, steps }, roughly = false) {
  if ((seconds ?? steps ?? 0) < 1) return words.t("fleet.due");
  if (seconds !== null) return seconds < ROUGHLY_FROM && !roughly ? duration(words, seconds) : roughAge(words, seconds);
  return words.count("figure.steps", Math.round(steps ?? 0));
}

/** The same as a sentence: in time and steps, and where. @param {Words} words @param {Foreseen} foreseen */
export function foreseenSentence(words, { seconds, steps, alert }) {
  const left = [
    seconds === null ? null : duration(words, seconds),
    steps === null ? null : words.count("figure.steps", Math.round(steps)),
  ].filter((text) => text !== null);
  const { until_ratio: until } = alert.facts;
  const isOfAll = typeof until !== "number" || until >= 1;
  if (isOfAll && (seconds ?? steps ?? 0) < 1) return words.t("fleet.full_due");
  const [first, ...more] = left;
  const time = more.length === 0 ? first : words.t("figure.time_and_steps", { time: first, steps: more[0] });
  if (!isOfAll) return words.t("fleet.reaches", { time, share: percent(words, until) });
  return words.t("fleet.full_in", { time });
}

export class NextOut {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.element = h("ol", { class: "full" });
  }

  /** @param {AlertIndex} alerts @param {Forecasts} forecasts @param {Map<string, string[]>} runs by node */
  draw(alerts, forecasts, runs) {
    const { store, words } = this.app;
    const rows = nextOut(store, forecasts, ROWS, alerts);
    this.element.classList.toggle("untimed", rows.every((row) => this.#time(row) === ""));
    keyed(
      this.element,
      rows,
      (row) => row.key,
      () => h("li", {}),
      (element, row) => this.#row(element, row, alerts, runs),
    );
    if (rows.length === 0 && store.nodes.size > 0) fill(this.element, h("li", { class: "nothing" }, words.t("fleet.nothing_current")));
  }

  /** @param {HTMLElement} element @param {Row} row @param {AlertIndex} alerts @param {Map<string, string[]>} runs */
  #row(element, row, alerts, runs) {
    const { words } = this.app;
    const key = row.gpu === null ? row.node : gpuKey(row.node, row.gpu.facts.gpu);
    const level = (row.gpu === null ? alerts.nodes : alerts.gpus).get(key) ?? "ok";
    const ratio = row.gpu !== null ? gpuRatio(row.gpu) : row.used === null || !row.whole ? null : row.used / row.whole;
    const run = row.gpu === null ? (runs.get(row.node) ?? []).join(", ") : (row.gpu.run ?? "");
    const shown = {
      level,
      sign: alerts.signs.get(key) ?? "none",
      time: this.#time(row),
      why: row.foreseen === null ? "" : foreseenSentence(words, row.foreseen),
      run,
      amount: gibOf(words, row.used, row.whole),
      share: percent(words, ratio),
    };
    const state = JSON.stringify(shown);
    if (element.dataset.state === state) return;
    element.dataset.state = state;
    fill(element, this.#line(row, shown, ratio ?? 0));
  }

  /** What is not foreseen is called steady only where a rule looks for growth. @param {Row} row */
  #time(row) {
    const { store, words } = this.app;
    if (row.foreseen !== null) return timeLeft(words, row.foreseen);
    return isForeseen(store.rules, row.gpu === null ? "host" : "gpu") ? words.t("fleet.steady") : "";
  }

  /**
   * @param {Row} row @param {{ level: import("../judge.js").Level, sign: import("../judge.js").Sign, time: string, why: string, run: string, amount: string, share: string }} shown
   * @param {number} ratio
   */
  #line(row, { level, sign, time, why, run, amount, share }, ratio) {
    const { words } = this.app;
    const href =
      row.foreseen !== null
        ? link("alerts", [], { id: row.foreseen.alert.id })
        : row.gpu === null
          ? link("node", [row.node])
          : link("gpu", [row.node, row.gpu.facts.gpu]);
    const what =
      row.gpu !== null ? words.t("name.gpu", { gpu: row.gpu.facts.gpu }) : (row.path ?? words.t("host.short"));
    const tone = level === "warning" || level === "critical" ? level : `band-${bandOf(ratio)}`;
    const mark = sign === "muted" ? signIcon("muted", words.t("mute.tag")) : level === "ok" ? h("span", { class: "mark" }) : markIcon(level, words.t(`mark.${level}`));
    return h(
      "a",
      { href, title: [why, amount].filter((text) => text !== "").join(" · ") },
      mark,
      h("span", { class: row.foreseen === null ? "time steady" : "time" }, time),
      h("span", { class: "where" }, row.node, h("b", {}, what)),
      h("span", { class: "run" }, run),
      h("span", { class: "amount" }, amount),
      h("span", { class: "percent" }, share),
      bar(words, ratio, tone),
    );
  }
}
