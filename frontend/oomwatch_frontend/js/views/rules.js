// Rules: what each one watches now, and how good it was. #/rules/file is the file that they stand in.

import { ApiError, ask } from "../api.js";
import { fill, h, keyed } from "../dom.js";
import { Problem, serverSaid } from "../elements/problem.js";
import { RuleRow } from "../elements/rule-row.js";
import { ruleTabs } from "../elements/rule-tabs.js";
import { readRuleFile, readRuleRows, readScores } from "../rulewire.js";
import { nothing, prose } from "../parts.js";
import { WireError } from "../wire.js";
import { ruleFileView } from "./rule-file.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../rulewire.js").RuleRow} Rule */

/** @type {import("../main.js").MakeView} */
export const rulesView = (root, app, route) =>
  route.args[0] === "file" ? ruleFileView(root, app, route) : new RulesPage(root, app);

class RulesPage {
  /** @param {HTMLElement} root @param {App} app */
  constructor(root, app) {
    this.app = app;
    this.problem = new Problem();
    this.list = h("div", { class: "rules" });
    this.loading = nothing(app.words.t("rules.loading"));
    /** @type {Rule[]} */
    this.rules = [];
    /** @type {import("../rulewire.js").Score[]} */
    this.scores = [];
    /** @type {WeakMap<HTMLElement, RuleRow>} */
    this.rows = new WeakMap();
    /** @type {import("../rulewire.js").RuleFile | null} */
    this.file = null;
    this.locked = h("p", { class: "locked", hidden: true });
    this.leaving = new AbortController();
    const title = h("h1", {}, app.words.t("nav.rules"));
    const what = h("p", { class: "muted" }, app.words.t("rules.what"));
    const below = h("h2", { class: "unseen" }, app.words.t("rules.tab_list"));
    root.append(h("div", { class: "detail-page" }, title, ruleTabs(app.words, "list"), what, this.locked, this.problem.element, this.loading, below, this.list));
    void this.#load();
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    if (topics.has("rules") || (topics.has("connection") && this.rules.length === 0)) void this.#load();
    if (topics.has("alerts") || topics.has("tick") || topics.has("clock")) this.#draw();
  }

  close() {
    this.leaving.abort();
  }

  async #load() {
    const { words } = this.app;
    try {
      this.rules = readRuleRows(await ask("GET", "rules/all", undefined, this.leaving.signal));
      this.loading.hidden = true;
      this.#draw();
      this.scores = readScores(await ask("GET", "scorecard", undefined, this.leaving.signal));
      this.#draw();
      this.file = readRuleFile(await ask("GET", "rules/file", undefined, this.leaving.signal));
      this.problem.clear();
      this.#tellLock();
      this.#draw();
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      if (this.leaving.signal.aborted) return;
      this.loading.hidden = true;
      this.problem.say(words.t("rules.unreadable"), serverSaid(words, error.message));
    }
  }

  /** Why no rule can be switched here, and how to let it be. */
  #tellLock() {
    const { words } = this.app;
    const editable = this.file?.editable !== false;
    this.locked.hidden = editable;
    if (!editable) fill(this.locked, prose(words, words.t("rules.read_only")));
  }

  #draw() {
    const create = () => {
      const made = new RuleRow(this.app);
      this.rows.set(made.element, made);
      return made.element;
    };
    keyed(this.list, this.rules, keyOf, create, (element, rule) => this.rows.get(element)?.draw(rule, this.#scoreOf(rule), this.file?.editable ?? null));
  }

  /** @param {Rule} rule */
  #scoreOf(rule) {
    return this.scores.find((score) => keyOf(score) === keyOf(rule)) ?? null;
  }
}

/** @param {{ alert: string, severity: string }} rule */
const keyOf = ({ alert, severity }) => `${alert}/${severity}`;
