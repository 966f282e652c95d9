// A card for one group of alerts. Unfolded it shows all of its worst one, and the others as rows that unfold.

import { Part, h } from "../dom.js";
import { unbroken } from "../format.js";
import { titleOf } from "../groups.js";
import { levelOf } from "../judge.js";
import { markIcon } from "../marks.js";
import { AlertBody } from "./alert-body.js";
import { groupTags } from "./alert-tags.js";
import { Members } from "./members.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../groups.js").Group} Group */

export class AlertCard {
  /** @param {App} app @param {boolean} open whether it shows everything at first */
  constructor(app, open) {
    this.app = app;
    this.summary = new Part("summary");
    /** @type {{ body: AlertBody, members: Members } | null} */
    this.inside = null;
    this.element = h("details", { open, toggle: () => this.#drawInside() }, this.summary.element);
    /** @type {Group | null} */
    this.group = null;
  }

  /** @param {Group} group */
  draw(group) {
    this.group = group;
    const { words } = this.app;
    const [worst] = group.alerts;
    const level = levelOf({ ...worst, state: worst.state === "pending" ? "pending" : "firing" });
    const title = titleOf(words, group);
    this.element.className = `alert alert-${level} alert-${group.standing}`;
    this.element.id = group.alerts.length === 1 ? `alert-${worst.id}` : `group-${worst.id}`;
    this.summary.draw([title, level, group.standing, group.alerts.map(signs)], () => [
      markIcon(level),
      h("span", { class: "severity" }, words.t(`severity.${worst.severity}`)),
      h("span", { class: "summary" }, unbroken(title)),
      ...groupTags(words, group),
    ]);
    this.#drawInside();
  }

  /** What nobody sees costs nothing: a thousand alerts are a thousand closed cards or rows. */
  #drawInside() {
    if (this.group === null || !this.element.open) return;
    this.inside ??= this.#fill();
    this.inside.body.draw(this.group.alerts[0], this.group.alerts, titleOf(this.app.words, this.group));
    this.inside.members.draw(this.group);
  }

  #fill() {
    const inside = { body: new AlertBody(this.app), members: new Members(this.app) };
    this.element.append(inside.body.element, inside.members.element);
    return inside;
  }

  /** Unfolds the card, and one of its alerts. @param {string} id */
  show(id) {
    this.element.open = true;
    this.#drawInside();
    (this.inside?.members.show(id) ?? this.element).scrollIntoView({ block: "start" });
  }
}

/** All that its tags tell of an alert. @param {import("../wire.js").Alert} alert */
const signs = ({ severity, state, stale, simulated, acknowledged, muted, started_at, ended_at }) => [
  severity,
  state,
  stale,
  simulated,
  acknowledged?.by,
  muted.length > 0,
  started_at,
  ended_at,
];
