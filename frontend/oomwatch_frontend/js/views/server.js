// The server itself: whether it does its work, and how large its database is and becomes.

import { ApiError, ask, askBeside } from "../api.js";
import { Part, h } from "../dom.js";
import { Problem, quoted } from "../elements/problem.js";
import { UNKNOWN, clockTime, percent, size, stretch } from "../format.js";
import { markIcon } from "../marks.js";
import { aged, facts, nothing, row, section, table } from "../parts.js";
import { readReady, readStorage } from "../storagewire.js";
import { WireError } from "../wire.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../storagewire.js").Storage} Storage */
/** @typedef {import("../storagewire.js").HistorySize} HistorySize */
/** @typedef {import("../storagewire.js").Ready} Ready */

const AGAIN_MS = 60_000; // it is measured every ten minutes, and what it notices of itself is told at any moment
const NUMERIC = [1, 2, 3];
const HEADS = ["server.kept", "server.size", "server.share", "server.blocks", "server.oldest", "server.newest"];
const KEPT = { raw: "server.kept_raw", "10s": "server.kept_10s", "1m": "server.kept_1m" };

/** @type {import("../main.js").MakeView} */
export function serverView(root, { words, store }) {
  const figures = new Part("div", { class: "figures" });
  const held = new Part("div");
  const state = new Part("div");
  const server = new Part("div");
  const problem = new Problem();
  const about = h("div", { class: "narrow" }, section(words.t("server.state"), state.element), section(words.t("server.itself"), server.element));
  const database = h("section", {}, h("h2", {}, words.t("server.database")), problem.element, figures.element, held.element);
  root.append(h("div", { class: "detail-page" }, h("h1", {}, words.t("nav.server")), h("div", { class: "columns" }, h("div", { class: "wide" }, database), about)));

  const leaving = new AbortController();
  const load = async () => {
    try {
      const [storage, ready] = await Promise.all([ask("GET", "storage", undefined, leaving.signal), askBeside("readyz", leaving.signal)]);
      problem.clear();
      drawStorage(readStorage(storage));
      state.draw(ready, () => stateLines(words, readReady(ready)));
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      if (leaving.signal.aborted) return;
      if (error instanceof ApiError) problem.show(words, error);
      else problem.say(error.message);
    }
  };
  /** @param {Storage} storage */
  const drawStorage = (storage) => {
    figures.draw(storage, () => figuresOf(words, storage));
    held.draw(storage, () => [h("h3", {}, words.t("server.history")), heldTable(words, storage)]);
  };
  const connected = () => {
    if (store.connection.phase === "live") void load();
    else state.draw("away", () => [h("p", {}, markIcon("stale"), " ", h("b", {}, words.t("server.away")))]);
  };
  const drawServer = () => server.draw(store.server, () => [serverFacts(words, store.server, store.nodes.size)]);
  drawServer();
  void load();
  const timer = setInterval(() => document.hidden || void load(), AGAIN_MS);
  return {
    update: (topics) => {
      if (topics.has("connection")) connected();
      if (topics.has("connection") || topics.has("rules")) drawServer();
    },
    close: () => {
      clearInterval(timer);
      leaving.abort();
    },
  };
}

/** @param {Words} words @param {Storage} storage @returns {HTMLElement[]} */
function figuresOf(words, storage) {
  if (storage.measured_at === null) return [nothing(words.t("server.unmeasured"))];
  const free = storage.database_bytes === null || storage.used_bytes === null ? null : storage.database_bytes - storage.used_bytes;
  return [
    figure(words.t("server.whole"), size(words, storage.database_bytes)),
    figure(words.t("server.used"), size(words, storage.used_bytes)),
    figure(words.t("server.free"), size(words, free)),
    figure(words.t("server.growth"), growthOf(words, storage)),
    figure(words.t("server.measured"), aged(words, "age.ago", storage.measured_at)),
  ];
}

/** @param {string} name @param {string | HTMLElement} value */
const figure = (name, value) => h("div", { class: "figure" }, h("span", {}, name), h("b", {}, value));

/** @param {Words} words @param {Storage} storage */
export function growthOf(words, { growth_bytes_per_day: growth, growth_since_at: since, measured_at: at }) {
  if (growth === null || since === null || at === null) return words.t("server.growth_unknown");
  return words.t("server.a_day", { size: size(words, growth), time: stretch(words, at - since) });
}

/** What the room in use holds: readings of each fineness, and all that is no reading. @param {Words} words @param {Storage} storage */
function heldTable(words, { used_bytes: used, history }) {
  const told = history.reduce((sum, one) => sum + one.bytes, 0);
  const rows = history.map((one) => row(cellsOf(words, one, used), NUMERIC));
  const rest = used === null ? [] : [row([words.t("server.rest"), size(words, used - told), percent(words, shareOf(used - told, used)), UNKNOWN, UNKNOWN, UNKNOWN], NUMERIC)];
  return table(words, HEADS.map((key) => words.t(key)), NUMERIC, h("tbody", {}, ...rows, ...rest));
}

/** @param {Words} words @param {HistorySize} one @param {number | null} used @returns {string[]} */
function cellsOf(words, { kept, bytes, chunks, oldest_at: oldest, newest_at: newest }, used) {
  const name = Object.hasOwn(KEPT, kept) ? words.t(KEPT[/** @type {keyof typeof KEPT} */ (kept)]) : kept;
  const at = (/** @type {number | null} */ moment) => (moment === null ? UNKNOWN : clockTime(words, moment));
  return [name, size(words, bytes), percent(words, shareOf(bytes, used)), words.integer.format(chunks), at(oldest), at(newest)];
}

/** @param {number} part @param {number | null} whole */
const shareOf = (part, whole) => (whole === null || whole === 0 ? null : part / whole);

/** What the server notices of itself, in its own words. @param {Words} words @param {Ready} ready */
function stateLines(words, { ready, problems }) {
  const level = ready && problems.length === 0 ? "ok" : ready ? "warning" : "critical";
  const said = words.t(level === "ok" ? "server.ready" : ready ? "server.ready_but" : "server.unready");
  const lines = problems.map((one) => h("li", {}, markIcon("warning"), quoted(words, "server.said", one)));
  return [h("p", {}, markIcon(level), " ", h("b", {}, said)), h("ul", { class: "alert-lines", hidden: lines.length === 0 }, ...lines)];
}

/** @param {Words} words @param {import("../wire.js").ServerInfo | null} server @param {number} nodes */
function serverFacts(words, server, nodes) {
  if (server === null) return nothing(words.t("state.connecting"));
  return facts([
    [words.t("server.version"), server.version],
    [words.t("server.since"), aged(words, "age.ago", server.started_at)],
    [words.t("server.nodes"), words.integer.format(nodes)],
  ]);
}
