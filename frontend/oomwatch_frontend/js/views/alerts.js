// Alerts: what is wrong, where, since when, by how much, why, and what to change. Open ones first, then those that ended.

import { fill, h, keyed } from "../dom.js";
import { duration, moment, quantity } from "../format.js";
import { byUrgency, levelOf, openAlerts } from "../judge.js";
import { markIcon } from "../marks.js";
import { aged, nothing, places, prose } from "../parts.js";
import { link } from "../router.js";
import { changes, why } from "./alert-why.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../wire.js").Act} Act */
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

/** What is shown: a lesser alert gives way while a graver one says the same. @param {Iterable<Alert>} all @param {Filter} filter */
export function listed(all, filter) {
  const alerts = [...all];
  const ended = alerts.filter((alert) => alert.state === "resolved");
  return [...openAlerts(alerts), ...ended].filter((alert) => passes(alert, filter)).sort(byState);
}

/**
 * Those to show everything of: eight GPUs of a run in the same trouble need one to be read.
 * @param {Alert[]} alerts the worst first @returns {Alert[]}
 */
export function firstOfEach(alerts) {
  /** @type {Map<string, Alert>} */
  const first = new Map();
  for (const alert of alerts) {
    const kind = JSON.stringify([alert.alert, alert.labels.run ?? alert.labels.node]);
    if (alert.state !== "resolved" && !first.has(kind)) first.set(kind, alert);
  }
  return [...first.values()].slice(0, OPENED);
}

/** @type {import("../main.js").MakeView} */
export function alertsView(root, app, route) {
  const { words, store } = app;
  const only = route.query.id ?? ""; // notifications lead to #/alerts?id=ID
  const { id: _, ...filter } = route.query;
  const filters = h("div", { class: "toolbar" });
  const list = h("div", { class: "alerts" });
  const none = nothing("");
  root.append(h("div", { class: "detail-page" }, h("h1", {}, words.t("nav.alerts")), filters, list, none));
  const update = () => {
    const alerts = listed(store.alerts.values(), filter);
    fill(filters, ...filterBar(app, filter));
    const opened = new Set(firstOfEach(alerts).map((alert) => alert.id)).add(only);
    keyed(
      list,
      alerts,
      (alert) => alert.id,
      (alert) => article(alert, opened.has(alert.id)),
      (element, alert) => drawAlert(app, element, alert),
    );
    const filtered = store.alerts.size > 0;
    none.hidden = alerts.length > 0;
    none.textContent = words.t(
      store.connection.phase === "connecting" ? "state.connecting" : filtered ? "alerts.none_match" : "alerts.none",
    );
  };
  update();
  document.getElementById(`alert-${only}`)?.scrollIntoView({ block: "start" });
  return {
    update: (topics) => (topics.has("alerts") || topics.has("connection") ? update() : undefined),
    close: () => undefined,
  };
}

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

/** @param {Alert} alert @param {boolean} open whether it shows everything at first */
function article(alert, open) {
  return h("details", { class: "alert", id: `alert-${alert.id}`, open });
}

/** @type {WeakMap<HTMLElement, Alert>} */
const drawn = new WeakMap();

/** @param {App} app @param {HTMLElement} element @param {Alert} alert */
function drawAlert(app, element, alert) {
  if (drawn.get(element) === alert) return;
  drawn.set(element, alert);
  const { words } = app;
  const text = words.pick(alert.texts);
  const ended = alert.state === "resolved";
  const level = levelOf({ ...alert, state: alert.state === "pending" ? "pending" : "firing" });
  element.className = `alert alert-${level}${ended ? " alert-ended" : ""}`;
  fill(
    element,
    h(
      "summary",
      {},
      markIcon(level),
      h("span", { class: "severity" }, words.t(`severity.${alert.severity}`)),
      h("span", { class: "summary" }, text.summary),
      ...tags(app, alert),
    ),
    h(
      "div",
      { class: "alert-body" },
      h(
        "dl",
        { class: "strip" },
        ...figures(app, alert).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
      ),
      h(
        "div",
        {},
        text.description === "" ? null : h("p", {}, prose(words, text.description)),
        ...why(words, alert.causes),
        ...acts(app, alert.acts),
      ),
      h("div", {}, ...changes(words, alert.remedies, text.advice)),
    ),
  );
}

/** @param {App} app @param {Alert} alert */
function tags(app, alert) {
  const { words } = app;
  const tags = [];
  if (alert.simulated) tags.push(h("span", { class: "demo" }, words.t("demo.badge")));
  if (alert.stale && alert.state !== "resolved")
    tags.push(
      h("span", { class: "tag", title: words.t("alerts.stale_why") }, markIcon("stale"), words.t("alerts.stale")),
    );
  if (alert.state === "pending") tags.push(h("span", { class: "tag" }, words.t("alerts.pending")));
  const moved = alert.state === "resolved" ? alert.ended_at : alert.started_at;
  if (moved !== null) tags.push(aged(words, alert.state === "resolved" ? "alerts.ended_ago" : "alerts.since", moved));
  return tags;
}

/** What agents did because of it, and where the files lie. @param {App} app @param {Act[]} done */
function acts({ words }, done) {
  if (done.length === 0) return [];
  return [
    h("h3", {}, words.t("alerts.acts")),
    h(
      "ul",
      { class: "acts" },
      ...done.map((act) =>
        h(
          "li",
          {},
          h("b", {}, words.t(act.ok ? "alerts.act_done" : "alerts.act_failed", { act: actName(words, act.act), node: act.node })),
          act.detail === null ? null : h("div", {}, act.detail),
          act.path === null ? null : h("code", {}, act.path),
        ),
      ),
    ),
  ];
}

/** One of a later server is called as it came. @param {import("../i18n.js").Words} words @param {string} name */
function actName(words, name) {
  const key = `act.${name}`;
  return key in words.catalogue ? words.t(key) : name;
}

/** @param {App} app @param {Alert} alert @returns {[string, import("../dom.js").Child][]} */
function figures(app, alert) {
  const { words } = app;
  /** @type {[string, import("../dom.js").Child][]} */
  const known = [[words.t("alerts.where"), places(words, alert.labels)]];
  known.push(...measured(app, alert));
  known.push([words.t("alerts.began"), moment(words, alert.started_at)]);
  if (alert.fired_at !== null) known.push([words.t("alerts.raised"), moment(words, alert.fired_at)]);
  if (alert.ended_at !== null) {
    known.push([words.t("alerts.ended_at"), moment(words, alert.ended_at)]);
    known.push([words.t("alerts.lasted"), duration(words, alert.ended_at - alert.started_at)]);
  }
  if (alert.reason !== null) known.push([words.t("alerts.reason"), reason(app, alert.reason)]);
  if (alert.outcome !== null) known.push([words.t("alerts.outcome"), became(app, alert.outcome)]);
  const incident = alert.facts.incident;
  if (incident !== undefined) known.push([words.t("alerts.incident"), report(app, String(incident))]);
  known.push([words.t("alerts.rule"), h("code", {}, alert.alert)]);
  return known;
}

/** What was judged, and against what: of a forecast the time that is left. @param {App} app @param {Alert} alert @returns {[string, import("../dom.js").Child][]} */
function measured({ words }, alert) {
  const counted = alert.unit === "count" && alert.limit === null; // something happened: that it was once says nothing
  if (alert.value === null || counted) return [];
  const told = quantity(words, alert.value, alert.unit);
  const { eta_seconds: seconds, eta_steps: steps } = alert.facts;
  const left = typeof steps === "number" ? words.t("alerts.in_steps", { duration: told, steps }) : told;
  if (typeof seconds === "number" && alert.unit === "seconds")
    return [[words.t("alerts.time_left"), h("b", { class: "figure-value" }, left)]];
  const value = h("b", { class: "figure-value" }, told);
  if (alert.limit === null) return [[words.t("alerts.value"), value]];
  return [
    [words.t("alerts.value"), value],
    [words.t("alerts.limit"), quantity(words, alert.limit, alert.unit)],
  ];
}

/** A verdict of a later server is shown as it came. @param {App} app @param {import("../wire.js").Outcome} outcome */
function became({ words }, outcome) {
  const key = `outcome.${outcome.verdict}`;
  const verdict = key in words.catalogue ? words.t(key) : outcome.verdict;
  if (outcome.lead_seconds === null) return verdict;
  return words.t("alerts.outcome_lead", { verdict, lead: duration(words, outcome.lead_seconds) });
}

/** The report is there some seconds after the alert. @param {App} app @param {string} incident */
function report({ words }, incident) {
  const href = `api/v1/incidents/${encodeURIComponent(incident)}.html?lang=${words.language}`;
  return h("a", { href, target: "_blank", rel: "noopener" }, words.t("alerts.incident_open"));
}

/** The reasons that the server gives have sentences; another is shown as it came. @param {App} app @param {string} given */
function reason({ words }, given) {
  const key = `reason.${given.replaceAll(" ", "_")}`;
  return key in words.catalogue ? words.t(key) : given;
}
