// The wall screen: no controls, and fleet, worst run and alerts in turn, until somebody presses a key or touches it.
// It is a part of the address, so a screen can be started with it: #/fleet?kiosk=1&every=20

import { indexForecasts } from "./foreseen.js";
import { LEVELS, fullest, runLevels } from "./judge.js";
import { link, parseRoute } from "./router.js";
import { forgetStyle } from "./theme.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./router.js").Route} Route */

const EVERY_SECONDS = 20;
const LEAST_SECONDS = 3;

/** @param {Route} route */
export const isKiosk = (route) => route.query.kiosk === "1";

/** How long each view stays, seconds. @param {Route} route */
export function intervalOf(route) {
  const asked = Number(route.query.every);
  return Number.isFinite(asked) && asked > 0 ? Math.max(LEAST_SECONDS, asked) : EVERY_SECONDS;
}

/** The run that needs somebody first: the worst alert, then the soonest end, then the fullest card; null: there is none. @param {Store} store @returns {string | null} */
export function worstRun(store) {
  const worst = [...runLevels(store)].sort(([, a], [, b]) => LEVELS.indexOf(b) - LEVELS.indexOf(a));
  const level = worst[0]?.[1];
  const gravest = new Set(worst.filter(([, other]) => other === level).map(([run]) => run));
  const { soonest } = indexForecasts(store.alerts.values(), store.runs);
  const next = soonest.find(({ alert }) => gravest.has(alert.labels.run))?.alert.labels.run;
  const fullestRun = fullest(store, 10).find(({ gpu }) => gpu !== null && gpu.run !== null)?.gpu?.run;
  return [next, worst[0]?.[0], fullestRun].find((run) => run !== undefined && run !== null && store.runs.has(run)) ?? null;
}

/** The address of the view that follows. @param {Route} route @param {Store} store */
export function following(route, store) {
  const query = { kiosk: "1", every: route.query.every ?? "" };
  const run = worstRun(store);
  if (route.view === "fleet" && run !== null) return link("run", [run], query);
  const isCalm = [...store.alerts.values()].every(({ state }) => state === "resolved");
  if (route.view !== "alerts" && !isCalm) return link("alerts", [], query);
  return link("fleet", [], query);
}

/** The same view with its controls. @param {Route} route */
export function withControls({ view, args, query }) {
  const { kiosk, every, ...rest } = query;
  return link(view, args, rest);
}

export function startKiosk() {
  void document.documentElement.requestFullscreen?.().catch(() => {}); // not allowed everywhere, and not needed
  location.hash = link("fleet", [], { kiosk: "1" });
}

export class Kiosk {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.timer = null;
    addEventListener("keydown", (event) => this.#leave(event), { capture: true });
    addEventListener("pointerdown", (event) => this.#leave(event), { capture: true });
  }

  /** The address changed. @param {Route} route */
  follow(route) {
    const on = isKiosk(route);
    document.body.classList.toggle("kiosk", on);
    forgetStyle();
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = on ? setTimeout(() => this.#next(), intervalOf(route) * 1000) : null;
  }

  /** What it shows next takes its place: a day of it is no history to go back through. */
  #next() {
    const route = parseRoute(location.hash);
    const next = following(route, this.store);
    if (next === location.hash) this.follow(route); // no change of the address starts the clock again
    else location.replace(next);
  }

  /** @param {Event} event */
  #leave(event) {
    const route = parseRoute(location.hash);
    if (!isKiosk(route)) return;
    event.preventDefault();
    event.stopPropagation();
    void document.exitFullscreen?.().catch(() => {});
    location.replace(withControls(route));
  }
}
