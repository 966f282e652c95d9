// The rule file: read it, change it, try the change on the last hours, and put it in force where the server lets that be done.

import { ApiError, ask, sendText } from "../api.js";
import { fill, h, setText } from "../dom.js";
import { CodeEditor } from "../elements/code-editor.js";
import { Problem, serverSaid } from "../elements/problem.js";
import { ruleTabs } from "../elements/rule-tabs.js";
import { toast } from "../elements/toast.js";
import { tryoutResult } from "../elements/tryout-result.js";
import { duration, stretch } from "../format.js";
import { prose } from "../parts.js";
import { readMistakes, readRuleFile, readTaken, readTryout } from "../rulewire.js";
import { WireError } from "../wire.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../rulewire.js").RuleFile} RuleFile */

const BUDGET_SECONDS = 60;
const HOURS = [1, 6, 24, 168];

/** What somebody has changed and not saved: it outlives a look at another view. @type {{ text: string, digest: string } | null} */
let draft = null;

/** @type {import("../main.js").MakeView} */
export const ruleFileView = (root, app) => new RuleFilePage(root, app);

class RuleFilePage {
  /** @param {HTMLElement} root @param {App} app */
  constructor(root, app) {
    this.app = app;
    const { words } = app;
    /** @type {RuleFile | null} */
    this.file = null;
    this.leaving = new AbortController();
    /** @type {AbortController | null} */
    this.trying = null;
    this.problem = new Problem();
    this.about = h("div", { class: "rule-file-about" });
    this.editor = new CodeEditor(words.t("rules.editor"), (text) => this.#changed(text));
    this.mistakes = h("ul", { class: "mistakes" });
    this.result = h("div", { "aria-live": "polite" });
    this.progress = h("div", { class: "progress", hidden: true, role: "status" });
    this.hours = h(
      "select",
      { "aria-label": words.t("rules.hours") },
      ...HOURS.map((hours) => h("option", { value: hours, selected: hours === 24 }, words.t("rules.last", { span: stretch(words, hours * 3600) }))),
    );
    this.tryButton = button(words.t("rules.try"), () => this.#try());
    this.saveButton = button(words.t("rules.save"), () => this.#save());
    this.saveButton.className = "primary";
    this.resetButton = button(words.t("rules.reset"), () => this.#reset());
    this.state = h("span", { class: "muted", role: "status" });
    const tools = h("div", { class: "toolbar" }, this.tryButton, this.hours, this.saveButton, this.resetButton, this.state);
    root.append(
      h(
        "div",
        { class: "detail-page" },
        h("h1", {}, words.t("nav.rules")),
        ruleTabs(words, "file"),
        this.about,
        tools,
        this.progress,
        this.problem.element,
        this.mistakes,
        this.editor.element,
        this.result,
      ),
    );
    this.#enable();
    void this.#load();
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    if (topics.has("rules") || (topics.has("connection") && this.file === null)) void this.#load();
  }

  close() {
    this.leaving.abort();
    this.trying?.abort();
  }

  async #load() {
    await this.#guarded(async () => {
      this.file = readRuleFile(await ask("GET", "rules/file", undefined, this.leaving.signal));
      this.#draw();
    });
  }

  #draw() {
    const { file } = this;
    if (file === null) return;
    const { words } = this.app;
    const locked = file.editable ? null : h("p", { class: "locked" }, prose(words, words.t("rules.locked")));
    const secrets = file.secrets > 0 ? h("p", { class: "muted" }, words.count("rules.secrets", file.secrets)) : null;
    fill(this.about, h("p", {}, h("code", {}, file.path)), locked, secrets);
    // A copy may be changed and tried anywhere; only saving it needs leave.
    this.editor.show(draft?.text ?? file.text, true);
    if (draft !== null && draft.digest !== file.digest) this.problem.say(words.t("rules.changed_meanwhile"));
    this.#enable();
  }

  /** @param {string} text */
  #changed(text) {
    const { file } = this;
    draft = file === null || text === file.text ? null : { text, digest: draft?.digest ?? file.digest };
    this.editor.mark([]);
    fill(this.mistakes);
    fill(this.result); // it was of another text
    this.problem.clear();
    this.#enable();
  }

  #enable() {
    const { words } = this.app;
    const ready = this.file !== null && this.trying === null;
    this.tryButton.disabled = !ready;
    this.saveButton.disabled = !ready || draft === null || this.file?.editable !== true;
    this.saveButton.hidden = this.file?.editable === false;
    this.resetButton.disabled = draft === null;
    setText(this.state, draft === null ? "" : words.t("rules.unsaved"));
  }

  #reset() {
    draft = null;
    this.problem.clear();
    fill(this.mistakes);
    this.editor.mark([]);
    this.#draw();
    void this.#load();
  }

  async #try() {
    const trying = new AbortController();
    this.trying = trying;
    const stop = this.#showProgress(trying);
    this.#enable();
    await this.#guarded(async () => {
      const query = new URLSearchParams({ hours: this.hours.value, budget: String(BUDGET_SECONDS) });
      const answer = await sendText("POST", `rules/try?${query}`, this.editor.input.value, trying.signal);
      fill(this.result, tryoutResult(this.app.words, readTryout(answer)));
      this.result.scrollIntoView({ block: "nearest" });
    }, trying.signal);
    stop();
    this.trying = null;
    this.#enable();
  }

  /** How long it takes, against what it may take, and a way to stop it. @param {AbortController} trying @returns {() => void} */
  #showProgress(trying) {
    const { words } = this.app;
    const begun = performance.now();
    const bar = h("progress", { max: BUDGET_SECONDS, "aria-label": words.t("rules.trying") });
    const said = h("span", {});
    const cancel = button(words.t("dialog.cancel"), () => trying.abort());
    const tell = () => {
      const seconds = (performance.now() - begun) / 1000;
      bar.value = Math.min(seconds, BUDGET_SECONDS);
      setText(said, words.t("rules.trying_for", { span: duration(words, Math.round(seconds)), budget: duration(words, BUDGET_SECONDS) }));
    };
    tell();
    const timer = setInterval(tell, 1000);
    fill(this.progress, bar, said, cancel);
    this.progress.hidden = false;
    return () => {
      clearInterval(timer);
      this.progress.hidden = true;
    };
  }

  async #save() {
    const { file } = this;
    if (file === null || draft === null) return;
    const { text, digest } = draft;
    this.saveButton.disabled = true;
    await this.#guarded(async () => {
      const answer = await sendText("PUT", "rules/file", text, this.leaving.signal, { "If-Match": `"${digest}"` });
      const taken = readTaken(answer);
      draft = null;
      this.file = { ...file, text, digest: taken.digest };
      toast(this.app.words, this.app.words.count("rules.saved", taken.rules));
      void this.#load();
    });
    this.#enable();
  }

  /** What the server says no to is shown where it belongs. @param {() => Promise<void>} act @param {AbortSignal} [signal] what stopped it on purpose */
  async #guarded(act, signal = this.leaving.signal) {
    this.problem.clear();
    fill(this.mistakes);
    try {
      await act();
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      if (signal.aborted || this.leaving.signal.aborted) return;
      this.#refused(error);
    }
  }

  /** @param {ApiError | WireError} error */
  #refused(error) {
    const { words } = this.app;
    const found = error instanceof ApiError ? readMistakes(error.answer) : [];
    this.editor.mark(found.map(({ line }) => line));
    const items = found.map(({ line, column, message }) => {
      const place = button(words.t("rules.line", { line: String(line), column: String(column) }), () => this.editor.goTo(line));
      return h("li", {}, place, " ", h("span", { lang: "en" }, message));
    });
    const title = items.length === 0 ? null : h("li", { class: "muted" }, words.t("rules.mistakes"));
    fill(this.mistakes, title, ...items);
    const status = error instanceof ApiError ? error.status : -1;
    const key = status === 412 ? "rules.changed_meanwhile" : status === 0 ? "problem.0" : "rules.refused";
    this.problem.say(words.t(key), serverSaid(words, error.message));
  }
}

/** @param {string} label @param {() => void} click */
const button = (label, click) => h("button", { type: "button", click }, label);
