// What a silence would hide, asked of the server while it is being written.

import { ApiError, ask } from "../api.js";
import { fill, h } from "../dom.js";
import { levelOfRule } from "../judge.js";
import { markIcon } from "../marks.js";
import { matcherText } from "../silencing.js";
import { WireError, readPreview } from "../wire.js";
import { Problem } from "./problem.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Matcher} Matcher */
/** @typedef {import("../wire.js").Preview} Preview */

const SETTLE_MS = 250;
const LISTED = 4;

export class SilencePreview {
  /** @param {App} app @param {AbortSignal} closed */
  constructor(app, closed) {
    this.app = app;
    this.closed = closed;
    this.asking = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.count = h("p", { role: "status" });
    this.warnings = h("div", { role: "alert" });
    this.list = h("ul", { class: "preview-list" });
    this.problem = new Problem();
    const parts = [this.warnings, this.count, this.list, this.problem.element];
    this.element = h("section", { class: "preview", "aria-label": app.words.t("silence.preview") }, ...parts);
  }

  /** Asks once the writer pauses. An answer to an older question is dropped. @param {Matcher[]} matchers */
  show(matchers) {
    clearTimeout(this.timer);
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    if (matchers.length === 0) return this.#clear(this.app.words.t("silence.no_matcher"));
    this.element.setAttribute("aria-busy", "true");
    this.timer = setTimeout(() => this.#ask(matchers, AbortSignal.any([signal, this.closed])), SETTLE_MS);
  }

  /** @param {string} sentence */
  #clear(sentence) {
    this.element.removeAttribute("aria-busy");
    this.problem.clear();
    fill(this.warnings);
    fill(this.list);
    this.count.textContent = sentence;
  }

  /** @param {Matcher[]} matchers @param {AbortSignal} signal */
  async #ask(matchers, signal) {
    try {
      const answer = await ask(
        "POST",
        `silences/preview?lang=${this.app.words.language}`,
        { match: matchers.map(matcherText) },
        signal,
      );
      if (!signal.aborted) this.#draw(readPreview(answer));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      this.#clear("");
      if (error instanceof ApiError) this.problem.show(this.app.words, error);
      else this.problem.say(error.message);
    }
  }

  /** @param {Preview} preview */
  #draw(preview) {
    const { words } = this.app;
    const { alerts, last_24h, warnings } = preview;
    this.#clear(`${words.count("silence.hides", alerts.length)} ${words.t("silence.lately", last_24h)}`);
    fill(this.warnings, ...warnings.map((text) => h("p", { class: "caution" }, markIcon("warning"), text)));
    const items = alerts.slice(0, LISTED).map((alert) => h("li", {}, markIcon(levelOfRule(alert), words.t(`severity.${alert.severity}`)), h("span", {}, alert.summary)));
    const more = alerts.length - items.length;
    fill(this.list, ...items, more > 0 ? h("li", { class: "muted" }, words.t("silence.more", { n: more })) : null);
  }
}
