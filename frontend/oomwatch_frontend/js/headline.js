// The one sentence that says how things stand. Pure: the same for the page, the tab's title and the icon.

import { age } from "./format.js";
import { openGroups, titleOf, unacknowledged } from "./groups.js";
import { gpuData, gpuRatio, levelOf, memoryLimits, nodeData } from "./judge.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./i18n.js").Words} Words */
/** @typedef {import("./groups.js").Group} Group */
/** @typedef {import("./judge.js").Level | "stale" | "lost"} Mark */
/** @typedef {{ mark: Mark, sentence: string, alert: string | null }} Headline */

/** @param {Mark} mark @param {string} sentence @param {string | null} [alert] id @returns {Headline} */
const say = (mark, sentence, alert = null) => ({ mark, sentence, alert });

/** @param {Store} store @param {Words} words @returns {Headline} */
export function headline(store, words) {
  const groups = openGroups(store.alerts.values());
  return (
    ofConnection(store, words) ??
    ofAlerts(groups, words) ??
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
  if (phase === "connecting") return say("stale", words.t(failed ? "state.unreachable" : "state.connecting"));
  return say("stale", words.t("state.reconnecting", { age: age(words, ageOf(store)) }));
}

/** What nobody takes care of yet comes first, then what somebody does, then what may become one. @param {Group[]} groups @param {Words} words */
function ofAlerts(groups, words) {
  const open = groups.filter((group) => group.standing === "open");
  const firing = open.filter(isFiring);
  const unseen = firing.filter((group) => unacknowledged(group).length > 0);
  const told = unseen.length > 0 ? unseen : firing;
  if (told.length === 0) return ofPending(open, words);
  const [{ id, acknowledged }] = told[0].alerts;
  const level = levelOf(told[0].alerts[0]);
  const summary = worstOf(words, told);
  if (told.length > 1) {
    const key = unseen.length > 0 ? "state.alerts" : "state.all_acknowledged";
    return say(level, words.t(key, { n: told.length, summary }), id);
  }
  if (unseen.length > 0) return say(level, summary, id);
  return say(level, words.t("state.acknowledged", { by: acknowledged?.by ?? "", summary }), id);
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
  return say("ok", words.count("state.headroom", known));
}
