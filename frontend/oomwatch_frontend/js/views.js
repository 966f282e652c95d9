// The views. That of the fleet comes with the page; each other one is fetched when it is first wanted, or when there is time.

import { prefetchPlotly } from "./plotly.js";
import { fleetView } from "./views/fleet.js";

/** @typedef {import("./main.js").MakeView} MakeView */

/** @type {Record<string, () => Promise<MakeView>>} */
const OTHERS = {
  gpu: async () => (await import("./views/gpu.js")).gpuView,
  node: async () => (await import("./views/node.js")).nodeView,
  runs: async () => (await import("./views/runs.js")).runsView,
  run: async () => (await import("./views/run.js")).runView,
  alerts: async () => (await import("./views/alerts.js")).alertsView,
  silences: async () => (await import("./views/silences.js")).silencesView,
  channels: async () => (await import("./views/channels.js")).channelsView,
  incidents: async () => (await import("./views/incidents.js")).incidentsView,
  rules: async () => (await import("./views/rules.js")).rulesView,
  server: async () => (await import("./views/server.js")).serverView,
  doctor: async () => (await import("./views/doctor.js")).doctorView,
  "": async () => (await import("./views/nowhere.js")).nowhereView,
};

/** @type {Map<string, MakeView>} */
const here = new Map([["fleet", fleetView]]);

/** The name under which a view is kept: of an address that names none, that of the one which says so. @param {string} name */
const known = (name) => (here.has(name) || Object.hasOwn(OTHERS, name) ? name : "");

/** What an address names, where it is here already. @param {string} name @returns {MakeView | null} */
export const viewHere = (name) => here.get(known(name)) ?? null;

/** @param {string} name of a view that is not here yet @throws {TypeError} it cannot be fetched */
export async function fetchView(name) {
  here.set(known(name), await OTHERS[known(name)]());
}

/** All that is not here yet, one after the other, so that to open one costs no wait. What fails is fetched when it is wanted. */
export async function fetchViews() {
  for (const name of Object.keys(OTHERS)) if (!here.has(name)) await fetchView(name).catch(() => undefined);
  prefetchPlotly();
}
