// Who does it, and why: the two fields that acknowledging and silencing share.

import { h } from "../dom.js";
import { rememberName, rememberedName } from "../person.js";
import { field } from "./dialog.js";

/** @typedef {import("../i18n.js").Words} Words */

const NAME_MAX = 100; // as the API takes it
const NOTE_MAX = 1000;

export class Signature {
  /** @param {Words} words @param {string} noteHint */
  constructor(words, noteHint) {
    this.words = words;
    this.name = h("input", {
      type: "text",
      maxlength: NAME_MAX,
      autocomplete: "name",
      value: rememberedName(),
      name: "by",
    });
    this.note = h("input", {
      type: "text",
      maxlength: NOTE_MAX,
      autocomplete: "off",
      name: "note",
      placeholder: noteHint,
    });
    this.elements = [field(words.t("sign.name"), this.name), field(words.t("sign.note"), this.note)];
  }

  /** The field to begin in: the first that is empty. */
  get first() {
    return this.name.value === "" ? this.name : this.note;
  }

  /** What was given, and the name kept for the next time; null where the name is missing, which is said. @param {import("./problem.js").Problem} problem */
  read(problem) {
    const by = this.name.value.trim();
    if (by === "") {
      problem.say(this.words.t("sign.name_missing"));
      this.name.focus();
      return null;
    }
    rememberName(by);
    const note = this.note.value.trim();
    return { by, note: note === "" ? null : note };
  }
}
