// Finding a run, node, GPU or alert by some letters. Pure.

import { openAlerts } from "./judge.js";
import { link } from "./router.js";
import { gpuKey } from "./store.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./i18n.js").Words} Words */
/** @typedef {"run" | "node" | "gpu" | "alert"} Kind */
/** @typedef {{ kind: Kind, title: string, note: string, href: string, text: string }} Entry text: what is searched, in small letters */
/** @typedef {{ found: Entry[], more: number }} Found */

/** How many of each kind are listed, in this order. @type {Record<Kind, number>} */
const MOST = { run: 4, node: 5, gpu: 6, alert: 5 };

/** UUIDs of GPUs, by gpuKey: those that were asked for. @typedef {Map<string, string>} Uuids */

/** All that can be found. @param {Store} store @param {Words} words @param {Uuids} [uuids] @returns {Entry[]} */
export function entriesOf(store, words, uuids = new Map()) {
  return [...runEntries(store), ...nodeEntries(store, words, uuids), ...alertEntries(store, words)];
}

/** @param {Omit<Entry, "text">} entry @param {...string | null} also what it is found by too @returns {Entry} */
const entry = (entry, ...also) => ({ ...entry, text: [entry.title, ...also.flatMap((one) => one ?? [])].join(" ").toLowerCase() });

/** @param {Store} store @returns {Entry[]} */
function runEntries(store) {
  return [...store.runs.values()].map(({ run, config }) => {
    const model = config["actor_rollout_ref.model.path"];
    const note = typeof model === "string" ? model : "";
    return entry({ kind: "run", title: run, note, href: link("run", [run]) }, note);
  });
}

/** @param {Store} store @param {Words} words @param {Uuids} uuids @returns {Entry[]} */
function nodeEntries(store, words, uuids) {
  /** @type {Entry[]} */
  const gpus = [];
  const nodes = [...store.nodes.values()].map(({ info, gpus: cards }) => {
    const { node, facts } = info;
    for (const card of cards) {
      const { gpu, name } = card.facts;
      const uuid = card.facts.uuid ?? uuids.get(gpuKey(node, gpu)) ?? null;
      const title = `${node} · ${words.t("name.gpu", { gpu })}`;
      const also = [`gpu ${gpu} ${node}:${gpu}`, uuid, name, card.run];
      gpus.push(entry({ kind: "gpu", title, note: card.run ?? name, href: link("gpu", [node, gpu]) }, ...also));
    }
    const also = [facts.host?.hostname ?? null, ...(facts.host?.addresses ?? [])];
    return entry({ kind: "node", title: node, note: info.run ?? "", href: link("node", [node]) }, ...also);
  });
  return [...nodes, ...gpus];
}

/** @param {Store} store @param {Words} words @returns {Entry[]} */
function alertEntries(store, words) {
  return openAlerts(store.alerts.values()).map((alert) => {
    const { summary } = words.pick(alert.texts);
    const href = link("alerts", [], { id: alert.id });
    return entry({ kind: "alert", title: summary, note: alert.alert, href }, alert.alert, ...Object.values(alert.labels));
  });
}

/**
 * What has every word of the query in it, some of each kind: those that begin with it first, then those with it at the
 * beginning of a word.
 * @param {Entry[]} entries @param {string} query @returns {Found}
 */
export function search(entries, query) {
  const wanted = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (wanted.length === 0) return { found: [], more: 0 };
  const hits = entries.filter(({ text }) => wanted.every((word) => text.includes(word)));
  const found = /** @type {Kind[]} */ (Object.keys(MOST)).flatMap((kind) =>
    hits
      .filter((hit) => hit.kind === kind)
      .map((hit) => ({ hit, rank: rankOf(hit.text, wanted[0]) }))
      .sort((a, b) => a.rank - b.rank)
      .slice(0, MOST[kind])
      .map(({ hit }) => hit),
  );
  return { found, more: hits.length - found.length };
}

const UUID_PART_CHARS = 6; // fewer letters are in many of them

const UUID_LIKE = /^(gpu-|mig-)?[0-9a-f-]+$/;

/**
 * What the server is asked to find in UUIDs: the longest word, of those that look like part of one if there are any.
 * @param {string} query @returns {string | null} null: none is long enough
 */
export function partOfUuid(query) {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word.length >= UUID_PART_CHARS);
  const alike = words.filter((word) => UUID_LIKE.test(word));
  const longestFirst = (alike.length ? alike : words).sort((one, other) => other.length - one.length);
  return longestFirst[0] ?? null;
}

/** @param {string} text @param {string} word */
function rankOf(text, word) {
  const at = text.indexOf(word);
  if (at === 0) return text[word.length] === " " || text.length === word.length ? 0 : 1;
  return /[\p{L}\p{N}]/u.test(text[at - 1]) ? 3 : 2;
}
