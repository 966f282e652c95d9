// Light or dark: the system's, unless the reader chose.

/** @typedef {"system" | "light" | "dark"} Theme */

const STORED = "oomwatch.theme";
const DARK = "(prefers-color-scheme: dark)";

/** @param {string | null} value @returns {Theme} */
export function readTheme(value) {
  return value === "light" || value === "dark" ? value : "system";
}

/** What one press of the button leads to. @param {Theme} theme @returns {Theme} */
export function nextTheme(theme) {
  return theme === "system" ? "light" : theme === "light" ? "dark" : "system";
}

export class ThemeSwitch extends EventTarget {
  constructor() {
    super();
    this.theme = readTheme(localStorage.getItem(STORED));
    this.system = matchMedia(DARK);
    this.system.addEventListener("change", () => this.#apply());
    addEventListener("resize", forgetStyle);
    this.#apply();
  }

  next() {
    this.theme = nextTheme(this.theme);
    localStorage.setItem(STORED, this.theme);
    this.#apply();
  }

  #apply() {
    const dark = this.theme === "system" ? this.system.matches : this.theme === "dark";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    forgetStyle();
    this.dispatchEvent(new Event("change"));
  }
}

/** Of the theme that is on: to ask the style sheet makes the browser work out all styles that have changed. @type {Map<string, string>} */
const colours = new Map();

/** What the style sheet says may be different: another theme, and on a wide desk or a wall screen other sizes of text. */
export const forgetStyle = () => colours.clear();

/** A colour of the style sheet, for what is painted by hand (canvas, charts). @param {string} name without "--" */
export function colour(name) {
  const known = colours.get(name);
  if (known !== undefined) return known;
  const found = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  colours.set(name, found);
  return found;
}

/** How large the page's small text is, px: what charts write is as large. */
export const smallPx = () => Number.parseFloat(colour("small"));
