// What the server said no to, in the place where it was asked for, with what to do about it.

import { fill, h } from "../dom.js";
import { markIcon } from "../marks.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../api.js").ApiError} ApiError */

const KNOWN = [0, 400, 401, 403, 404, 409, 503];

/** @param {Words} words @param {ApiError} error */
export const remedyOf = (words, { status }) =>
  KNOWN.includes(status) ? words.t(`problem.${status}`) : words.t("problem.other", { status: String(status) });

/** An empty place for what goes wrong. A screen reader is told as soon as something does. */
export class Problem {
  constructor() {
    this.element = h("div", { class: "problem", role: "alert" });
  }

  clear() {
    fill(this.element);
  }

  /** @param {string} sentence @param {string} [detail] */
  say(sentence, detail = "") {
    const more = detail === "" ? null : h("div", { class: "detail" }, detail);
    fill(this.element, markIcon("warning"), h("div", {}, sentence, more));
  }

  /** @param {Words} words @param {ApiError} error */
  show(words, error) {
    this.say(remedyOf(words, error), error.message);
  }
}
