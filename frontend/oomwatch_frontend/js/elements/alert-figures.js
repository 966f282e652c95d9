// What an alert says in numbers, and what was done because of it.

import { h } from "../dom.js";
import { duration, isDue, quantity, timeAndSteps } from "../format.js";
import { exactTime, places } from "../parts.js";
import { quoted } from "./problem.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../wire.js").Act} Act */
/** @typedef {import("../dom.js").Child} Child */

/** @param {Words} words @param {Alert} alert @returns {Child[]} the children of a dl.strip */
export function figures(words, alert) {
  return listed(words, alert).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
}

/** @param {Words} words @param {Alert} alert @returns {[string, Child][]} */
function listed(words, alert) {
  /** @type {[string, Child][]} */
  const known = [[words.t("alerts.where"), places(words, alert.labels)]];
  known.push(...measured(words, alert));
  known.push([words.t("alerts.began"), exactTime(words, alert.started_at)]);
  if (alert.fired_at !== null) known.push([words.t("alerts.raised"), exactTime(words, alert.fired_at)]);
  if (alert.ended_at !== null) {
    known.push([words.t("alerts.ended_at"), exactTime(words, alert.ended_at)]);
    known.push([words.t("alerts.lasted"), duration(words, alert.ended_at - alert.started_at)]);
  }
  if (alert.reason !== null) known.push([words.t("alerts.reason"), reason(words, alert.reason)]);
  if (alert.outcome !== null) known.push([words.t("alerts.outcome"), became(words, alert.outcome)]);
  const incident = alert.facts.incident;
  if (incident !== undefined) known.push([words.t("alerts.incident"), report(words, String(incident))]);
  known.push([words.t("alerts.rule"), h("code", {}, alert.alert)]);
  return known;
}

/** What was judged, and against what: of a forecast the time that is left. @param {Words} words @param {Alert} alert @returns {[string, Child][]} */
function measured(words, alert) {
  const told = toldValue(words, alert);
  if (told === null) return [];
  const value = h("b", { class: "figure-value" }, told);
  if (isForecast(alert)) return [[words.t("alerts.time_left"), value]];
  if (alert.limit === null) return [[words.t("alerts.value"), value]];
  return [
    [words.t("alerts.value"), value],
    [words.t("alerts.limit"), quantity(words, alert.limit, alert.unit)],
  ];
}

/** @param {Pick<Alert, "facts" | "unit">} alert */
const isForecast = ({ facts, unit }) => unit === "seconds" && (numeric(facts.eta_seconds) ?? numeric(facts.eta_steps)) !== null;

/** @param {import("../wire.js").Alert["facts"][string] | undefined} fact */
const numeric = (fact) => (typeof fact === "number" ? fact : null);

/**
 * The number that was judged, in words; null where it says nothing.
 * @param {Words} words @param {Pick<Alert, "value" | "limit" | "unit" | "facts">} alert
 */
export function toldValue(words, alert) {
  const counted = alert.unit === "count" && alert.limit === null; // something happened: that it was once says nothing
  if (alert.value === null || counted) return null;
  if (!isForecast(alert)) return quantity(words, alert.value, alert.unit);
  const [seconds, steps] = [numeric(alert.facts.eta_seconds), numeric(alert.facts.eta_steps)];
  return isDue(seconds, steps) ? words.t("figure.now") : timeAndSteps(words, seconds, steps);
}

/** A verdict of a later server is shown as it came. @param {Words} words @param {import("../wire.js").Outcome} outcome */
export function became(words, outcome) {
  const key = `outcome.${outcome.verdict}`;
  const verdict = key in words.catalogue ? words.t(key) : outcome.verdict;
  if (outcome.lead_seconds === null) return verdict;
  return words.t("alerts.outcome_lead", { verdict, lead: duration(words, outcome.lead_seconds) });
}

/** The report is there some seconds after the alert. @param {Words} words @param {string} incident */
function report(words, incident) {
  const href = `api/v1/incidents/${encodeURIComponent(incident)}.html?lang=${words.language}`;
  const open = h("a", { href, target: "_blank", rel: "noopener" }, words.t("alerts.incident_open"));
  return h("span", { class: "places" }, open, h("a", { href, download: `${incident}.html` }, words.t("run.download")));
}

/** The reasons that the server gives have sentences; another is shown as it came. @param {Words} words @param {string} given */
function reason(words, given) {
  const key = `reason.${given.replaceAll(" ", "_")}`;
  return key in words.catalogue ? words.t(key) : given;
}

/** What agents did because of it, and where the files lie. @param {Words} words @param {Act[]} done @returns {Child[]} */
export function acts(words, done) {
  if (done.length === 0) return [];
  const items = done.map((act) =>
    h(
      "li",
      {},
      h(
        "b",
        {},
        words.t(act.ok ? "alerts.act_done" : "alerts.act_failed", { act: actName(words, act.act), node: act.node }),
      ),
      act.detail === null ? null : h("div", {}, quoted(words, "alerts.act_said", act.detail)),
      act.path === null ? null : h("code", {}, act.path),
    ),
  );
  return [h("h3", {}, words.t("alerts.acts")), h("ul", { class: "acts" }, ...items)];
}

/** One of a later server is called as it came. @param {Words} words @param {string} name */
function actName(words, name) {
  const key = `act.${name}`;
  return key in words.catalogue ? words.t(key) : name;
}
