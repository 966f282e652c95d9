// A text with numbered lines, some of which are marked as mistaken.

import { fill, h } from "../dom.js";

export class CodeEditor {
  /** @param {string} label @param {(text: string) => void} changed */
  constructor(label, changed) {
    this.numbers = h("pre", { class: "numbers", "aria-hidden": "true" });
    this.input = h("textarea", {
      wrap: "off",
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      "aria-label": label,
      input: () => {
        this.#number();
        changed(this.input.value);
      },
      scroll: () => this.#follow(),
    });
    this.element = h("div", { class: "code-editor" }, this.numbers, this.input);
    /** @type {Set<number>} */
    this.mistaken = new Set();
    this.drawn = "";
  }

  /** @param {string} text @param {boolean} editable */
  show(text, editable) {
    if (this.input.value !== text) this.input.value = text;
    this.input.readOnly = !editable;
    this.#number();
  }

  /** @param {number[]} lines counted from 1 */
  mark(lines) {
    this.mistaken = new Set(lines);
    this.input.setAttribute("aria-invalid", String(lines.length > 0));
    this.#number();
  }

  /** Selects a line and brings it into view. @param {number} line from 1 */
  goTo(line) {
    const lines = this.input.value.split("\n");
    const from = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    this.input.focus();
    this.input.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
    const height = this.input.scrollHeight / Math.max(1, lines.length);
    this.input.scrollTop = Math.max(0, (line - 5) * height);
    this.input.scrollLeft = 0;
  }

  #number() {
    const count = this.input.value.split("\n").length;
    const key = `${count} ${[...this.mistaken]}`;
    if (key === this.drawn) return;
    this.drawn = key;
    const numbers = document.createDocumentFragment(); // a call takes no hundred thousand arguments
    for (let line = 1; line <= count; line += 1) {
      numbers.append(h("span", { class: this.mistaken.has(line) ? "mistaken" : null }, `${line}\n`));
    }
    fill(this.numbers, numbers);
    this.#follow();
  }

  #follow() {
    this.numbers.scrollTop = this.input.scrollTop;
  }
}
