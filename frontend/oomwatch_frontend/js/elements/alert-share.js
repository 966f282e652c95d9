// The way to an alert for somebody else: a link that opens it, whatever else they look at.

import { Part, h } from "../dom.js";
import { copyButton } from "../parts.js";
import { link } from "../router.js";

export class AlertShare {
  /** @param {import("../main.js").App} app */
  constructor({ words }) {
    this.words = words;
    this.part = new Part("p", { class: "share" });
    this.element = this.part.element;
  }

  /** @param {import("../wire.js").Alert} alert */
  draw({ id }) {
    const href = link("alerts", [], { id });
    const { origin, pathname } = location;
    this.part.draw(id, () => [h("a", { href }, this.words.t("alerts.link")), copyButton(this.words, `${origin}${pathname}${href}`)]);
  }
}
