// The configuration that the doctor looks at: typed, pasted, dropped or chosen, one text at a time where there are several.

import { FileError, textOf, textsOf } from "../doctor-files.js";
import { Part, h } from "../dom.js";
import { CodeEditor } from "./code-editor.js";

/** @typedef {import("../doctor-files.js").NamedText} NamedText */

export class DoctorInput {
  /**
   * @param {import("../i18n.js").Words} words
   * @param {{ typed: () => void, dropped: (texts: NamedText[]) => void, unreadable: (name: string) => void }} heard
   */
  constructor(words, heard) {
    this.words = words;
    this.heard = heard;
    /** @type {NamedText[]} */
    this.texts = [];
    this.shown = 0;
    /** @type {Map<number, number[]>} mistaken lines of each text */
    this.mistaken = new Map();
    this.editor = new CodeEditor(words.t("doctor.editor"), (text) => this.#type(text));
    this.editor.input.setAttribute("placeholder", words.t("doctor.placeholder"));
    this.tabs = new Part("div", { class: "doctor-tabs" });
    this.file = h("input", { type: "file", multiple: true, hidden: true, change: () => this.#choose() });
    const choose = h("button", { type: "button", "data-focus": "choose", click: () => this.file.click() }, words.t("doctor.choose_file"));
    const clear = h("button", { type: "button", "data-focus": "clear", click: () => this.heard.dropped([]) }, words.t("doctor.clear"));
    const tools = h("div", { class: "doctor-tools" }, choose, clear, h("span", { class: "muted" }, words.t("doctor.drop")));
    this.element = h("div", { class: "doctor-input" }, tools, this.file, this.tabs.element, this.editor.element);
  }

  /** Takes what is dropped anywhere on an element. @param {HTMLElement} page */
  listen(page) {
    let depth = 0; // of the elements that the pointer is in
    const over = (/** @type {number} */ by) => {
      depth = Math.max(0, depth + by);
      page.classList.toggle("dropping", depth > 0);
    };
    page.addEventListener("dragenter", () => over(1));
    page.addEventListener("dragleave", () => over(-1));
    page.addEventListener("dragover", (event) => event.preventDefault());
    page.addEventListener("drop", (event) => {
      over(-depth);
      if (event.dataTransfer === null || event.dataTransfer.files.length === 0) return; // a text is pasted by the field itself
      event.preventDefault();
      void this.#take(textsOf(event.dataTransfer));
    });
  }

  /** @param {NamedText[]} texts the same that are edited from now on @param {number} [index] which is shown */
  show(texts, index = 0) {
    this.texts = texts;
    this.shown = Math.min(index, Math.max(0, texts.length - 1));
    this.editor.show(texts[this.shown]?.text ?? "", true);
    this.#drawTabs();
    this.#mark();
  }

  /** @param {Map<number, number[]>} lines of each text, from 1 */
  mark(lines) {
    this.mistaken = lines;
    this.#drawTabs();
    this.#mark();
  }

  /** @param {number} index @param {number} line */
  goTo(index, line) {
    if (index !== this.shown) this.show(this.texts, index);
    this.editor.goTo(line);
  }

  #mark() {
    this.editor.mark(this.mistaken.get(this.shown) ?? []);
  }

  #drawTabs() {
    const names = this.texts.map(({ name }) => name);
    const tabs = names.length > 1 || (names[0] ?? "") !== "" ? names : [];
    this.tabs.draw([tabs, this.shown, [...this.mistaken.keys()]], () =>
      tabs.map((name, index) => {
        const pressed = String(index === this.shown);
        const attributes = { type: "button", "data-focus": `text-${index}`, "aria-pressed": pressed, click: () => this.show(this.texts, index) };
        return h("button", attributes, name, this.mistaken.has(index) ? h("b", {}, " !") : null);
      }),
    );
  }

  /** @param {string} text */
  #type(text) {
    const shown = this.texts[this.shown];
    if (shown === undefined) this.texts.push({ name: "", text });
    else shown.text = text;
    this.heard.typed();
  }

  #choose() {
    void this.#take(Promise.all([...(this.file.files ?? [])].map((file) => textOf(file))));
    this.file.value = ""; // the same file can be chosen again
  }

  /** @param {Promise<NamedText[]>} reading */
  async #take(reading) {
    try {
      const texts = await reading;
      if (texts.length > 0) this.heard.dropped(texts);
    } catch (error) {
      if (!(error instanceof FileError || error instanceof DOMException)) throw error;
      this.heard.unreadable(error.name);
    }
  }
}
