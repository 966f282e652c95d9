// What each key does: on every view, and where only what has the focus listens.

import { h } from "../dom.js";
import { KEYS, KEYS_WITHIN } from "../keys.js";
import { readOnlyDialog } from "./dialog.js";

/** @typedef {import("../i18n.js").Words} Words */

/** @param {Words} words @param {boolean} isOn whether the keys are in use */
export function openKeyHelp(words, isOn) {
  const dialog = readOnlyDialog(words, words.t("keys.title"));
  const everywhere = [...KEYS, { keys: "Esc", does: "escape" }];
  const within = KEYS_WITHIN.map(({ place, keys }) => h("section", {}, h("h3", {}, words.t(`keys.in_${place}`)), list(words, keys)));
  const off = isOn ? [] : [h("p", { class: "caution" }, words.t("keys.are_off"))];
  dialog.content.append(...off, h("div", { class: "key-help" }, list(words, everywhere), h("div", {}, ...within)));
  dialog.open(dialog.action);
}

/** @param {Words} words @param {readonly { keys: string, does: string }[]} keys */
function list(words, keys) {
  const rows = keys.map(({ keys, does }) => [h("dt", {}, ...keys.split(" ").map((key) => key_(words, key))), h("dd", {}, words.t(`keys.${does}`))]);
  return h("dl", { class: "keys" }, ...rows.flat());
}

/** @param {Words} words @param {string} key */
const key_ = (words, key) => h("kbd", {}, key === "any" ? words.t("keys.any") : key);
