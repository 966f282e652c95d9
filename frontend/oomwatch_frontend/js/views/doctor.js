// The config doctor: a training's configuration goes in on one side, and what it means stands beside it as one types.

import { ApiError, ask, sendText } from "../api.js";
import { modelConfigIn } from "../doctor-files.js";
import { CHOICES, OVERRIDES, isEmpty, questionOf, whereIs, withOverride } from "../doctor-question.js";
import { readCards, readDoctorMistakes, readModels, readReport, readTemplateText, readTemplates, readVersions } from "../doctorwire.js";
import { fill, h, setText } from "../dom.js";
import { DoctorChoices } from "../elements/doctor-choices.js";
import { doctorEmpty } from "../elements/doctor-empty.js";
import { DoctorInput } from "../elements/doctor-input.js";
import { DoctorReport } from "../elements/doctor-report.js";
import { Problem, remedyOf } from "../elements/problem.js";
import { noteInAddress } from "../router.js";
import { WireError } from "../wire.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../doctor-files.js").NamedText} NamedText */
/** @typedef {import("../doctor-question.js").Choices} Choices */
/** @typedef {import("../doctor-question.js").Draft} Draft */

const PAUSE_MS = 400; // of typing, before we ask

/** @returns {Draft & { template: string }} */
const blank = () => ({ texts: [], overrides: "", run: "", template: "", model_config: null });

/** What somebody has written: it outlives a look at another view, and is in no address. */
let draft = blank();
let allSettings = false;

/** @type {import("../main.js").MakeView} */
export const doctorView = (root, app, route) => new DoctorPage(root, app, route.query);

class DoctorPage {
  /** @param {HTMLElement} root @param {App} app @param {Record<string, string>} query */
  constructor(root, app, query) {
    this.app = app;
    const { words } = app;
    /** @type {Choices} */
    this.choices = /** @type {Choices} */ (Object.fromEntries(CHOICES.map((name) => [name, query[name] ?? ""])));
    this.leaving = new AbortController();
    this.asking = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.pause = undefined;
    /** @type {unknown} the last answer, as it came */
    this.answer = null;
    /** @type {import("../doctorwire.js").Template[]} */
    this.templates = [];
    this.problem = new Problem();
    this.state = h("p", { class: "doctor-state muted", role: "status" });
    this.empty = h("div");
    const unreadable = (/** @type {string} */ name) => this.problem.say(words.t("doctor.unreadable", { name }), words.t("doctor.unreadable_how"));
    this.input = new DoctorInput(words, { typed: () => this.#typed(), dropped: (texts) => this.#dropped(texts), unreadable });
    this.fields = new DoctorChoices(words, this.choices, (name, value) => this.#chose(name, value));
    this.overrides = h("textarea", { id: "doctor-overrides", rows: 2, spellcheck: "false", placeholder: words.t("doctor.hint_overrides"), input: () => this.#overrode() });
    this.shape = h("div", { class: "doctor-shape" });
    const wantAll = (/** @type {boolean} */ all) => {
      allSettings = all;
      this.#changed(0);
    };
    this.report = new DoctorReport(words, { placeLink: (place) => this.#placeLink(place), tryOut: (line) => this.#tryOut(line) }, { all: allSettings, wantAll, download: () => this.#download() });
    const page = this.#layout();
    this.input.listen(page);
    root.append(page);
    this.#begin(query);
    void this.#guarded(() => this.#learn());
  }

  #layout() {
    const { words } = this.app;
    const overrides = h("div", { class: "field" }, h("label", { for: "doctor-overrides" }, words.t("doctor.overrides")), this.overrides);
    const asked = h("section", { class: "doctor-asked", "aria-label": words.t("doctor.asked") }, this.fields.element, this.shape, this.input.element, overrides);
    const told = h("section", { class: "doctor-told", "aria-label": words.t("doctor.told") }, this.state, this.problem.element, this.empty, this.report.element);
    const head = [h("h1", {}, words.t("nav.doctor")), h("p", { class: "muted" }, words.t("doctor.what"))];
    return h("div", { class: "detail-page doctor" }, ...head, h("div", { class: "doctor-sides" }, asked, told));
  }

  /** What the address names, or what was written before. @param {Record<string, string>} query */
  #begin({ run = "", template = "" }) {
    if (run !== "" && run !== draft.run) draft = { ...blank(), run };
    else if (template !== "" && template !== draft.template) {
      draft = { ...blank(), template };
      void this.#guarded(() => this.#load(template));
    }
    this.#show();
    this.#takeRun();
    this.#changed(0);
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    if (topics.has("runs") && this.#takeRun()) this.#changed(0);
  }

  close() {
    clearTimeout(this.pause);
    this.leaving.abort();
    this.asking.abort();
  }

  /** The configuration of the run that the address names, once it is known, as a text that can be changed. */
  #takeRun() {
    const { words, store } = this.app;
    if (draft.run === "" || draft.texts.length > 0) return false;
    const run = store.runs.get(draft.run);
    if (run === undefined || Object.keys(run.config).length === 0) {
      const waits = store.connection.phase === "connecting";
      if (!waits) this.problem.say(words.t(run === undefined ? "doctor.run_unknown" : "doctor.run_untold", { run: draft.run }));
      return false;
    }
    this.problem.clear();
    draft.texts = [{ name: `run ${draft.run}`, text: JSON.stringify(run.config, null, 1) }];
    this.#show();
    return true;
  }

  /** What there is to choose from. */
  async #learn() {
    const get = (/** @type {string} */ path) => ask("GET", `doctor/${path}`, undefined, this.leaving.signal);
    const [cards, models, versions, templates] = await Promise.all(["cards", "models", "versions", `templates?lang=${this.app.words.language}`].map(get));
    this.fields.showKnown(readCards(cards), readModels(models));
    this.fields.showVersions(readVersions(versions), this.choices.verl);
    this.templates = readTemplates(templates);
    this.#drawEmpty();
  }

  /** @param {string} name of a template */
  async #load(name) {
    const { words } = this.app;
    const query = new URLSearchParams({ lang: words.language, ...(this.choices.verl === "" ? {} : { version: this.choices.verl }) });
    const found = readTemplateText(await ask("GET", `doctor/templates/${encodeURIComponent(name)}?${query}`, undefined, this.leaving.signal));
    draft = { ...blank(), template: name, texts: [{ name: `${found.name}.yaml`, text: found.text }] };
    this.choices.gpu ||= found.card;
    this.choices.verl ||= found.version;
    this.fields.show(this.choices);
    noteInAddress({ ...this.choices, template: name, run: "" });
    this.#show();
    this.#changed(0);
  }

  #show() {
    this.input.show(draft.texts);
    this.overrides.value = draft.overrides;
    this.#drawShape();
    this.#drawEmpty();
  }

  /** The model's own file, where one was given. */
  #drawShape() {
    const { words } = this.app;
    const forget = () => {
      draft.model_config = null;
      this.#drawShape();
      this.#changed(0);
    };
    const button = h("button", { type: "button", click: forget }, words.t("doctor.forget"));
    fill(this.shape, ...(draft.model_config === null ? [] : [words.t("doctor.own_model"), " ", button]));
  }

  #drawEmpty() {
    const empty = isEmpty(draft);
    this.empty.hidden = !empty;
    this.report.element.hidden = empty || this.report.shown === null;
    fill(this.empty, doctorEmpty(this.app.words, this.templates, (name) => void this.#guarded(() => this.#load(name))));
  }

  #typed() {
    this.#departed();
    this.#changed(PAUSE_MS);
  }

  /** A text that was changed is no template any more; of a run it still has the cards. */
  #departed() {
    if (draft.template !== "") noteInAddress({ template: "" });
    draft.template = "";
  }

  #overrode() {
    draft.overrides = this.overrides.value;
    this.#changed(PAUSE_MS);
  }

  /** @param {string} line */
  #tryOut(line) {
    draft.overrides = withOverride(draft.overrides, line);
    this.overrides.value = draft.overrides;
    this.#changed(0);
  }

  /** @param {keyof Choices} name @param {string} value */
  #chose(name, value) {
    this.choices[name] = value;
    noteInAddress({ [name]: value });
    this.#changed(0);
  }

  /** New texts in place of those that are there; a model's file is none of them. @param {NamedText[]} texts */
  #dropped(texts) {
    const shapes = texts.map(({ text }) => modelConfigIn(text));
    const others = texts.filter((_, index) => shapes[index] === null);
    const shape = shapes.find((one) => one !== null) ?? null;
    if (shape !== null) draft.model_config = shape;
    if (others.length > 0 || texts.length === 0) {
      draft = { ...blank(), model_config: draft.model_config, texts: others };
      noteInAddress({ run: "", template: "" });
    }
    this.#show();
    this.#changed(0);
  }

  /** Asks anew, after a pause. What is shown until then is marked as being of before. @param {number} pauseMs */
  #changed(pauseMs) {
    clearTimeout(this.pause);
    this.asking.abort();
    this.#drawEmptiness();
    if (isEmpty(draft)) {
      this.#tell("");
      return;
    }
    this.report.mark(true);
    this.#tell("doctor.looking");
    this.pause = setTimeout(() => void this.#ask(), pauseMs);
  }

  /** Only what changes: whoever has the focus in it keeps it. */
  #drawEmptiness() {
    if (this.empty.hidden === isEmpty(draft)) this.#drawEmpty();
  }

  async #ask() {
    const asking = new AbortController();
    this.asking = asking;
    await this.#guarded(async () => {
      const question = questionOf(draft, this.choices, allSettings, this.app.words.language);
      this.answer = await sendText("POST", "doctor", JSON.stringify(question), asking.signal, { "Content-Type": "application/json" });
      const report = readReport(this.answer);
      this.report.show(report);
      this.report.mark(false);
      this.#markLines(report.problems.filter(({ severity }) => severity === "error").map(({ place }) => place));
      this.fields.complain("", "");
      this.problem.clear();
      this.#tell("doctor.current");
    }, asking.signal);
  }

  /** @param {string} key */
  #tell(key) {
    setText(this.state, key === "" ? "" : this.app.words.t(key));
  }

  /** @param {() => Promise<void>} act @param {AbortSignal} [signal] what stopped it on purpose */
  async #guarded(act, signal = this.leaving.signal) {
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
    const [mistake] = error instanceof ApiError && error.status === 422 ? readDoctorMistakes(error.answer) : [];
    this.#tell(this.report.element.hidden ? "" : "doctor.earlier");
    this.fields.complain(mistake?.field ?? "", mistake?.message ?? "");
    if (mistake === undefined) {
      this.problem.say(error instanceof ApiError ? remedyOf(words, error) : words.t("doctor.failed"), error.message);
      return;
    }
    const { name, line, message: text } = mistake;
    const place = name !== null && line !== null ? `${name}:${line}` : null;
    this.problem.say(name === null || place !== null ? text : words.t("text.labelled", { label: name, text }), mistake.remedy);
    const button = this.#placeLink(place);
    if (button !== null) this.problem.element.lastElementChild?.append(button);
    this.#markLines([place]);
  }

  /** @param {(string | null)[]} places */
  #markLines(places) {
    /** @type {Map<number, number[]>} */
    const lines = new Map();
    for (const place of places) {
      const found = whereIs(draft.texts, place);
      if (found !== null) lines.set(found.index, [...(lines.get(found.index) ?? []), found.line]);
    }
    this.input.mark(lines);
  }

  /** A way to the line that an answer names; null where it is of no text here. @param {string | null} place */
  #placeLink(place) {
    const found = whereIs(draft.texts, place);
    if (found === null) {
      if (place === null || !place.startsWith(`${OVERRIDES}:`)) return null;
      return h("button", { type: "button", class: "place", click: () => this.overrides.focus() }, this.app.words.t("doctor.overrides"));
    }
    const name = draft.texts.length > 1 ? place : this.app.words.t("doctor.line", { line: found.line });
    return h("button", { type: "button", class: "place", click: () => this.input.goTo(found.index, found.line) }, name);
  }

  #download() {
    if (this.answer === null) return;
    const url = URL.createObjectURL(new Blob([JSON.stringify(this.answer, null, 1)], { type: "application/json" }));
    h("a", { href: url, download: "oomwatch-doctor.json" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 0);
  }
}
