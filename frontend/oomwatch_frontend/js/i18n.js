// Words: every sentence of the page comes from catalogue.json, in the language the reader chose.

/** @typedef {"en" | "zh"} Language */
/** @typedef {Record<string, Record<string, string>>} Catalogue */
/** @typedef {Record<string, string | number>} Params */

const STORED = "oomwatch.language";

/** @param {string | null} stored @param {readonly string[]} preferred what the browser asks for @returns {Language} */
export function chooseLanguage(stored, preferred) {
  if (stored === "en" || stored === "zh") return stored;
  const known = preferred.map((tag) => tag.toLowerCase().split("-")[0]).find((tag) => tag === "en" || tag === "zh");
  return known === "zh" ? "zh" : "en";
}

/** @returns {Language} */
export function storedLanguage() {
  return chooseLanguage(localStorage.getItem(STORED), navigator.languages);
}

/** @param {Language} language */
export function storeLanguage(language) {
  localStorage.setItem(STORED, language);
}

/** English nouns that follow a number (and a verb), and what they are after 1; as backend/oomwatch/catalogue.py. @type {Record<string, string>} */
const AFTER_ONE = {
  are: "is",
  ...Object.fromEntries(
    (
      "GPU acknowledgement alert attempt block card channel condition cycle host line log message minute mistake node " +
      "prompt rank request rule run sample second sequence silence step time token"
    )
      .split(" ")
      .map((noun) => [`${noun}s`, noun]),
  ),
  processes: "process",
  switches: "switch",
};
const COUNTED = new RegExp(`\\{(\\w+)\\}( [a-z]+)? (${Object.keys(AFTER_ONE).join("|")})\\b`, "g");

/** A sentence whose nouns agree with the numbers before them. @param {string} sentence @param {Params} params */
const agreed = (sentence, params) =>
  sentence.replace(COUNTED, (whole, name, between = "", noun) =>
    String(params[name]) === "1" ? `{${name}}${between} ${AFTER_ONE[noun]}` : whole,
  );

const THOUSANDS = /\B(?=(?:\d{3})+$)/g;

/**
 * Half a place is rounded up by the decimals that are seen, as Intl and the server do it: 0.35 is 0.4, though the computer's
 * number for it is a little less. @param {number} value 0 or above @param {number} places
 */
function rounded(value, places) {
  const moved = Number(`${value}e${places}`);
  return Number.isNaN(moved) ? value : Math.round(moved) / 10 ** places; // NaN: written with an exponent already
}

/**
 * Numbers with so many decimals, which English and Chinese write alike. Intl.NumberFormat would do as well, but to make the
 * first ones takes a browser some of the time until the first paint.
 */
export class Decimals {
  /** @param {number} places */
  constructor(places) {
    this.places = places;
  }

  /** @param {number} value "1,234.5" */
  format(value) {
    const [whole, rest] = rounded(Math.abs(value), this.places).toFixed(this.places).split(".");
    const sign = value < 0 || Object.is(value, -0) ? "-" : "";
    return `${sign}${whole.replace(THOUSANDS, ",")}${rest === undefined ? "" : `.${rest}`}`;
  }
}

/** The catalogue in one language: another one is another Words. */
export class Words {
  /** @type {Intl.NumberFormat | null} */
  #digits3 = null;

  /** @param {Catalogue} catalogue @param {Language} language */
  constructor(catalogue, language) {
    this.catalogue = catalogue;
    this.language = language;
    /** BCP 47 tag for Intl and the lang attribute. */
    this.locale = language === "zh" ? "zh-CN" : "en";
    this.decimal1 = new Decimals(1);
    this.integer = new Decimals(0);
  }

  /** Made when it is asked for: few numbers are written so. */
  get digits3() {
    this.#digits3 ??= new Intl.NumberFormat(this.locale, { maximumSignificantDigits: 3 });
    return this.#digits3;
  }

  /**
   * A sentence with its placeholders filled in. An unknown key gives the key itself, so that a mistake is seen.
   * @param {string} key @param {Params} [params] @returns {string}
   */
  t(key, params = {}) {
    const sentence = this.catalogue[key]?.[this.language] ?? this.catalogue[key]?.en ?? key;
    const fitting = this.language === "en" ? agreed(sentence, params) : sentence;
    return fitting.replace(/\{(\w+)\}/g, (whole, name) => {
      const value = params[name];
      if (value === undefined) return whole;
      return typeof value === "number" ? this.integer.format(value) : value;
    });
  }

  /**
   * A sentence that depends on a number: "KEY.one" or "KEY.other", with the number as {n}.
   * @param {string} key @param {number} n @param {Params} [params] @returns {string}
   */
  count(key, n, params = {}) {
    return this.t(`${key}.${n === 1 ? "one" : "other"}`, { n, ...params });
  }

  /**
   * The text of an alert or rule in this language, or in any language it has.
   * @param {Record<string, import("./wire.js").AlertText>} texts
   * @returns {import("./wire.js").AlertText}
   */
  pick(texts) {
    return texts[this.language] ?? texts.en ?? Object.values(texts)[0] ?? { summary: "", description: "", advice: [] };
  }

  /** A sentence that came in several languages. @param {Record<string, string>} texts @param {string} [otherwise] @returns {string} */
  said(texts, otherwise = "") {
    return texts[this.language] ?? texts.en ?? otherwise;
  }
}
