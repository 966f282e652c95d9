// Below the one sentence: whose run it is, why, and what to change. Each at one glance, whatever view is open.

import { fill, h, refill } from "../dom.js";
import { worstAlert } from "../headline.js";
import { runsOf } from "../judge.js";
import { copyButton, prose } from "../parts.js";
import { link } from "../router.js";

/** @typedef {import("../store.js").Store} Store */
/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../wire.js").Alert} Alert */

export class HeadlineWhy {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.drawn = "";
  }

  /** @param {Store} store @param {Words} words @param {boolean} wanted not where the alert itself is shown */
  draw(store, words, wanted) {
    const alert = wanted ? worstAlert(store) : null;
    const said = alert === null ? null : whyOf(words, alert);
    const runs = alert === null ? [] : runsOf(store, alert);
    const key = JSON.stringify([words.language, alert?.id, said, runs]);
    if (key === this.drawn) return;
    this.drawn = key;
    this.element.hidden = alert === null || said === null;
    if (alert === null || said === null) return fill(this.element);
    this.element.setAttribute("aria-label", words.t("state.why"));
    refill(this.element, ...this.#lines(words, alert, said, runs));
  }

  /** @param {Words} words @param {Alert} alert @param {Why} said @param {string[]} runs */
  #lines(words, alert, { cause, change, override }, runs) {
    const places = runs.map((run) => h("a", { href: link("run", [run]) }, run));
    const way = link("alerts", [], { id: alert.id });
    return [
      places.length === 0 ? null : pair(words.t("runs.name"), ...places),
      cause === "" ? null : pair(words.t("alerts.causes"), h("a", { href: way }, cause)),
      change === "" ? null : pair(words.t("alerts.advice"), ...remedyParts(words, change, override)),
    ];
  }
}

/** @typedef {{ cause: string, change: string, override: string | null }} Why "" where nothing is told */

/** The likeliest cause and what helps against it first; without a cause, what the rule advises first. @param {Words} words @param {Alert} alert @returns {Why} */
export function whyOf(words, { causes, remedies, texts }) {
  const [cause] = causes;
  const [remedy] = remedies;
  const [advice = ""] = words.pick(texts).advice;
  return {
    cause: cause === undefined ? "" : words.said(cause.texts, cause.cause),
    change: remedy === undefined ? advice : words.said(remedy.texts, remedy.remedy).replaceAll(" -> ", " → "),
    override: remedy === undefined || remedy.limits_damage ? null : remedy.override, // a line alone would not say what it is for
  };
}

/** A line that can be pasted says what the sentence says, and stands in its place. @param {Words} words @param {string} change @param {string | null} override */
const remedyParts = (words, change, override) =>
  override === null ? [prose(words, change)] : [h("code", { title: change }, override), copyButton(words, override)];

/** @param {string} name @param {...HTMLElement} what */
const pair = (name, ...what) => h("span", { class: "pair" }, h("span", { class: "muted" }, name), ...what);
