// Wires the page: the connection feeds the store, the store's changes reach the frame and the view on screen.

import { refreshAges } from "./ages.js";
import { Words, storeLanguage, storedLanguage } from "./i18n.js";
import { parseRoute } from "./router.js";
import { Shell } from "./shell.js";
import { LiveSocket } from "./socket.js";
import { Store } from "./store.js";
import { ThemeSwitch } from "./theme.js";
import { alertsView } from "./views/alerts.js";
import { channelsView } from "./views/channels.js";
import { fleetView } from "./views/fleet.js";
import { gpuView } from "./views/gpu.js";
import { nodeView } from "./views/node.js";
import { runView } from "./views/run.js";
import { runsView } from "./views/runs.js";
import { silencesView } from "./views/silences.js";

/** @typedef {import("./store.js").Topic} Topic */
/** @typedef {import("./router.js").Route} Route */
/** @typedef {{ store: Store, words: Words }} App what a view is given */
/** @typedef {{ update: (topics: Set<Topic>) => void, close: () => void }} View */
/** @typedef {(root: HTMLElement, app: App, route: Route) => View} MakeView */

/** @type {Record<string, MakeView>} */
const VIEWS = {
  fleet: fleetView,
  gpu: gpuView,
  node: nodeView,
  runs: runsView,
  run: runView,
  alerts: alertsView,
  silences: silencesView,
  channels: channelsView,
};

const store = new Store();
const theme = new ThemeSwitch();
const address = new URL("ws/live", document.baseURI);
address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
const socket = new LiveSocket(address.href, {
  opened: () => store.connectionOpened(),
  frame: (text) => store.receive(text),
  lost: (retryAtMs) => store.connectionLost(retryAtMs),
});
socket.connect();

/** @type {import("./i18n.js").Catalogue} */
const catalogue = await (await fetch("static/catalogue.json")).json();
let words = new Words(catalogue, storedLanguage());
const root = /** @type {HTMLElement} */ (document.getElementById("view"));
const shell = new Shell({
  theme,
  retry: () => socket.connect(),
  language: (language) => {
    storeLanguage(language);
    words = new Words(catalogue, language);
    showView();
  },
});

/** @type {View | null} */
let view = null;

/** Builds the view of the address anew: on another address, language or theme. */
function showView() {
  view?.close();
  root.replaceChildren();
  const route = parseRoute(location.hash);
  shell.draw(store, words, route, theme.theme);
  view = (VIEWS[route.view] ?? fleetView)(root, { store, words }, route);
  refreshAges(document, words, store.now());
}

/** @type {Set<Topic>} */
let waiting = new Set();

/** Everything that changed since the last frame, drawn once. A hidden tab gets no frames, and draws nothing. */
function drawChanges() {
  const topics = waiting;
  waiting = new Set();
  shell.draw(store, words, parseRoute(location.hash), theme.theme);
  view?.update(topics);
  refreshAges(document, words, store.now());
}

store.subscribe((topics) => {
  if (waiting.size === 0) requestAnimationFrame(drawChanges);
  for (const topic of topics) waiting.add(topic);
  if (document.hidden) shell.drawTab(store, words); // the tab's title and icon are what a hidden page still says
});

const QUIET_SECONDS = 30; // live nodes tick every second: this silence is a connection that died unnoticed

setInterval(() => {
  const live = [...store.nodes.values()].some((node) => node.info.state === "live");
  if (store.connection.phase === "live" && live && store.now() - (store.newestAt ?? 0) > QUIET_SECONDS) {
    store.connectionLost(Date.now());
    socket.connect();
  }
  store.passTime();
}, 1000);

addEventListener("hashchange", () => {
  showView();
  scrollTo(0, 0);
});
// What was just unfolded is drawn only now, and its ages are blank until they are told.
document.addEventListener("toggle", () => requestAnimationFrame(() => refreshAges(document, words, store.now())), true);
addEventListener("online", () => socket.connect());
theme.addEventListener("change", showView);
showView();
