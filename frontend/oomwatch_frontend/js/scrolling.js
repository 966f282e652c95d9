// Where each page of the browser's history was scrolled to: "back" shows what one came from, at the place one left it.
// The browser's own way comes too early, for a view is built anew and has no height yet.

/** @typedef {{ entry: string }} Entry of the history */

const STORED = "oomwatch.places"; // for when the page is read anew
const KEPT = 50;

/** How far down each entry was, as it was left. @type {Map<string, number>} */
const places = new Map();
let made = 0;
let current = "";

/** @returns {Entry} one that is yet to be */
function newEntry() {
  made += 1;
  return { entry: `${performance.timeOrigin} ${made}` };
}

/** The entry that the browser shows; one that a link has just made gets a name. @returns {Entry} */
function entryNow() {
  const { state } = history;
  if (typeof state?.entry === "string") return state;
  const entry = newEntry();
  history.replaceState(entry, "");
  return entry;
}

/** Another address, which shows the same view: an entry of its own. @param {string} address */
export function pushAddress(address) {
  places.set(current, scrollY);
  const entry = newEntry();
  current = entry.entry;
  history.pushState(entry, "", address);
}

export class Scrolling {
  /** @param {HTMLElement} view whose height is the page's */
  constructor(view) {
    history.scrollRestoration = "manual";
    for (const [entry, y] of JSON.parse(sessionStorage.getItem(STORED) ?? "[]")) places.set(entry, y);
    current = entryNow().entry;
    /** @type {number | null} how far down is still to be reached */
    this.wanted = places.get(current) || null;
    this.grown = new ResizeObserver(() => this.#scroll());
    this.grown.observe(view);
    for (const hand of ["wheel", "touchstart", "pointerdown", "keydown"])
      addEventListener(hand, () => this.#reached(), { capture: true, passive: true });
    addEventListener("pagehide", () => this.#keep());
  }

  /** The address has changed, and what it shows is not built yet. */
  left() {
    places.set(current, scrollY);
  }

  /** It is built. What it shows may still grow, until a person scrolls. */
  arrived() {
    current = entryNow().entry;
    this.wanted = places.get(current) ?? 0;
    this.#scroll();
  }

  #keep() {
    this.left();
    sessionStorage.setItem(STORED, JSON.stringify([...places].slice(-KEPT)));
  }

  #scroll() {
    const { wanted } = this;
    if (wanted === null) return;
    scrollTo(0, wanted);
    if (Math.abs(scrollY - wanted) < 1) this.#reached();
  }

  #reached() {
    this.wanted = null;
  }
}
