// The keys of the page: what each does, and which of them has been pressed. Pure; keyboard.js listens.

const PATIENCE_MS = 1500; // between the two keys of "g f"

/** In the order in which the help lists them: what is pressed, what it does, and the view it leads to. */
export const KEYS = /** @type {const} */ ([
  { keys: "g f", does: "fleet", view: "fleet" },
  { keys: "g r", does: "runs", view: "runs" },
  { keys: "g a", does: "alerts", view: "alerts" },
  { keys: "g s", does: "silences", view: "silences" },
  { keys: "g c", does: "channels", view: "channels" },
  { keys: "g i", does: "incidents", view: "incidents" },
  { keys: "g u", does: "rules", view: "rules" },
  { keys: "g d", does: "doctor", view: "doctor" },
  { keys: "g v", does: "server", view: "server" },
  { keys: "/", does: "search", view: null },
  { keys: "j", does: "next", view: null },
  { keys: "k", does: "previous", view: null },
  { keys: "t", does: "theme", view: null },
  { keys: "l", does: "language", view: null },
  { keys: "u", does: "zone", view: null },
  { keys: "?", does: "help", view: null },
]);

/** @typedef {(typeof KEYS)[number]} Key */

/** What only holds where the focus is, by where that is; the elements themselves listen for it. @type {{ place: string, keys: { keys: string, does: string }[] }[]} */
export const KEYS_WITHIN = [
  {
    place: "map",
    keys: [
      { keys: "← → ↑ ↓", does: "map_move" },
      { keys: "Home End", does: "map_ends" },
      { keys: "Enter", does: "map_open" },
      { keys: "Esc", does: "map_leave" },
    ],
  },
  {
    place: "chart",
    keys: [
      { keys: "← →", does: "chart_pan" },
      { keys: "+ −", does: "chart_zoom" },
      { keys: "End", does: "chart_live" },
    ],
  },
  {
    place: "steps",
    keys: [
      { keys: "← →", does: "steps_one" },
      { keys: "PgUp PgDn", does: "steps_ten" },
      { keys: "Home End", does: "steps_ends" },
      { keys: "Esc", does: "steps_all" },
    ],
  },
  {
    place: "search",
    keys: [
      { keys: "↑ ↓", does: "search_choose" },
      { keys: "Enter", does: "search_open" },
      { keys: "Esc", does: "search_leave" },
    ],
  },
  { place: "wall", keys: [{ keys: "any", does: "wall_leave" }] },
];

/** Puts keys together to what they mean: most stand alone, those after "g" belong to it. */
export class Presses {
  constructor() {
    this.before = "";
    this.beforeAtMs = -Infinity;
  }

  /** @param {string} key as KeyboardEvent names it @param {number} atMs @returns {Key | null} what was meant, once it is whole */
  take(key, atMs) {
    const started = atMs - this.beforeAtMs <= PATIENCE_MS ? this.before : "";
    const whole = started === "" ? key : `${started} ${key}`;
    const begins = started === "" && KEYS.some(({ keys }) => keys.startsWith(`${key} `));
    this.before = begins ? key : "";
    this.beforeAtMs = begins ? atMs : -Infinity;
    return KEYS.find(({ keys }) => keys === whole) ?? null;
  }
}
