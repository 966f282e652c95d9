// Taking care of one alert, or of all of a group.

import { acknowledge, takeBack } from "../acknowledging.js";
import { fill, h } from "../dom.js";
import { Dialog } from "./dialog.js";
import { remedyOf, serverSaid } from "./problem.js";
import { Signature } from "./signature.js";
import { toast } from "./toast.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Alert} Alert */

/** @param {App} app @param {Alert[]} alerts those that nobody takes care of yet @param {string} title what they are about */
export function openAckDialog({ words, store }, alerts, title) {
  let left = alerts;
  /** @type {string[]} */
  const taken = [];
  const signature = new Signature(words, words.t("ack.note_hint"));
  /** @type {Dialog} */
  const dialog = new Dialog(words, words.t("ack.title"), async () => {
    const word = signature.read(dialog.problem);
    if (word === null) return;
    const { done, errors } = await acknowledge(store.alerts.values(), left, word);
    left = left.filter((alert) => !done.includes(alert.id));
    taken.push(...done);
    const [error] = errors;
    if (error !== undefined && done.length === 0) throw error;
    if (error !== undefined) {
      const said = words.t("ack.some_failed", { n: done.length, left: left.length });
      return dialog.problem.say(`${said} ${remedyOf(words, error)}`, serverSaid(words, error.message));
    }
    dialog.close();
    toast(words, words.count("ack.done", taken.length), () => undoAll(taken));
  });
  fill(
    dialog.content,
    h("p", { class: "about" }, title),
    h("p", { class: "muted" }, words.t("ack.means")),
    ...signature.elements,
  );
  dialog.action.textContent = words.count("ack.do", alerts.length);
  dialog.open(signature.first);
}

/** @param {string[]} ids */
async function undoAll(ids) {
  const { errors } = await takeBack(ids);
  if (errors.length > 0) throw errors[0];
}
