// One channel: whether it can tell people, what waits in it, what went wrong and what to do.

import { ApiError, ask } from "../api.js";
import { Part, h } from "../dom.js";
import { markIcon } from "../marks.js";
import { aged, facts } from "../parts.js";
import { Problem, quoted } from "./problem.js";
import { toast } from "./toast.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").ChannelState} ChannelState */

const MARKS = /** @type {const} */ ({ ok: "ok", failing: "stale", failed: "warning" });

export class ChannelRow {
  /** @param {App} app @param {ChannelState} channel */
  constructor(app, channel) {
    this.app = app;
    this.name = channel.name;
    this.problem = new Problem();
    this.part = new Part("div", { class: "channel-text" });
    const click = () => this.#retry();
    this.retry = h("button", { type: "button", click }, app.words.t("channel.retry"));
    this.retry.setAttribute("aria-label", app.words.t("channel.retry_this", { channel: channel.name }));
    this.element = h("li", { class: "channel" }, h("div", {}, this.part.element, this.problem.element), this.retry);
  }

  /** @param {ChannelState} channel */
  draw(channel) {
    const { words } = this.app;
    this.element.className = `channel channel-${channel.health}`;
    this.retry.hidden = channel.health === "ok" && channel.waiting === 0;
    this.part.draw(channel, () => [
      h(
        "div",
        { class: "channel-title" },
        markIcon(MARKS[channel.health]),
        h("b", {}, channel.name),
        h("span", { class: "muted" }, channel.kind),
        h("span", { class: "tag" }, words.t(`channel.${channel.health}`)),
      ),
      channel.health === "ok" || channel.last_error === null ? null : this.#error(channel, channel.last_error),
      facts(figures(words, channel)),
    ]);
  }

  /** @param {ChannelState} channel @param {string} error */
  #error({ health, last_error_at }, error) {
    const { words } = this.app;
    const when =
      last_error_at === null ? null : h("span", { class: "muted" }, " · ", aged(words, "age.ago", last_error_at));
    return h(
      "div",
      { class: "channel-error" },
      h("p", {}, h("code", {}, quoted(words, "channel.said", error)), when),
      h("p", {}, words.t(`channel.do_${health}`)),
    );
  }

  async #retry() {
    const { words } = this.app;
    this.problem.clear();
    try {
      await ask("POST", `channels/${encodeURIComponent(this.name)}/retry`);
      toast(words, words.t("channel.retried", { channel: this.name }));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.problem.show(words, error);
    }
  }
}

/** @param {import("../i18n.js").Words} words @param {ChannelState} channel @returns {[string, import("../dom.js").Child][]} */
function figures(words, channel) {
  const number = (/** @type {number} */ count) => words.integer.format(count);
  const some = (/** @type {number} */ count) => (count === 0 ? null : number(count));
  return [
    [words.t("channel.waiting"), number(channel.waiting)],
    [words.t("channel.delivered"), number(channel.delivered_total)],
    [
      words.t("channel.last_success"),
      channel.last_success_at === null ? words.t("channel.never") : aged(words, "age.ago", channel.last_success_at),
    ],
    [words.t("channel.given_up"), some(channel.failed_total)],
    [words.t("channel.retries"), some(channel.retries_total)],
    [words.t("channel.dropped"), some(channel.dropped_total)],
  ];
}
