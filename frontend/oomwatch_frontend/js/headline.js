// The one sentence that says how things stand. Pure: the same for the page, the tab's title and the icon.

import { age } from "./format.js";
import { openGroups, titleOf, unacknowledged } from "./groups.js";
import { gpuData, gpuRatio, levelOf, memoryLimits, nodeData, runsOf } from "./judge.js";
import { foreseenBy, isForeseen, isJudged } from "./foreseen.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./i18n.js").Words} Words */
/** @typedef {import("./groups.js").Group} Group */
/** @typedef {import("./judge.js").Level | "stale" | "lost"} Mark */
/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {{ mark: Mark, sentence: string, alert: string | null }} Headline */

/** @param {Mark} mark @param {string} sentence @param {string | null} [alert] id @returns {Headline} */
const say = (mark, sentence, alert = null) => ({ mark, sentence, alert });

/** @param {Store} store @param {Words} words @returns {Headline} */
export function headline(store, words) {
  const groups = openGroups(store.alerts.values());
  return (
    ofConnection(store, words) ??
    ofAlerts(store, groups, words) ??
    ofData(store, words) ??
    ofMuted(groups, words) ??
    ofMemory(store, words)
  );
}

const BLINK_SECONDS = 3; // a break this short is over before it could be read

/** Whether what is shown is what is. @param {Store} store */
export function isCurrent(store) {
  const { phase } = store.connection;
  return phase === "live" || (phase === "reconnecting" && ageOf(store) < BLINK_SECONDS);
}

/** How old what is shown is, seconds. @param {Store} store */
const ageOf = (store) => (store.newestAt === null ? 0 : store.now() - store.newestAt);

/** @param {Store} store @param {Words} words */
function ofConnection(store, words) {
  const { phase, failed } = store.connection;
  if (isCurrent(store)) return null;
  if (phase === "ended" && store.newestAt === null) return say("stale", words.t("state.ended_unseen"));
  if (phase === "ended") return say("stale", words.t("state.ended", { age: age(words, ageOf(store)) }));
  if (phase === "connecting") return say("stale", words.t(failed ? "state.unreachable" : "state.connecting"));
  return say("stale", words.t("state.reconnecting", { age: age(words, ageOf(store)) }));
}

/** What nobody takes care of yet comes first, then what somebody does, then what may become one. @param {Store} store @param {Group[]} groups @param {Words} words */
function ofAlerts(store, groups, words) {
  const open = groups.filter((group) => group.standing === "open");
  const told = toldGroups(store, open);
  if (told.length === 0) return ofPending(open, words);
  const [{ id, acknowledged }] = told[0].alerts;
  const level = levelOf(told[0].alerts[0]);
  const summary = worstOf(words, told);
  if (unacknowledged(told[0]).length > 0) return say(level, ofRisk(store, told, words, summary), id);
  if (told.length > 1) return say(level, words.t("state.all_acknowledged", { n: told.length, summary }), id);
  return say(level, words.t("state.acknowledged", { by: acknowledged?.by ?? "", summary }), id);
}

/** What fires and nobody takes care of, else all that fires; of what is equally grave, what has happened, then what runs out first. @param {Store} store @param {Group[]} open */
function toldGroups(store, open) {
  const firing = open.filter(isFiring);
  const unseen = firing.filter((group) => unacknowledged(group).length > 0);
  const told = unseen.length > 0 ? unseen : firing;
  if (told.length < 2) return told;
  const gravest = levelOf(told[0].alerts[0]);
  const left = (/** @type {Group} */ { alerts: [alert] }) => (levelOf(alert) === gravest ? secondsLeft(store, alert) : Infinity);
  const first = told.reduce((a, b) => (left(b) < left(a) ? b : a));
  return [first, ...told.filter((group) => group !== first)];
}

/** Until what an alert warns of: -1 where it tells of what has happened. @param {Store} store @param {Alert} alert */
function secondsLeft({ rules, runs }, alert) {
  const conditions = rules.filter((rule) => rule.alert === alert.alert).flatMap((rule) => rule.when);
  if (conditions.length > 0 && conditions.every(({ kind }) => kind === "event")) return -1;
  return foreseenBy(alert, runs)?.seconds ?? Infinity;
}

/** The alert that the sentence is about, for whoever tells more of it. @param {Store} store @returns {Alert | null} null: nothing fires that nobody takes care of */
export function worstAlert(store) {
  if (!isCurrent(store)) return null;
  const open = openGroups(store.alerts.values()).filter((group) => group.standing === "open");
  const [first] = toldGroups(store, open);
  return first === undefined || unacknowledged(first).length === 0 ? null : first.alerts[0];
}

/** Runs come before their cards: whose run it is, is what a reader looks for. @param {Store} store @param {Group[]} told @param {Words} words @param {string} summary */
function ofRisk(store, told, words, summary) {
  const grave = told.filter((group) => levelOf(group.alerts[0]) !== "watch");
  const runs = [...new Set(grave.flatMap((group) => runsOf(store, group.alerts[0])))];
  if (runs.length === 0) return told.length > 1 ? words.t("state.alerts", { n: told.length, summary }) : summary;
  if (runs.length === 1 && summary.split(/[^\w.-]+/).includes(runs[0])) return summary; // it names the run itself
  return words.count("state.risk", runs.length, { run: runs[0], summary });
}

/** What is said of some groups: of one how much it is true of, of several the worst alert alone. @param {Words} words @param {Group[]} groups */
function worstOf(words, groups) {
  return groups.length === 1 ? titleOf(words, groups[0]) : words.pick(groups[0].alerts[0].texts).summary;
}

/** @param {Group[]} open none of which fires @param {Words} words */
function ofPending(open, words) {
  if (open.length === 0) return null;
  const sentence = words.count("state.pending", open.length, { summary: worstOf(words, open) });
  return say("watch", sentence, open[0].alerts[0].id);
}

/** Nobody is sent word of these, so nothing may be called well over them. @param {Group[]} groups @param {Words} words */
function ofMuted(groups, words) {
  const muted = groups.filter((group) => group.standing === "muted" && isFiring(group));
  if (muted.length === 0) return null;
  const sentence = words.count("state.muted", muted.length, { summary: worstOf(words, muted) });
  return say("watch", sentence, muted[0].alerts[0].id);
}

/** @param {Group} group */
const isFiring = (group) => group.alerts.some((alert) => alert.state === "firing");

/** How many there are that nobody takes care of yet. @param {Iterable<import("./wire.js").Alert>} alerts */
export const openCount = (alerts) =>
  openGroups(alerts).filter((group) => group.standing === "open" && unacknowledged(group).length > 0).length;

/** Nodes and GPUs that say nothing are worth a word even where no rule watches them. @param {Store} store @param {Words} words */
function ofData(store, words) {
  if (store.nodes.size === 0) return say("stale", words.t("state.no_nodes"));
  const now = store.now();
  const views = [...store.nodes.values()];
  const gpus = views.flatMap((view) => view.gpus.map((gpu) => gpuData(gpu, nodeData(view, now))));
  const lost = gpus.filter((data) => data === "lost").length;
  if (lost > 0) return say("lost", words.count("state.lost", lost));
  const quiet = views.filter((view) => view.info.state !== "stopped" && nodeData(view, now) !== "ok");
  if (quiet.length > 0) return say("stale", words.count("state.silent", quiet.length, { node: quiet[0].info.node }));
  if (gpus.length === 0) return say("stale", words.count("state.no_gpus", views.length));
  const current = gpus.filter((data) => data === "ok").length;
  if (current === 0) return say("stale", words.t("state.all_stopped"));
  const running = views.filter((view) => view.info.state === "live").reduce((sum, view) => sum + view.gpus.length, 0);
  return running > current ? say("stale", words.count("state.no_data", running - current)) : null;
}

/** @param {Store} store @param {Words} words */
function ofMemory(store, words) {
  const limit = memoryLimits(store)[0]?.ratio ?? 1;
  const now = store.now();
  let known = 0;
  let full = 0;
  for (const view of store.nodes.values()) {
    if (nodeData(view, now) !== "ok") continue;
    known += view.gpus.length;
    full += view.gpus.filter((gpu) => (gpuRatio(gpu) ?? 0) > limit).length;
  }
  if (full > 0) return say("watch", words.count("state.above", full, { limit: Math.round(limit * 100) }));
  return say("ok", ofGrowth(store, words, words.count("state.headroom", known)));
}

/** Headroom is what there is now. Whether it lasts is not known of a run of which too little was seen. @param {Store} store @param {Words} words @param {string} headroom */
function ofGrowth(store, words, headroom) {
  if (!isForeseen(store.rules, "gpu")) return headroom;
  const now = store.now();
  const current = [...store.nodes.values()].filter((view) => nodeData(view, now) === "ok");
  const runs = new Set(current.flatMap((view) => view.gpus.flatMap((gpu) => gpu.run ?? [])));
  const unjudged = [...runs].filter((run) => !isJudged(store, run));
  return unjudged.length === 0 ? headroom : words.count("state.unjudged", unjudged.length, { headroom, run: unjudged[0] });
}
