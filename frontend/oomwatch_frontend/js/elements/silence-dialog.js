// Having alerts hidden for a time: which, for how long, why, and what that would hide.

import { ask } from "../api.js";
import { fill } from "../dom.js";
import { clockTime } from "../format.js";
import { matcherText, offersFor } from "../silencing.js";
import { readSilence } from "../wire.js";
import { Dialog } from "./dialog.js";
import { DurationChoice } from "./duration-choice.js";
import { MatcherRows } from "./matcher-rows.js";
import { Signature } from "./signature.js";
import { SilencePreview } from "./silence-preview.js";
import { toast } from "./toast.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../wire.js").Silence} Silence */

/** @param {string} id */
export const endSilence = (id) => ask("DELETE", `silences/${encodeURIComponent(id)}`);

/**
 * @param {Pick<Silence, "matchers" | "ends_at" | "created_by" | "note">} wanted
 * @returns {Promise<Silence>} @throws {import("../api.js").ApiError}
 */
export async function createSilence({ matchers, ends_at, created_by, note }) {
  return readSilence(await ask("POST", "silences", { match: matchers.map(matcherText), ends_at, created_by, note }));
}

/** @param {App} app @param {Alert[]} alerts what it begins with; empty: nothing */
export function openSilenceDialog(app, alerts) {
  const { words, store } = app;
  /** @type {Dialog} */
  const dialog = new Dialog(words, words.t("silence.title"), submit);
  const preview = new SilencePreview(app, dialog.leaving.signal);
  const changed = () => {
    preview.show(rows.read());
    dialog.problem.clear();
  };
  const offers = offersFor(alerts);
  const rows = new MatcherRows(words, offers.length > 0 ? offers : [EMPTY], changed);
  const duration = new DurationChoice(
    words,
    () => store.now(),
    () => dialog.problem.clear(),
  );
  const signature = new Signature(words, words.t("silence.note_hint"));

  async function submit() {
    const matchers = rows.read();
    const ends_at = duration.read();
    if (matchers.length === 0) return dialog.problem.say(words.t("silence.no_matcher"));
    if (ends_at === null || ends_at <= store.now()) return dialog.problem.say(words.t("silence.no_end"));
    const word = signature.read(dialog.problem);
    if (word === null) return;
    const made = await createSilence({ matchers, ends_at, created_by: word.by, note: word.note });
    dialog.close();
    toast(words, words.t("silence.done", { time: clockTime(words, made.ends_at) }), () => endSilence(made.id));
  }

  dialog.action.textContent = words.t("silence.do");
  fill(dialog.content, rows.element, preview.element, duration.element, ...signature.elements);
  dialog.open(/** @type {HTMLElement} */ (rows.element.querySelector("input")));
  preview.show(rows.read());
}

const EMPTY = { used: true, matcher: { label: "node", op: /** @type {const} */ ("="), value: "" } };
