// All alerts of a group, one row each; a row unfolds to everything about its alert.

import { Part, h, keyed } from "../dom.js";
import { extent } from "../groups.js";
import { levelOf } from "../judge.js";
import { markIcon } from "../marks.js";
import { placeName } from "../parts.js";
import { AlertBody } from "./alert-body.js";
import { toldValue } from "./alert-figures.js";
import { alertTags } from "./alert-tags.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../groups.js").Group} Group */

export class Members {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.title = h("summary");
    this.list = h("div", { class: "member-list" });
    this.element = h("details", { class: "members", toggle: () => this.#drawRows() }, this.title, this.list);
    /** @type {WeakMap<HTMLElement, Member>} */
    this.rows = new WeakMap();
    /** @type {Group | null} */
    this.group = null;
  }

  /** @param {Group} group */
  draw(group) {
    const { words } = this.app;
    this.group = group;
    this.element.hidden = group.alerts.length === 1;
    if (this.element.hidden) return;
    const title = words.t("group.all", { extent: extent(words, group.alerts) });
    if (this.title.textContent !== title) this.title.textContent = title;
    this.#drawRows();
  }

  /** Unfolds one row, if there are rows. @param {string} id @returns {HTMLElement | null} the row */
  show(id) {
    if (this.group === null || this.element.hidden) return null;
    this.element.open = true;
    this.#drawRows();
    const row = /** @type {HTMLDetailsElement | null} */ (this.list.querySelector(`#${CSS.escape(`alert-${id}`)}`));
    if (row !== null) row.open = true;
    return row;
  }

  #drawRows() {
    if (this.group === null || !this.element.open) return;
    keyed(
      this.list,
      this.group.alerts,
      (alert) => alert.id,
      () => this.#create(),
      (element, alert) => this.rows.get(element)?.draw(alert),
    );
  }

  #create() {
    const member = new Member(this.app);
    this.rows.set(member.element, member);
    return member.element;
  }
}

class Member {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.summary = new Part("summary");
    /** @type {AlertBody | null} */
    this.body = null;
    this.element = h("details", { class: "member", toggle: () => this.#drawInside() }, this.summary.element);
    /** @type {Alert | null} */
    this.alert = null;
  }

  /** @param {Alert} alert */
  draw(alert) {
    if (this.alert === alert) return;
    this.alert = alert;
    const { words } = this.app;
    const level = levelOf({ ...alert, state: alert.state === "pending" ? "pending" : "firing" });
    this.element.id = `alert-${alert.id}`;
    this.summary.draw({ ...alert, texts: null, causes: null, remedies: null, acts: null, facts: null }, () => [
      markIcon(level),
      h("span", { class: "summary" }, placeName(words, alert.labels)),
      h("span", { class: "amount" }, toldValue(words, alert)),
      ...alertTags(words, alert),
    ]);
    this.#drawInside();
  }

  #drawInside() {
    if (this.alert === null || !this.element.open) return;
    if (this.body === null) {
      this.body = new AlertBody(this.app);
      this.element.append(this.body.element);
    }
    this.body.draw(this.alert, [this.alert], this.app.words.pick(this.alert.texts).summary);
  }
}
