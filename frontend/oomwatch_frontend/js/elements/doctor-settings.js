// Every setting with its value, where that comes from, and what it leaves without effect. To be searched.

import { fill, h, setText } from "../dom.js";
import { row, table } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../doctorwire.js").Setting} Setting */

const ROWS_MAX = 250; // as many as are looked through; the filter finds the others

/** A value as YAML has it. @param {unknown} value @returns {string} */
export const shownValue = (value) => (typeof value === "string" ? value : JSON.stringify(value));

export class DoctorSettings {
  /** @param {Words} words @param {boolean} all whether verl's defaults are among them @param {(all: boolean) => void} wantAll */
  constructor(words, all, wantAll) {
    this.words = words;
    /** @type {Setting[]} */
    this.settings = [];
    this.filter = h("input", { type: "search", "aria-label": words.t("doctor.filter"), placeholder: words.t("doctor.filter"), input: () => this.#draw() });
    this.all = h("input", { type: "checkbox", checked: all, change: () => wantAll(this.all.checked) });
    this.count = h("span", { class: "muted", role: "status" });
    this.body = h("tbody");
    const heads = ["config.key", "config.value", "doctor.origin", "doctor.instead_of"].map((key) => words.t(key));
    const tools = h("div", { class: "toolbar" }, this.filter, h("label", {}, this.all, words.t("doctor.all_settings")), this.count);
    this.element = h("div", { class: "doctor-settings" }, tools, table(words, heads, [], this.body));
  }

  /** @param {Setting[]} settings */
  show(settings) {
    this.settings = settings;
    this.#draw();
  }

  #draw() {
    const sought = this.filter.value.trim().toLowerCase();
    const found = this.settings.filter((one) => [one.key, shownValue(one.value), one.origin.place].some((text) => text.toLowerCase().includes(sought)));
    const shown = found.slice(0, ROWS_MAX);
    fill(this.body, ...shown.map((one) => this.#row(one)));
    const more = found.length - shown.length;
    setText(this.count, this.words.t(more > 0 ? "doctor.settings_more" : "doctor.settings_count", { count: found.length, shown: shown.length }));
  }

  /** @param {Setting} setting */
  #row({ key, value, origin, written, shadows }) {
    const told = written === null ? null : h("div", { class: "muted" }, written);
    const before = shadows.map((one) => h("div", {}, h("s", {}, shownValue(one.value)), " ", h("span", { class: "muted" }, one.origin.place)));
    return row([h("code", {}, key), h("div", {}, shownValue(value), told), origin.place, h("div", {}, ...before)], []);
  }
}
