// What a reader chose for this browser, beside language and theme. Kept, and the same in all of its tabs.

/** @typedef {{ zone: "local" | "utc", keys: boolean, notify: boolean, sound: boolean }} Values */

const STORED = "oomwatch.preferences";

/** @type {Values} */
const USUAL = { zone: "local", keys: true, notify: false, sound: false };

/** What was kept; whatever is missing or odd is as usual. @param {string | null} text @returns {Values} */
export function readPreferences(text) {
  const kept = parse(text);
  /** @param {"keys" | "notify" | "sound"} name */
  const flag = (name) => (typeof kept[name] === "boolean" ? kept[name] : USUAL[name]);
  return {
    zone: kept.zone === "utc" ? "utc" : "local",
    keys: flag("keys"),
    notify: flag("notify"),
    sound: flag("sound"),
  };
}

/** @param {string | null} text @returns {Record<string, unknown>} */
function parse(text) {
  try {
    const value = JSON.parse(text ?? "{}");
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Says "change" when something was chosen, here or in another tab. */
export class Preferences extends EventTarget {
  constructor() {
    super();
    this.values = readPreferences(localStorage.getItem(STORED));
    addEventListener("storage", (event) => {
      if (event.key === STORED) this.#take(readPreferences(event.newValue));
    });
  }

  /** @param {Partial<Values>} chosen */
  choose(chosen) {
    const values = { ...this.values, ...chosen };
    localStorage.setItem(STORED, JSON.stringify(values));
    this.#take(values);
  }

  /** @param {Values} values */
  #take(values) {
    this.values = values;
    this.dispatchEvent(new Event("change"));
  }
}
