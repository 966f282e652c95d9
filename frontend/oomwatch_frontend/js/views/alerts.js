// Alerts: what is wrong, where, since when, by how much, why, and what to change. Open ones first, then those of which
// nobody is sent word, then those that ended.

import { Part, fill, h, keyed } from "../dom.js";
import { AlertCard } from "../elements/alert-card.js";
import { sectionTabs } from "../elements/section-tabs.js";
import { endedGroups, isAcknowledged, openGroups } from "../groups.js";
import { byUrgency } from "../judge.js";
import { signIcon } from "../marks.js";
import { nothing } from "../parts.js";
import { link } from "../router.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../groups.js").Group} Group */
/** @typedef {Record<string, string>} Filter state, run, node: as in the address */

const OPENED = 4; // the worst of each kind show everything at once; their like, and those that ended, on demand
const STATES = ["all", "open", "ended"];

/** @param {Alert} alert @param {Filter} filter @returns {boolean} */
export function passes(alert, filter) {
  const ended = alert.state === "resolved";
  if (filter.state === "open" && ended) return false;
  if (filter.state === "ended" && !ended) return false;
  return ["run", "node"].every((label) => !filter[label] || alert.labels[label] === filter[label]);
}

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
export const alertsView = (root, app, route) => new AlertsPage(root, app, route.query);

class AlertsPage {
  /** @param {HTMLElement} root @param {App} app @param {Filter} query notifications lead to #/alerts?id=ID */
  constructor(root, app, { id = "", ...filter }) {
    this.app = app;
    this.filter = filter;
    this.only = id;
    const { words } = app;
    this.tabs = sectionTabs(app, "alerts");
    this.filters = new Part("div", { class: "toolbar" });
    this.lists = { open: cards(), muted: cards(), ended: cards() };
    this.mutedTitle = h("h2", { class: "muted-title" });
    this.open = h("section", {}, h("h2", { class: "unseen" }, words.t("alerts.open")), this.lists.open);
    this.muted = h("section", {}, this.mutedTitle, this.lists.muted);
    this.ended = h("section", {}, h("h2", { class: "ended-title" }, words.t("alerts.ended")), this.lists.ended);
    this.none = nothing("");
    /** @type {WeakMap<HTMLElement, AlertCard>} */
    this.cards = new WeakMap();
    const parts = [this.tabs.element, this.filters.element, this.open, this.muted, this.ended, this.none];
    root.append(h("div", { class: "detail-page" }, h("h1", {}, words.t("nav.alerts")), ...parts));
    this.#draw();
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    if (["alerts", "connection", "silences", "channels"].some((topic) => topics.has(/** @type {any} */ (topic))))
      this.#draw();
  }

  close() {}

  #draw() {
    const { store, words } = this.app;
    const { open, muted, ended } = listed(store.alerts.values(), this.filter);
    this.tabs.draw();
    this.filters.draw([[...store.runs.keys()], [...store.nodes.keys()]], () => filterBar(this.app, this.filter));
    this.#drawList(this.lists.open, open, new Set(firstOfEach(open)));
    this.#drawList(this.lists.muted, muted, new Set());
    this.#drawList(this.lists.ended, ended, new Set());
    this.open.hidden = open.length === 0;
    this.muted.hidden = muted.length === 0;
    this.ended.hidden = ended.length === 0;
    const count = muted.reduce((sum, group) => sum + group.alerts.length, 0);
    fill(this.mutedTitle, signIcon("muted"), words.count("mute.count", count));
    this.none.hidden = open.length + muted.length + ended.length > 0;
    this.none.textContent = words.t(this.#whyNone());
    if (this.only !== "") this.#showOnly();
  }

  /** Unfolds the alert that the address names, once it is known. */
  #showOnly() {
    const card = this.#cardOf(this.only);
    card?.show(this.only);
    if (card !== undefined) this.only = "";
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

/** @param {App} app @param {Filter} filter */
function filterBar(app, filter) {
  const { words, store } = app;
  const states = STATES.map((state) => {
    const current = (filter.state ?? "all") === state;
    return h(
      "a",
      {
        href: link("alerts", [], { ...filter, state: state === "all" ? "" : state }),
        "aria-current": current ? "true" : null,
      },
      words.t(`alerts.${state}`),
    );
  });
  return [
    h("div", { class: "choice", role: "group", "aria-label": words.t("alerts.filter") }, ...states),
    choose(words.t("alerts.any_run"), [...store.runs.keys()], filter, "run"),
    choose(words.t("alerts.any_node"), [...store.nodes.keys()], filter, "node"),
  ];
}

/** @param {string} any @param {string[]} names @param {Filter} filter @param {"run" | "node"} label */
function choose(any, names, filter, label) {
  const chosen = filter[label] ?? "";
  const known = [...new Set([...names, ...(chosen === "" ? [] : [chosen])])].sort();
  const change = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.target);
    location.hash = link("alerts", [], { ...filter, [label]: value });
  };
  const options = known.map((name) => h("option", { value: name, selected: name === chosen }, name));
  return h("select", { "aria-label": any, change }, h("option", { value: "" }, any), ...options);
}
