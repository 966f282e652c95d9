// The sections that show what only those are told who ask for a node: one line stands in their place until it is here, so
// that none of them is seen to move.

import { h } from "../dom.js";
import { nothing } from "../parts.js";

export class Detail {
  /** @param {import("../i18n.js").Words} words */
  constructor(words) {
    this.waiting = h("div", { class: "detail-waiting", role: "status" }, nothing(words.t("detail.waiting")));
    /** @type {HTMLElement[]} */
    this.sections = [];
    this.draw(false);
  }

  /** @param {...HTMLElement} sections @returns {HTMLElement[]} what is to be put on the page */
  around(...sections) {
    this.sections = sections;
    this.draw(false);
    return [this.waiting, ...sections];
  }

  /** @param {boolean} isHere */
  draw(isHere) {
    this.waiting.hidden = isHere;
    for (const section of this.sections) section.hidden = !isHere;
  }
}
