// What the server said no to, in the place where it was asked for, with what to do about it.

import { fill, h } from "../dom.js";
import { markIcon } from "../marks.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../api.js").ApiError} ApiError */

const KNOWN = [0, 400, 401, 403, 404, 409, 503];

/** @param {Words} words @param {ApiError} error */
export const remedyOf = (words, { status }) =>
  KNOWN.includes(status) ? words.t(`problem.${status}`) : words.t("problem.other", { status: String(status) });

/**
 * Somebody's own words, which are English whatever the page speaks, in a sentence that says whose they are.
 * @param {Words} words @param {string} key of a sentence with {reason} @param {string} reason
 */
export function quoted(words, key, reason) {
  const [before, after = ""] = words.t(key).split("{reason}");
  return h("span", {}, before, h("span", { lang: "en" }, reason), after);
}

/** What the server said, as its own words. @param {Words} words @param {string} reason "" where it said nothing */
export const serverSaid = (words, reason) => (reason === "" ? null : quoted(words, "problem.said", reason));

/** An empty place for what goes wrong. A screen reader is told as soon as something does. */
export class Problem {
  constructor() {
    this.element = h("div", { class: "problem", role: "alert" });
  }

  clear() {
    fill(this.element);
  }

  /** @param {string} sentence @param {string | HTMLElement | null} [detail] */
  say(sentence, detail = null) {
    const more = detail === null || detail === "" ? null : h("div", { class: "detail" }, detail);
    fill(this.element, markIcon("warning"), h("div", {}, sentence, more));
  }

  /** @param {Words} words @param {ApiError} error */
  show(words, error) {
    this.say(remedyOf(words, error), serverSaid(words, error.message));
  }
}
