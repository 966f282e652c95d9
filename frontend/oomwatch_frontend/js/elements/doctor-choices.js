// Where a configuration is to run: card, numbers, model, verl's release. What is left empty, the configuration says.

import { fill, h, setText } from "../dom.js";
import { CHOICES } from "../doctor-question.js";
import { gib } from "../format.js";

/** @typedef {import("../doctor-question.js").Choices} Choices */
/** @typedef {import("../i18n.js").Words} Words */

const NUMBERS = ["gpus", "nodes"];

export class DoctorChoices {
  /** @param {Words} words @param {Choices} choices @param {(name: keyof Choices, value: string) => void} chosen */
  constructor(words, choices, chosen) {
    this.words = words;
    this.lists = { gpu: h("datalist", { id: "doctor-gpus" }), model: h("datalist", { id: "doctor-models" }) };
    this.verl = h("select", { id: "doctor-verl", change: () => chosen("verl", this.verl.value) });
    /** @type {Record<string, HTMLInputElement | HTMLSelectElement>} */
    this.fields = { verl: this.verl };
    /** @type {Record<string, HTMLElement>} */
    this.notes = {};
    const rows = CHOICES.map((name) => this.#row(name, choices[name], chosen));
    this.showVersions([], choices.verl);
    this.element = h("div", { class: "doctor-choices" }, ...rows, this.lists.gpu, this.lists.model);
  }

  /** @param {keyof Choices} name @param {string} value @param {(name: keyof Choices, value: string) => void} chosen */
  #row(name, value, chosen) {
    const { words } = this;
    const id = `doctor-${name}`;
    const list = name === "gpu" || name === "model" ? this.lists[name].id : null;
    const field = this.fields[name] ?? h("input", {
      id,
      list,
      type: NUMBERS.includes(name) ? "number" : "text",
      min: NUMBERS.includes(name) ? 1 : null,
      placeholder: words.t(`doctor.hint_${name}`),
      autocomplete: "off",
      spellcheck: "false",
      change: () => chosen(name, field.value),
    });
    this.fields[name] = field;
    field.value = value;
    const note = h("span", { class: "field-note", id: `${id}-note` });
    this.notes[name] = note;
    return h("div", { class: "field" }, h("label", { for: id }, words.t(`doctor.field_${name}`)), field, note);
  }

  /** @param {Choices} choices */
  show(choices) {
    for (const name of CHOICES) this.fields[name].value = choices[name];
  }

  /** Says at a field what is wrong with it; "" everywhere else. @param {string} name @param {string} text */
  complain(name, text) {
    for (const [field, note] of Object.entries(this.notes)) {
      const said = field === name ? text : "";
      setText(note, said);
      const input = this.fields[field];
      input.setAttribute("aria-invalid", String(said !== ""));
      if (said === "") input.removeAttribute("aria-describedby");
      else input.setAttribute("aria-describedby", note.id);
    }
  }

  /** @param {{ name: string, usable_bytes: number }[]} cards @param {{ name: string, parameters: number }[]} models */
  showKnown(cards, models) {
    const { words } = this;
    fill(this.lists.gpu, ...cards.map(({ name, usable_bytes }) => h("option", { value: name }, words.t("doctor.usable", { size: gib(words, usable_bytes) }))));
    fill(this.lists.model, ...models.map(({ name, parameters }) => h("option", { value: name }, words.t("doctor.parameters", { count: words.decimal1.format(parameters / 1e9) }))));
  }

  /** @param {string[]} versions @param {string} chosen one that is not listed is offered too */
  showVersions(versions, chosen) {
    const offered = chosen === "" || versions.includes(chosen) ? versions : [...versions, chosen];
    const options = [...offered].reverse().map((version) => h("option", { value: version }, `verl ${version}`));
    fill(this.verl, h("option", { value: "" }, this.words.t("doctor.hint_verl")), ...options);
    this.verl.value = chosen;
  }
}
