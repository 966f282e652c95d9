// The conditions of a silence, each of which can be unticked, edited or added.

import { h } from "../dom.js";
import { LABELS, OPERATORS } from "../silencing.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../wire.js").Matcher} Matcher */

export class MatcherRows {
  /** @param {Words} words @param {import("../silencing.js").Offer[]} offers @param {() => void} changed */
  constructor(words, offers, changed) {
    this.words = words;
    this.changed = changed;
    /** @type {(() => Matcher | null)[]} */
    this.readers = [];
    this.rows = h("div", { class: "matchers" });
    const add = h(
      "button",
      { type: "button", class: "quiet", click: () => this.#add().focus() },
      words.t("silence.add"),
    );
    this.element = h("fieldset", {}, h("legend", {}, words.t("silence.which")), this.rows, add);
    for (const offer of offers) this.#put(offer);
  }

  /** The conditions that are ticked. @returns {Matcher[]} */
  read() {
    return this.readers.map((read) => read()).filter((matcher) => matcher !== null);
  }

  #add() {
    const value = this.#put({ used: true, matcher: { label: "node", op: "=", value: "" } });
    this.changed();
    return value;
  }

  /** @param {import("../silencing.js").Offer} offer @returns {HTMLInputElement} where its value is written */
  #put({ used, matcher }) {
    const { words } = this;
    const n = this.readers.length + 1;
    const named = (/** @type {string} */ key) => words.t(key, { n });
    const input = () => this.changed();
    const tick = h("input", { type: "checkbox", checked: used, "aria-label": named("silence.use"), change: input });
    const label = pick(LABELS, matcher.label, named("silence.label"), input);
    const op = pick(OPERATORS, matcher.op, named("silence.op"), input);
    const value = h("input", {
      type: "text",
      value: matcher.value,
      maxlength: 1000,
      "aria-label": named("silence.value"),
      input,
    });
    value.addEventListener("input", () => (tick.checked = true));
    this.rows.append(h("div", { class: "matcher" }, tick, label, op, value));
    this.readers.push(() =>
      tick.checked ? { label: label.value, op: /** @type {Matcher["op"]} */ (op.value), value: value.value } : null,
    );
    return value;
  }
}

/** @param {readonly string[]} names @param {string} chosen @param {string} label @param {() => void} change */
function pick(names, chosen, label, change) {
  const options = names.map((name) => h("option", { value: name, selected: name === chosen }, name));
  return h("select", { "aria-label": label, change }, ...options);
}
