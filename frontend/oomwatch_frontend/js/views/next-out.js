// The list of what runs out next: what is foreseen first, soonest first, then what has an alert, the worst first, then what is
// closest to full. Ten rows at most.

import { h } from "../dom.js";
import { isForeseen, isJudged } from "../foreseen.js";
import { duration, gibOf, isDue, percent, roughAge, timeAndSteps } from "../format.js";
import { bandOf } from "../fleet-look.js";
import { LEVELS, fullest, fullnessOf, gpuRatio, hostUse } from "../judge.js";
import { markIcon, signIcon } from "../marks.js";
import { link } from "../router.js";
import { gpuKey } from "../store.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../judge.js").AlertIndex} AlertIndex */
/** @typedef {import("../judge.js").Level} Level */
/** @typedef {import("../judge.js").Sign} Sign */
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
  if (isDue(seconds, steps)) return words.t("figure.now");
  if (seconds !== null) return seconds < ROUGHLY_FROM && !roughly ? duration(words, seconds) : roughAge(words, seconds);
  return words.count("figure.steps", Math.round(steps ?? 0));
}

/** The same as a sentence: in time and steps, and where. @param {Words} words @param {Foreseen} foreseen */
export function foreseenSentence(words, { seconds, steps, alert }) {
  const { until_ratio: until } = alert.facts;
  const isOfAll = typeof until !== "number" || until >= 1;
  if (isDue(seconds, steps)) return isOfAll ? words.t("fleet.full_due") : words.t("fleet.reaches_now", { share: percent(words, until) });
  const time = timeAndSteps(words, seconds, steps);
  return isOfAll ? words.t("fleet.full_in", { time }) : words.t("fleet.reaches", { time, share: percent(words, until) });
}

export class NextOut {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.element = h("ol", { class: "full" });
    this.nothing = h("li", { class: "nothing" }, app.words.t("fleet.nothing_current"));
    /** By the row's key, in their order. @type {Map<string, Line>} */
    this.lines = new Map();
  }

  /** @param {AlertIndex} alerts @param {Forecasts} forecasts @param {Map<string, string[]>} runs by node */
  draw(alerts, forecasts, runs) {
    const { store } = this.app;
    const rows = nextOut(store, forecasts, ROWS, alerts);
    this.element.classList.toggle("untimed", rows.every((row) => this.#time(row, runs) === ""));
    this.#arrange(rows.map((row) => row.key));
    for (const row of rows) this.#write(/** @type {Line} */ (this.lines.get(row.key)), row, alerts, runs);
    if (rows.length === 0 && store.nodes.size > 0) this.element.append(this.nothing);
    else this.nothing.remove();
  }

  /** A line for each key, in that order. In a fleet that works the list is another each second: lines are used again. @param {string[]} keys */
  #arrange(keys) {
    const wanted = new Set(keys);
    const gone = [...this.lines].flatMap(([key, line]) => (wanted.has(key) ? [] : [line]));
    const spare = gone.filter((line) => !line.element.contains(document.activeElement)); // else Enter would lead elsewhere
    const lines = new Map(keys.map((key) => [key, this.lines.get(key) ?? spare.pop() ?? new Line(this.app.words)]));
    const kept = new Set(lines.values());
    for (const line of gone) if (!kept.has(line)) line.element.remove();
    this.lines = lines;
    let place = this.element.firstElementChild;
    for (const { element } of lines.values()) {
      if (element === place) place = place.nextElementSibling;
      else this.element.insertBefore(element, place);
    }
  }

  /** @param {Line} line @param {Row} row @param {AlertIndex} alerts @param {Map<string, string[]>} runs */
  #write(line, row, alerts, runs) {
    const { words } = this.app;
    const { node, gpu, foreseen, used, whole } = row;
    const key = gpu === null ? node : gpuKey(node, gpu.facts.gpu);
    const level = (gpu === null ? alerts.nodes : alerts.gpus).get(key) ?? "ok";
    const ratio = gpu !== null ? gpuRatio(gpu) : used === null || !whole ? null : used / whole;
    const amount = gibOf(words, used, whole);
    line.shape(level, alerts.signs.get(key) ?? "none", foreseen !== null);
    line.lead(hrefOf(row), foreseen === null ? amount : `${foreseenSentence(words, foreseen)} · ${amount}`);
    line.fill(level === "warning" || level === "critical" ? level : `band-${bandOf(ratio ?? 0)}`, ratio ?? 0, percent(words, ratio));
    line.say({
      time: this.#time(row, runs),
      node,
      what: gpu !== null ? words.t("name.gpu", { gpu: gpu.facts.gpu }) : (row.path ?? words.t("host.short")),
      run: gpu === null ? (runs.get(node) ?? []).join(words.t("text.and")) : (gpu.run ?? ""),
      amount,
    });
  }

  /** What is not foreseen is called steady only where a rule looks for growth and has seen enough. @param {Row} row @param {Map<string, string[]>} runs by node */
  #time(row, runs) {
    const { store, words } = this.app;
    if (row.foreseen !== null) return timeLeft(words, row.foreseen);
    if (!isForeseen(store.rules, row.gpu === null ? "host" : "gpu")) return "";
    const working = row.gpu === null ? (runs.get(row.node) ?? []) : row.gpu.run === null ? [] : [row.gpu.run];
    const judged = (working.length === 0 ? [null] : working).every((run) => isJudged(store, run));
    return words.t(judged ? "fleet.steady" : "fleet.unjudged");
  }
}

/** One line of the list. Ten of them change each second, so each part is touched only where it is another. */
class Line {
  /** @param {import("../i18n.js").Words} words */
  constructor(words) {
    this.words = words;
    this.shaped = "";
    this.filled = "";
    /** @type {Element} */
    this.mark = h("span", { class: "mark" });
    this.texts = { time: new Text(), node: new Text(), what: new Text(), run: new Text(), amount: new Text(), share: new Text() };
    const { time, node, what, run, amount, share } = this.texts;
    this.time = h("span", { class: "time" }, time);
    this.tone = h("i");
    this.meter = h("span", { class: "meter", role: "img" }, this.tone);
    this.link = h(
      "a",
      {},
      this.mark,
      this.time,
      h("span", { class: "where" }, h("span", {}, node), h("b", {}, what)),
      h("span", { class: "run" }, run),
      h("span", { class: "amount" }, amount),
      h("span", { class: "percent" }, share),
      this.meter,
    );
    this.element = h("li", {}, this.link);
  }

  /** @param {Level} level @param {Sign} sign @param {boolean} foreseen */
  shape(level, sign, foreseen) {
    const state = `${level} ${sign} ${foreseen}`;
    if (state === this.shaped) return;
    this.shaped = state;
    const mark = markOf(this.words, level, sign);
    this.mark.replaceWith(mark);
    this.mark = mark;
    this.time.className = foreseen ? "time" : "time steady";
  }

  /** @param {string} href @param {string} title */
  lead(href, title) {
    if (this.link.getAttribute("href") !== href) this.link.setAttribute("href", href);
    if (this.link.title !== title) this.link.title = title;
  }

  /** @param {string} tone @param {number} ratio @param {string} share as it is written */
  fill(tone, ratio, share) {
    const state = `${tone} ${Math.min(100, ratio * 100).toFixed(1)}`;
    if (state === this.filled) return;
    this.filled = state;
    this.tone.className = `tone-${tone}`;
    this.tone.style.width = `${state.split(" ")[1]}%`;
    if (this.texts.share.data === share) return;
    this.texts.share.data = share;
    this.meter.setAttribute("aria-label", share);
  }

  /** @param {{ time: string, node: string, what: string, run: string, amount: string }} texts */
  say(texts) {
    for (const [name, text] of Object.entries(texts)) {
      const shown = this.texts[/** @type {keyof typeof texts} */ (name)];
      if (shown.data !== text) shown.data = text;
    }
  }
}

/** @param {import("../i18n.js").Words} words @param {Level} level @param {Sign} sign */
function markOf(words, level, sign) {
  if (sign === "muted") return signIcon("muted", words.t("mute.tag"));
  return level === "ok" ? h("span", { class: "mark" }) : markIcon(level, words.t(`mark.${level}`));
}

/** Where more is told of it. @param {Row} row */
function hrefOf({ foreseen, gpu, node }) {
  if (foreseen !== null) return link("alerts", [], { id: foreseen.alert.id });
  return gpu === null ? link("node", [node]) : link("gpu", [node, gpu.facts.gpu]);
}
