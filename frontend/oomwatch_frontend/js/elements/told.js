// Which channel was told of an alert, when, and what went wrong: asked of the server once somebody wants to know.

import { ApiError, ask } from "../api.js";
import { fill, h } from "../dom.js";
import { clockTime, moment } from "../format.js";
import { markIcon } from "../marks.js";
import { WireError, readDeliveries } from "../wire.js";
import { quoted, remedyOf } from "./problem.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../wire.js").Delivery} Delivery */

const MARKS = /** @type {const} */ ({ delivered: "ok", waiting: "stale", failed: "warning" });

export class Told {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "";
    this.asked = ""; // what the answer shown depends on
    this.isPending = false;
    this.list = h("ul", { class: "told-list", "aria-live": "polite" });
    const summary = h("summary", { class: "detail" }, app.words.t("told.open"));
    this.element = h("details", { class: "told", toggle: () => this.#renew() }, summary, this.list);
  }

  /** @param {Alert} alert */
  draw({ id, state, acknowledged, muted }) {
    this.isPending = state === "pending";
    this.state = JSON.stringify([id, state, acknowledged, muted, this.app.store.channels]);
    if (id !== this.id) fill(this.list, h("li", { class: "muted" }, this.app.words.t("told.asking")));
    this.id = id;
    this.#renew();
  }

  #renew() {
    if (!this.element.open || this.state === this.asked) return;
    this.asked = this.state ?? "";
    if (this.isPending) return this.#fill([], this.app.words.t("told.not_yet"));
    void this.#ask(this.asked);
  }

  /** @param {string} state an answer to an older question is dropped */
  async #ask(state) {
    const { words } = this.app;
    try {
      const told = readDeliveries(await ask("GET", `alerts/${encodeURIComponent(this.id)}`));
      if (state === this.asked)
        this.#fill(
          told.map((one) => this.#item(one)),
          words.t("told.nobody"),
        );
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      const said = error instanceof ApiError ? remedyOf(words, error) : "";
      if (state === this.asked) this.#fill([], `${said} ${error.message}`);
    }
  }

  /** @param {HTMLElement[]} items @param {string} none */
  #fill(items, none) {
    fill(this.list, ...(items.length > 0 ? items : [h("li", { class: "muted" }, none)]));
  }

  /** @param {Delivery} one */
  #item({ channel, kind, state, made_at, done_at, attempts, error }) {
    const { words } = this.app;
    const at = done_at ?? made_at;
    const when = h("span", { title: moment(words, at) }, words.t(`told.${state}`, { time: clockTime(words, at) }));
    const known = `told.${kind}` in words.catalogue;
    const tries = attempts > 1 || error !== null ? ` ${words.count("told.attempts", attempts)}` : "";
    return h(
      "li",
      {},
      markIcon(MARKS[state]),
      h(
        "span",
        {},
        h("b", {}, channel),
        ` ${known ? words.t(`told.${kind}`) : kind} · `,
        when,
        tries,
        error === null ? null : h("span", {}, " ", h("code", {}, quoted(words, "channel.said", error))),
      ),
    );
  }
}
