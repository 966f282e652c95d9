// What a reader can choose for this browser: the zone of times, notifications, sound, keys. Each counts as soon as chosen.

import { ask } from "../api.js";
import { fill, h } from "../dom.js";
import { knowsNotifications, play, unlockSound } from "../notifier.js";
import { readOnlyDialog } from "./dialog.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../preferences.js").Preferences} Preferences */
/** @typedef {{ name?: string | null, may_act?: boolean, can_leave?: boolean }} Me of web/rows.py */

/** @param {Words} words @param {Preferences} preferences */
export function openSettings(words, preferences) {
  const dialog = readOnlyDialog(words, words.t("settings.title"));
  const zone = zoneChoice(words, preferences);
  const { keys } = preferences.values;
  const shortcuts = tick(words.t("settings.keys"), words.t("settings.keys_hint"), keys, async (on) => preferences.choose({ keys: on }));
  const person = h("div", { class: "person" });
  dialog.content.append(zone.element, notifications(words, preferences), sounds(words, preferences), shortcuts, person);
  showPerson(words, person);
  dialog.open(zone.first);
}

/** Who the server takes this browser for, and the way out; nothing where it asks nobody. @param {Words} words @param {HTMLElement} place */
async function showPerson(words, place) {
  const me = await ask("GET", "me").catch(() => null); // the frame says what is wrong with the connection
  const { name = null, may_act: mayAct, can_leave: canLeave } = /** @type {Me} */ (me ?? {});
  if (name === null) return;
  const said = words.t(mayAct ? "settings.signed_in" : "settings.signed_in_reader", { name });
  const out = canLeave ? h("button", { type: "button", click: signOut }, words.t("settings.sign_out")) : null;
  fill(place, h("span", {}, said), out);
}

async function signOut() {
  await fetch("sign-out", { method: "POST", redirect: "manual" });
  location.reload();
}

/** @param {Words} words @param {Preferences} preferences */
function zoneChoice(words, preferences) {
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const options = /** @type {const} */ (["local", "utc"]).map((zone) => {
    const checked = preferences.values.zone === zone;
    const input = h("input", { type: "radio", name: "zone", checked, change: () => preferences.choose({ zone }) });
    return { input, label: h("label", {}, input, words.t(`settings.zone_${zone}`, { zone: here })) };
  });
  const spans = h("div", { class: "spans" }, ...options.map(({ label }) => label));
  const element = h("fieldset", {}, h("legend", {}, words.t("settings.zone")), spans);
  return { element, first: (options.find(({ input }) => input.checked) ?? options[0]).input };
}

/** The browser asks for permission on this click, and never before. @param {Words} words @param {Preferences} preferences */
function notifications(words, preferences) {
  const allowed = () => knowsNotifications() && Notification.permission === "granted";
  const hint = () => {
    if (!knowsNotifications()) return words.t("settings.notify_insecure");
    return words.t(Notification.permission === "denied" ? "settings.notify_denied" : "settings.notify_hint");
  };
  const choose = async (/** @type {boolean} */ on) => {
    if (on && knowsNotifications()) await Notification.requestPermission();
    preferences.choose({ notify: on && allowed() });
    if (on && allowed()) new Notification("oomwatch", { body: words.t("settings.notify_test"), tag: "oomwatch test" });
    return { on: on && allowed(), hint: hint() };
  };
  return tick(words.t("settings.notify"), hint(), preferences.values.notify && allowed(), choose);
}

/** @param {Words} words @param {Preferences} preferences */
function sounds(words, preferences) {
  return tick(words.t("settings.sound"), words.t("settings.sound_hint"), preferences.values.sound, async (on) => {
    preferences.choose({ sound: on });
    if (!on) return;
    await unlockSound();
    play(["critical"]);
  });
}

/**
 * @param {string} label @param {string} hint @param {boolean} checked
 * @param {(on: boolean) => Promise<{ on: boolean, hint: string } | void>} choose what came of it, where that may differ
 */
function tick(label, hint, checked, choose) {
  const said = h("span", { class: "hint" }, hint);
  const input = h("input", { type: "checkbox", checked });
  input.addEventListener("change", async () => {
    const outcome = await choose(input.checked);
    if (!outcome) return;
    input.checked = outcome.on;
    said.textContent = outcome.hint;
  });
  return h("label", { class: "setting" }, input, h("span", {}, label), said);
}
