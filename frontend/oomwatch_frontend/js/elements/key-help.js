// What each key does.

import { h } from "../dom.js";
import { KEYS } from "../keys.js";
import { readOnlyDialog } from "./dialog.js";

/** @param {import("../i18n.js").Words} words @param {boolean} isOn whether the keys are in use */
export function openKeyHelp(words, isOn) {
  const dialog = readOnlyDialog(words, words.t("keys.title"));
  const rows = KEYS.map(({ keys, does }) => [
    h("dt", {}, ...keys.split(" ").map((key) => h("kbd", {}, key))),
    h("dd", {}, words.t(`keys.${does}`)),
  ]);
  const escape = [h("dt", {}, h("kbd", {}, "Esc")), h("dd", {}, words.t("keys.escape"))];
  const off = isOn ? null : h("p", { class: "caution" }, words.t("keys.are_off"));
  dialog.content.append(...(off === null ? [] : [off]), h("dl", { class: "keys" }, ...rows.flat(), ...escape));
  dialog.open(dialog.action);
}
