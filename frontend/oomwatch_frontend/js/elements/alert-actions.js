// What a person can do about an alert, or about all of a group: take care of it, hand it back, have it hidden for a time.

import { takeBack } from "../acknowledging.js";
import { Part, h } from "../dom.js";
import { openAckDialog } from "./ack-dialog.js";
import { Problem } from "./problem.js";
import { openSilenceDialog } from "./silence-dialog.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../dom.js").Child} Child */

export class AlertActions {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.silences = true;
    this.problem = new Problem();
    this.buttons = new Part("div", { class: "actions" });
    this.element = h("div", { class: "action-row" }, this.buttons.element, this.problem.element);
    /** @type {Alert[]} */
    this.alerts = [];
    this.busy = false;
  }

  /** @param {Alert[]} alerts one, or all of a group @param {string} title what they are about */
  draw(alerts, title) {
    this.alerts = alerts;
    this.title = title;
    const [todo, taken] = [this.#unseen().length, this.#taken().length];
    const open = alerts.some((alert) => alert.state !== "resolved");
    this.element.hidden = !open;
    this.buttons.draw([alerts[0].id, todo, taken, open], () => (open ? this.#draw(todo, taken) : []));
  }

  #unseen() {
    return this.alerts.filter((alert) => alert.state === "firing" && alert.acknowledged === null);
  }

  #taken() {
    return this.alerts.filter((alert) => alert.state !== "resolved" && alert.acknowledged !== null);
  }

  /** @param {number} todo @param {number} taken @returns {Child[]} */
  #draw(todo, taken) {
    const { words } = this.app;
    const { id } = this.alerts[0];
    /** @param {string} name @param {string} text @param {() => void} click */
    const button = (name, text, click) =>
      h("button", { type: "button", "data-focus": `${name} ${id} ${this.alerts.length}`, click }, text);
    return [
      todo === 0
        ? null
        : button("ack", words.count("ack.do", todo), () => openAckDialog(this.app, this.#unseen(), this.title ?? "")),
      taken === 0 ? null : button("back", words.count("ack.take_back", taken), () => this.#takeBack()),
      this.silences ? button("silence", words.t("silence.open"), () => openSilenceDialog(this.app, this.alerts)) : null,
    ];
  }

  async #takeBack() {
    if (this.busy) return;
    this.busy = true;
    this.problem.clear();
    const { errors } = await takeBack(this.#taken().map((alert) => alert.id));
    this.busy = false;
    if (errors.length > 0) this.problem.show(this.app.words, errors[0]);
  }
}
