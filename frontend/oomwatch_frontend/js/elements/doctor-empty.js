// Before there is anything to look at: what to do, and configurations to begin with.

import { h } from "../dom.js";

/** @param {import("../i18n.js").Words} words @param {import("../doctorwire.js").Template[]} templates @param {(name: string) => void} choose */
export function doctorEmpty(words, templates, choose) {
  const items = templates.map(({ name, title, card, claim }) => {
    const button = h("button", { type: "button", "data-focus": `template-${name}`, click: () => choose(name) }, name);
    return h("li", {}, button, h("div", {}, title, h("div", { class: "muted" }, `${card} · ${claim}`)));
  });
  return h(
    "div",
    { class: "doctor-empty" },
    h("p", {}, h("b", {}, words.t("doctor.empty"))),
    h("p", { class: "muted" }, words.t("doctor.empty_how")),
    items.length === 0 ? null : h("h2", {}, words.t("doctor.templates")),
    h("ul", { class: "doctor-templates" }, ...items),
  );
}
