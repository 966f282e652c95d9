// Switching a rule on or off in the rule file: at once in force, and undone as easily.

import { ApiError, ask } from "../api.js";
import { Part, h } from "../dom.js";
import { link } from "../router.js";
import { readTaken } from "../rulewire.js";
import { Problem } from "./problem.js";
import { toast } from "./toast.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../rulewire.js").RuleRow} Rule */

export class RuleSwitch {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.problem = new Problem();
    this.part = new Part("div", { class: "actions" });
    this.element = h("div", { class: "action-row" }, this.part.element, this.problem.element);
    this.busy = false;
  }

  /** @param {Rule} rule @param {boolean | null} editable null: not known yet */
  draw(rule, editable) {
    const { words } = this.app;
    const { enabled, alert, severity } = rule;
    const name = `${alert}/${severity}`;
    this.part.draw([enabled, editable, name], () => {
      const label = words.t(enabled ? "rules.switch_off" : "rules.switch_on");
      const button = h("button", { type: "button", "data-focus": "switch", "aria-label": words.t("text.labelled", { label, text: name }), click: () => this.#switch(rule) }, label);
      const edit = h("a", { href: link("rules", ["file"]) }, words.t("rules.edit"));
      return [editable === true ? button : null, edit];
    });
  }

  /** @param {Rule} rule */
  async #switch({ alert, severity, enabled }) {
    if (this.busy) return;
    const { words } = this.app;
    this.busy = true;
    this.problem.clear();
    try {
      await put(alert, severity, !enabled);
      const name = `${alert}/${severity}`;
      toast(words, words.t(enabled ? "rules.is_off_now" : "rules.is_on_now", { rule: name }), () => put(alert, severity, enabled));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.problem.show(words, error);
    }
    this.busy = false;
  }
}

/** @param {string} alert @param {string} severity @param {boolean} on */
async function put(alert, severity, on) {
  return readTaken(await ask("POST", `rules/${encodeURIComponent(alert)}/${on ? "enable" : "disable"}?severity=${severity}`));
}
