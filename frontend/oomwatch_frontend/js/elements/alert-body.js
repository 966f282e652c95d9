// Everything about one alert: what people did, its numbers, why we believe it and what to change.

import { Part, h } from "../dom.js";
import { prose } from "../parts.js";
import { AlertActions } from "./alert-actions.js";
import { AlertBefore } from "./alert-before.js";
import { acts, figures } from "./alert-figures.js";
import { AlertShare } from "./alert-share.js";
import { waiting, waitingLines } from "./alert-waiting.js";
import { changes, why } from "./alert-why.js";
import { handled } from "./handled.js";
import { Told } from "./told.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Alert} Alert */

export class AlertBody {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.handled = new Part("ul", { class: "handled" });
    this.strip = new Part("dl", { class: "strip" });
    this.waiting = new Part("div", { class: "cost-of-waiting" });
    this.why = new Part("div");
    this.changes = new Part("div");
    this.actions = new AlertActions(app);
    this.told = new Told(app);
    this.before = new AlertBefore(app);
    this.share = new AlertShare(app);
    const parts = [this.handled, this.actions, this.strip, this.waiting, this.why, this.changes];
    const beside = [this.before, this.told, this.share].map((part) => part.element);
    this.element = h("div", { class: "alert-body" }, ...parts.map((part) => part.element), h("div", { class: "beside" }, ...beside));
  }

  /** @param {Alert} alert @param {Alert[]} together all that its buttons act on @param {string} title what those are about */
  draw(alert, together, title) {
    this.actions.draw(together, title);
    const { words, store } = this.app;
    const { description, advice } = words.pick(alert.texts);
    const lines = handled(this.app, alert);
    this.handled.element.hidden = lines.length === 0;
    this.handled.draw([alert.acknowledged, alert.muted, alert.state, store.silences], () => lines);
    this.strip.draw({ ...alert, texts: null, causes: null, remedies: null, acts: null }, () => figures(words, alert));
    this.why.draw([description, alert.causes, alert.acts], () => [
      description === "" ? null : h("p", {}, prose(words, description)),
      ...why(words, alert.causes),
      ...acts(words, alert.acts),
    ]);
    const cost = waitingLines(this.app, alert);
    this.waiting.element.hidden = cost.length === 0;
    this.waiting.draw(cost, () => waiting(this.app, cost));
    this.before.draw(alert);
    this.told.draw(alert);
    this.share.draw(alert);
    this.changes.draw([alert.remedies, advice], () => changes(words, alert.remedies, advice));
  }
}
