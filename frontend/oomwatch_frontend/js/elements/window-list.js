// The times of alerts.yaml in which nobody is sent certain alerts: maintenance, quiet hours, and which alerts cover others.

import { ApiError, ask } from "../api.js";
import { readWindows } from "../alertwire.js";
import { Part, h } from "../dom.js";
import { clockTime, moment } from "../format.js";
import { signIcon } from "../marks.js";
import { nothing, section } from "../parts.js";
import { WireError } from "../wire.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../i18n.js").Words} Words */

const PACE_SECONDS = 30; // a window that began is told with the alerts that it mutes, and else so often

export class WindowList {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.part = new Part("div", { class: "windows" });
    this.element = this.part.element;
    this.askedAt = -Infinity;
    this.leaving = new AbortController();
    this.part.draw("asking", () => [nothing(app.words.t("windows.asking"))]);
  }

  close() {
    this.leaving.abort();
  }

  /** @param {boolean} changed whether the answer may be another by now */
  draw(changed) {
    const now = this.app.store.now();
    if (!changed && now - this.askedAt < PACE_SECONDS) return;
    this.askedAt = now;
    void this.#ask();
  }

  async #ask() {
    const { words } = this.app;
    try {
      const windows = readWindows(await ask("GET", "muting", undefined, this.leaving.signal));
      this.part.draw(windows, () => this.#told(windows));
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      if (!this.leaving.signal.aborted) this.part.draw(error.message, () => [nothing(words.t("windows.failed", { reason: error.message }))]);
    }
  }

  /** @param {import("../alertwire.js").Windows} windows */
  #told({ maintenance, quiet_hours, inhibit }) {
    const { words } = this.app;
    const [planned, quiet, covered] = [
      maintenance.map((one) => item(words, one.name, one.state === "active", maintenanceLine(words, one), one.match, one.hides)),
      quiet_hours.map((one) => item(words, one.name, one.active, quietLine(words, one), one.match, one.hides)),
      inhibit.map((one) => h("li", { class: "window" }, h("span"), coverLine(words, one))),
    ];
    return [
      section(words.t("windows.quiet_hours"), listOf(quiet, words.t("windows.no_quiet_hours"))),
      section(words.t("windows.maintenance"), listOf(planned, words.t("windows.no_maintenance"))),
      section(words.t("windows.inhibit"), listOf(covered, words.t("windows.no_inhibit"))),
    ];
  }
}

/** @param {HTMLElement[]} items @param {string} none */
const listOf = (items, none) => (items.length === 0 ? nothing(none) : h("ul", { class: "window-list" }, ...items));

/** @param {Words} words @param {string} name @param {boolean} active @param {HTMLElement} when @param {string[]} match @param {number} hides */
function item(words, name, active, when, match, hides) {
  const codes = match.map((one) => h("code", {}, one));
  return h(
    "li",
    { class: `window${active ? " in-force" : ""}` },
    active ? signIcon("muted", words.t("windows.in_force")) : h("span"),
    h("div", {}, h("b", {}, name), " ", when, h("div", { class: "matcher-codes" }, ...codes), active ? h("div", {}, words.count("silence.holds", hides)) : null),
  );
}

/** @param {Words} words @param {import("../alertwire.js").Maintenance} one */
function maintenanceLine(words, { state, starts_at, ends_at }) {
  const times = { from: clockTime(words, starts_at), to: clockTime(words, ends_at) };
  return h("span", { title: `${moment(words, starts_at)} – ${moment(words, ends_at)}` }, words.t(`windows.planned_${state}`, times));
}

/** @param {Words} words @param {import("../alertwire.js").QuietHours} one */
function quietLine(words, { from, to, days, zone, until, next_at }) {
  const span = words.t("windows.hours", { from, to, days: daysText(words, days), zone });
  const more =
    until !== null ? words.t("windows.until", { time: clockTime(words, until) }) : next_at === null ? "" : words.t("windows.next", { time: clockTime(words, next_at) });
  return h("span", {}, span, more);
}

/** @param {Words} words @param {string[]} days */
function daysText(words, days) {
  if (days.length === 7) return words.t("windows.every_day");
  const known = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
  const monday = Date.UTC(2024, 0, 1); // one, in any zone of this sentence
  return days
    .map((day) => new Date(monday + known.indexOf(day) * 86_400_000).toLocaleDateString(words.locale, { weekday: "short", timeZone: "UTC" }))
    .join(words.t("text.and"));
}

/** @param {Words} words @param {import("../alertwire.js").Inhibition} one */
function coverLine(words, { source, target, equal }) {
  const codes = (/** @type {string[]} */ all) => h("span", { class: "matcher-codes" }, ...all.map((one) => h("code", {}, one)));
  const [before, between, after] = words.t("windows.covers").split(/\{source\}|\{target\}/);
  const same = equal.length === 0 ? "" : words.t("windows.equal", { labels: equal.join(words.t("text.and")) });
  return h("div", {}, before, codes(source), between, codes(target), after, same);
}
