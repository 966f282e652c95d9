// For how long: some usual spans, or an end of one's own.

import { h } from "../dom.js";
import { clockTime } from "../format.js";
import { CHOICES, endOf } from "../silencing.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../silencing.js").Choice} Choice */

export class DurationChoice {
  /** @param {Words} words @param {() => number} now the server's clock, Unix seconds @param {() => void} changed */
  constructor(words, now, changed) {
    this.words = words;
    this.now = now;
    /** @type {Choice} */
    this.choice = "2h";
    this.own = h("input", { type: "datetime-local", "aria-label": words.t("silence.own_end"), hidden: true });
    this.own.addEventListener("input", () => {
      this.#tell();
      changed();
    });
    this.end = h("span", { class: "hint", role: "status" });
    const radios = CHOICES.map((choice) =>
      h(
        "label",
        {},
        h("input", {
          type: "radio",
          name: "duration",
          value: choice,
          checked: choice === this.choice,
          change: () => this.#choose(choice, changed),
        }),
        h("span", {}, words.t(`duration.${choice}`)),
      ),
    );
    this.element = h(
      "fieldset",
      {},
      h("legend", {}, words.t("silence.how_long")),
      h("div", { class: "spans" }, ...radios),
      this.own,
      this.end,
    );
    this.#tell();
  }

  /** When it would end, if it began now: Unix seconds; null while no time is given. */
  read() {
    const given = new Date(this.own.value).getTime() / 1000;
    return endOf(this.choice, this.now(), Number.isFinite(given) ? given : null);
  }

  /** @param {Choice} choice @param {() => void} changed */
  #choose(choice, changed) {
    this.choice = choice;
    this.own.hidden = choice !== "own";
    if (choice === "own" && this.own.value === "") this.own.value = local(this.now() + 3600);
    this.#tell();
    changed();
  }

  #tell() {
    const end = this.read();
    this.end.textContent = end === null ? "" : this.words.t("silence.ends", { time: clockTime(this.words, end) });
  }
}

/** As a datetime-local field writes it. @param {number} unixSeconds */
function local(unixSeconds) {
  const at = new Date(unixSeconds * 1000);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
