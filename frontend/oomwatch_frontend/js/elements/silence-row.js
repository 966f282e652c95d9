// One silence: what it hides and until when, who wanted it and why, and a way to end it early.

import { ApiError } from "../api.js";
import { Part, h, since } from "../dom.js";
import { clockTime, moment } from "../format.js";
import { levelOf } from "../judge.js";
import { markIcon } from "../marks.js";
import { link } from "../router.js";
import { heldBy, matcherText } from "../silencing.js";
import { Problem } from "./problem.js";
import { createSilence, endSilence } from "./silence-dialog.js";
import { toast } from "./toast.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Silence} Silence */

export class SilenceRow {
  /** @param {App} app @param {Silence} silence */
  constructor(app, silence) {
    const { words } = app;
    this.app = app;
    this.silence = silence;
    this.problem = new Problem();
    this.title = new Part("div", { class: "silence-title" });
    this.detail = new Part("div", { class: "muted" });
    this.held = new Part("div");
    const end = h("button", { type: "button", click: () => this.#end() }, words.t("silence.end"));
    end.setAttribute(
      "aria-label",
      words.t("silence.end_this", { matchers: silence.matchers.map(matcherText).join(" ") }),
    );
    const text = h(
      "div",
      {},
      ...[this.title, this.detail, this.held].map((part) => part.element),
      this.problem.element,
    );
    this.element = h("li", { class: "silence", id: `silence-${silence.id}` }, text, end);
  }

  /** @param {Silence} silence */
  draw(silence) {
    this.silence = silence;
    const { words, store } = this.app;
    const codes = silence.matchers.map((matcher) => h("code", {}, matcherText(matcher)));
    this.title.draw(silence, () => codes);
    this.detail.draw(silence, () => this.#sentence(silence));
    const held = heldBy(store.alerts.values(), silence.id);
    const items = () =>
      held.map((alert) => {
        const level = levelOf(alert);
        const href = link("alerts", [], { id: alert.id });
        return h(
          "li",
          {},
          markIcon(level, words.t(`mark.${level}`)),
          h("a", { href }, words.pick(alert.texts).summary),
        );
      });
    this.held.draw(
      held.map((alert) => [alert.id, levelOf(alert)]),
      () =>
        held.length === 0
          ? []
          : [
              h(
                "details",
                {},
                h("summary", {}, words.count("silence.holds", held.length)),
                h("ul", { class: "alert-lines" }, ...items()),
              ),
            ],
    );
  }

  /** @param {Silence} silence @returns {import("../dom.js").Child[]} */
  #sentence({ starts_at, ends_at, created_by, created_at, note }) {
    const { words, store } = this.app;
    const key = starts_at > store.now() ? "silence.from_to" : "silence.to";
    const times = { from: clockTime(words, starts_at), to: clockTime(words, ends_at) };
    const span = h("span", { title: `${moment(words, starts_at)} – ${moment(words, ends_at)}` }, words.t(key, times));
    const [before, after = ""] = words.t("silence.made", { by: created_by }).split("{age}");
    return [span, " · ", before, since(created_at), after, note === null ? null : words.t("mute.note", { note })];
  }

  async #end() {
    const { words } = this.app;
    const { silence } = this;
    this.problem.clear();
    try {
      await endSilence(silence.id);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return this.problem.show(words, error);
    }
    const inForce = silence.starts_at <= this.app.store.now();
    toast(words, words.t("silence.ended"), inForce ? () => createSilence(silence) : undefined);
  }
}
