// What people did about an alert, in sentences: who takes care of it, and why nobody is sent word of it.

import { h } from "../dom.js";
import { clockTime } from "../format.js";
import { signIcon } from "../marks.js";
import { aged } from "../parts.js";
import { link } from "../router.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../wire.js").Mute} Mute */

/** @param {import("../main.js").App} app @param {Alert} alert @returns {import("../dom.js").Child[]} list items */
export function handled({ words, store }, { acknowledged, muted, state }) {
  const items = state === "resolved" ? [] : muted.map((mute) => item("muted", muteLine(words, mute, store.silences)));
  if (acknowledged === null) return items;
  const { by, at, note } = acknowledged;
  const said = h(
    "span",
    {},
    h("b", {}, words.t("ack.tag", { by })),
    " · ",
    aged(words, "age.ago", at),
    quoted(words, note),
  );
  return [item("acknowledged", said), ...items];
}

/** @param {"muted" | "acknowledged"} sign @param {HTMLElement} text */
const item = (sign, text) => h("li", {}, signIcon(sign), text);

/** @param {Words} words @param {Mute} mute @param {import("../wire.js").Silence[]} silences */
function muteLine(words, mute, silences) {
  const { kind, by, until, note } = mute;
  const silence = silences.find((one) => one.id === by);
  const what = h("b", {}, words.t(`mute.${kind}`));
  const end = until === null ? "" : words.t("mute.until", { time: clockTime(words, until) });
  if (kind === "silence") {
    const who = silence === undefined ? "" : words.t("mute.made_by", { by: silence.created_by });
    const more = h("a", { href: link("silences", [], { id: by }) }, words.t("mute.show_silence"));
    return h("span", {}, what, end, who, quoted(words, note), " · ", more);
  }
  if (kind === "inhibited") {
    const graver = h("a", { href: link("alerts", [], { id: by }) }, h("code", {}, note ?? by));
    return h("span", {}, what, " ", graver, end);
  }
  return h("span", {}, what, " ", h("q", {}, by), end, quoted(words, note));
}

/** @param {Words} words @param {string | null} note */
const quoted = (words, note) =>
  note === null || note === "" ? null : h("span", { class: "note-said" }, words.t("mute.note", { note }));
