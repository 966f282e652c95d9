// Alerts: what is wrong, where, since when, by how much, why, and what to change. Open ones first, then those of which
// nobody is sent word, then those that ended.

import { ApiError, ask } from "../api.js";
import { passes } from "../alertfilter.js";
import { readStoryAlert } from "../alertwire.js";
import { fill, h, keyed } from "../dom.js";
import { AlertActions } from "../elements/alert-actions.js";
import { AlertCard } from "../elements/alert-card.js";
import { AlertFilters } from "../elements/alert-filters.js";
import { Problem, serverSaid } from "../elements/problem.js";
import { sectionTabs } from "../elements/section-tabs.js";
import { endedGroups, isAcknowledged, openGroups, standingOf } from "../groups.js";
import { byUrgency } from "../judge.js";
import { signIcon } from "../marks.js";
import { nothing } from "../parts.js";
import { WireError } from "../wire.js";
import { alertTimesView } from "./alert-times.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../groups.js").Group} Group */
/** @typedef {import("../alertfilter.js").Filter} Filter */

const OPENED = 4; // the worst of each kind show everything at once; their like, and those that ended, on demand

/** Open first, the worst on top; then ended, the latest on top. @param {Alert} a @param {Alert} b */
export function byState(a, b) {
  const ended = Number(a.state === "resolved") - Number(b.state === "resolved");
  if (ended !== 0) return ended;
  return a.state === "resolved" ? (b.ended_at ?? 0) - (a.ended_at ?? 0) : byUrgency(a, b);
}

/** The groups that are shown, as they stand. @param {Iterable<Alert>} all @param {Filter} filter */
export function listed(all, filter) {
  const alerts = [...all].filter((alert) => passes(alert, filter));
  const groups = openGroups(alerts);
  return {
    open: groups.filter((group) => group.standing === "open"),
    muted: groups.filter((group) => group.standing === "muted"),
    ended: endedGroups(alerts),
  };
}

/**
 * Those to show everything of: what a rule says of a run as a warning and as critical needs to be read once.
 * @param {Group[]} groups open ones, the worst first
 * @returns {Group[]}
 */
export function firstOfEach(groups) {
  /** @type {Map<string, Group>} */
  const first = new Map();
  for (const group of groups) {
    const [{ alert, labels }] = group.alerts;
    const kind = JSON.stringify([alert, labels.run ?? labels.node]);
    if (!first.has(kind) && !isAcknowledged(group)) first.set(kind, group);
  }
  return [...first.values()].slice(0, OPENED);
}

/** @type {import("../main.js").MakeView} */
export const alertsView = (root, app, route) =>
  ["timeline", "table"].includes(route.query.show ?? "") ? alertTimesView(root, app, route) : new AlertsPage(root, app, route.query);

class AlertsPage {
  /** @param {HTMLElement} root @param {App} app @param {Filter} query notifications lead to #/alerts?id=ID */
  constructor(root, app, { id = "", ...filter }) {
    this.app = app;
    this.filter = filter;
    this.only = id;
    const { words } = app;
    this.tabs = sectionTabs(app, "alerts");
    this.filters = new AlertFilters(app);
    this.problem = new Problem();
    this.bulk = new AlertActions(app); // what is done to all that is shown
    this.bulk.silences = false; // alerts that have nothing in common are hidden one by one
    this.bulk.element.classList.add("bulk");
    this.leaving = new AbortController();
    this.lists = { asked: cards(), open: cards(), muted: cards(), ended: cards() };
    this.mutedTitle = h("h2", { class: "muted-title" });
    this.open = h("section", {}, h("h2", { class: "unseen" }, words.t("alerts.open")), this.lists.open);
    this.muted = h("section", {}, this.mutedTitle, this.lists.muted);
    this.ended = h("section", {}, h("h2", { class: "ended-title" }, words.t("alerts.ended")), this.lists.ended);
    /** @type {Alert | null} the one that the address names, where the page knows it no more */
    this.asked = null;
    this.older = h("section", { hidden: true }, h("h2", { class: "unseen" }, words.t("alerts.asked")), this.lists.asked);
    this.none = nothing("");
    /** @type {WeakMap<HTMLElement, AlertCard>} */
    this.cards = new WeakMap();
    const parts = [this.tabs.element, this.filters.element, this.bulk.element, this.problem.element, this.older, this.open, this.muted, this.ended, this.none];
    root.append(h("div", { class: "detail-page" }, h("h1", {}, words.t("nav.alerts")), ...parts));
    this.#draw();
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    if (["alerts", "connection", "silences", "channels"].some((topic) => topics.has(/** @type {any} */ (topic))))
      this.#draw();
  }

  close() {
    this.leaving.abort();
  }

  #draw() {
    const { store, words } = this.app;
    const { open, muted, ended } = listed(store.alerts.values(), this.filter);
    this.tabs.draw();
    this.filters.draw(this.filter);
    this.#drawList(this.lists.asked, this.asked === null ? [] : [alone(this.asked)], new Set());
    this.#drawList(this.lists.open, open, new Set(firstOfEach(open)));
    this.#drawList(this.lists.muted, muted, new Set());
    this.#drawList(this.lists.ended, ended, new Set());
    this.#drawBulk(open);
    this.open.hidden = open.length === 0;
    this.muted.hidden = muted.length === 0;
    this.ended.hidden = ended.length === 0;
    const count = muted.reduce((sum, group) => sum + group.alerts.length, 0);
    fill(this.mutedTitle, signIcon("muted"), words.count("mute.count", count));
    this.none.hidden = open.length + muted.length + ended.length > 0;
    this.none.textContent = words.t(this.#whyNone());
    if (this.only !== "") this.#showOnly();
  }

  /** With one card its own buttons suffice. @param {Group[]} open */
  #drawBulk(open) {
    this.bulk.element.hidden = open.length < 2;
    if (open.length < 2) return;
    const all = open.flatMap((group) => group.alerts);
    this.bulk.draw(all, this.app.words.count("alerts.all_open", all.filter(({ acknowledged }) => acknowledged === null).length));
    this.bulk.element.hidden = false;
  }

  /** Unfolds the alert that the address names, once it is known; the server remembers those that are long over. */
  #showOnly() {
    const id = this.only;
    const card = this.#cardOf(id);
    if (card === undefined && this.app.store.connection.phase === "connecting") return;
    this.only = "";
    if (card === undefined) void this.#ask(id);
    else card.show(id);
  }

  /** @param {string} id */
  async #ask(id) {
    const { words } = this.app;
    try {
      this.asked = readStoryAlert(await ask("GET", `alerts/${encodeURIComponent(id)}?lang=${words.language}`, undefined, this.leaving.signal), words.language);
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      if (this.leaving.signal.aborted) return;
      const isGone = error instanceof ApiError && error.status === 404;
      return this.problem.say(words.t(isGone ? "alerts.gone" : "alerts.asked_failed"), isGone ? null : serverSaid(words, error.message));
    }
    this.older.hidden = false;
    this.#draw();
    this.#cardOf(id)?.show(id);
  }

  #whyNone() {
    const { store } = this.app;
    if (store.connection.phase === "connecting") return "state.connecting";
    return store.alerts.size > 0 ? "alerts.none_match" : "alerts.none";
  }

  /** @param {HTMLElement} list @param {Group[]} groups @param {Set<Group>} opened */
  #drawList(list, groups, opened) {
    keyed(
      list,
      groups,
      (group) => group.key,
      (group) => this.#create(opened.has(group)),
      (element, group) => this.cards.get(element)?.draw(group),
    );
  }

  /** @param {boolean} open */
  #create(open) {
    const card = new AlertCard(this.app, open);
    this.cards.set(card.element, card);
    return card.element;
  }

  /** @param {string} id */
  #cardOf(id) {
    const elements = Object.values(this.lists).flatMap((list) => [...list.children]);
    const found = elements.map((element) => this.cards.get(/** @type {HTMLElement} */ (element)));
    return found.find((card) => card?.group?.alerts.some((alert) => alert.id === id));
  }
}

const cards = () => h("div", { class: "alerts" });

/** @param {Alert} alert @returns {Group} */
const alone = (alert) => ({ key: `asked ${alert.id}`, alerts: [alert], standing: standingOf(alert) });
