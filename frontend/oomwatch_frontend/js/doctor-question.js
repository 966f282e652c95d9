// What the doctor is asked: texts and choices to the body of POST /api/v1/doctor, and places in its answer back to the texts. Pure.

/** @typedef {import("./doctor-files.js").NamedText} NamedText */

/** What is chosen, as it stands in the fields and in the address; "" is not told. */
export const CHOICES = /** @type {const} */ (["gpu", "gpus", "nodes", "model", "verl", "host_memory"]);
/** @typedef {Record<(typeof CHOICES)[number], string>} Choices */

const COUNTED = ["gpus", "nodes"];
export const OVERRIDES = "overrides"; // the name of what stands in the field for them
const PASTED = "pasted text"; // what the server calls a text without a name

/** @typedef {{ texts: NamedText[], overrides: string, run: string, model_config: Record<string, unknown> | null }} Draft a text that was typed has no name */

/** Whether there is anything to ask about. @param {Draft} draft */
export const isEmpty = ({ texts, overrides }) => overrides.trim() === "" && texts.every(({ text }) => text.trim() === "");

/** @param {Draft} draft @param {Choices} choices @param {boolean} allSettings @param {string} language */
export function questionOf(draft, choices, allSettings, language) {
  const told = draft.texts.filter(({ text }) => text.trim() !== "");
  const files = told.filter(({ name }) => name !== "");
  if (draft.overrides.trim() !== "") files.push({ name: OVERRIDES, text: draft.overrides });
  const pasted = told.find(({ name }) => name === "");
  const chosen = CHOICES.filter((name) => choices[name].trim() !== "").map((name) => [
    name,
    COUNTED.includes(name) ? Number(choices[name]) : choices[name].trim(),
  ]);
  return {
    ...(pasted === undefined ? {} : { text: pasted.text }),
    files,
    ...(draft.run === "" ? {} : { run: draft.run }),
    ...Object.fromEntries(chosen),
    ...(draft.model_config === null ? {} : { model_config: draft.model_config }),
    all_settings: allSettings,
    language,
  };
}

/**
 * Where a place of the answer is among the texts: "ppo.yaml:12", "pasted text:3".
 * @param {NamedText[]} texts @param {string | null} place @returns {{ index: number, line: number } | null}
 */
export function whereIs(texts, place) {
  const found = /^(.*):(\d+)$/.exec(place ?? "");
  if (found === null) return null;
  const index = texts.findIndex(({ name }) => (name === "" ? PASTED : name) === found[1]);
  return index === -1 ? null : { index, line: Number(found[2]) };
}

/** Overrides with one more, in place of those of the same setting. @param {string} overrides one a line @param {string} line */
export function withOverride(overrides, line) {
  const lines = overrides.split("\n").filter((one) => one.trim() !== "" && keyOf(one) !== keyOf(line));
  return [...lines, line].join("\n");
}

/** @param {string} override "+a.b=1" */
const keyOf = (override) => override.trim().replace(/^\+*/, "").split("=", 1)[0];
