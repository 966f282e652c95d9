// Wires the page: the connection feeds the store, the store's changes reach the frame and the view on screen.

import { refreshAges } from "./ages.js";
import { h } from "./dom.js";
import { Problem } from "./elements/problem.js";
import { SearchBox } from "./elements/search-box.js";
import { Words, storeLanguage, storedLanguage } from "./i18n.js";
import { listenForKeys } from "./keyboard.js";
import { openKeyHelp } from "./elements/key-help.js";
import { openSettings } from "./elements/settings-dialog.js";
import { toast } from "./elements/toast.js";
import { Kiosk } from "./kiosk.js";
import { catalogue as asked, listen, socket } from "./live.js";
import { Notifier } from "./notifier.js";
import { Preferences } from "./preferences.js";
import { parseRoute } from "./router.js";
import { Scrolling } from "./scrolling.js";
import { Shell } from "./shell.js";
import { Store } from "./store.js";
import { ThemeSwitch } from "./theme.js";
import { fetchView, fetchViews, viewHere } from "./views.js";
import { isUtc, setZone } from "./zone.js";

/** @typedef {import("./store.js").Topic} Topic */
/** @typedef {import("./router.js").Route} Route */
/** @typedef {{ store: Store, words: Words }} App what a view is given */
/** @typedef {{ update: (topics: Set<Topic>) => void, close: () => void }} View */
/** @typedef {(root: HTMLElement, app: App, route: Route) => View} MakeView */

const store = new Store();
const theme = new ThemeSwitch();
const preferences = new Preferences();
setZone(preferences.values.zone);

const catalogue = await asked;
let words = new Words(catalogue, storedLanguage());
const root = /** @type {HTMLElement} */ (document.getElementById("view"));
const shell = new Shell({
  theme,
  retry: () => socket.connect(),
  settings: () => openSettings(words, preferences),
  help,
  language: speak,
});

/** @param {import("./i18n.js").Language} language */
function speak(language) {
  storeLanguage(language);
  words = new Words(catalogue, language);
  searchBox.speak();
  showView();
}

function help() {
  openKeyHelp(words, preferences.values.keys);
}

const searchBox = new SearchBox(store, () => words, () => preferences.values.keys);
document.getElementById("search")?.append(searchBox.element);
const kiosk = new Kiosk(store);

const scrolling = new Scrolling(root);

/** @type {View | null} */
let view = null;
/** @type {Set<Topic>} */
let waiting = new Set();

/** Builds the view of the address anew: on another address, language or theme. */
function showView() {
  view?.close();
  view = null;
  waiting = new Set(); // it is drawn with all that is known
  root.replaceChildren();
  const route = parseRoute(location.hash);
  kiosk.follow(route);
  shell.draw(store, words, route, theme.theme);
  const make = viewHere(route.view);
  if (make === null) return void fetchView(route.view).then(showFetched, showUnfetched);
  view = make(root, { store, words }, route);
  refreshAges(document, words, store.now());
}

/** Unless somebody has gone on to another one. */
function showFetched() {
  if (view === null) showView();
}

function showUnfetched() {
  if (view !== null) return;
  const problem = new Problem();
  problem.say(words.t("page.unfetched"));
  root.replaceChildren(problem.element, h("button", { type: "button", click: showView }, words.t("page.again")));
}

/** Everything that changed since the last frame, drawn once. A hidden tab gets no frames, and draws nothing. */
function drawChanges() {
  const topics = waiting;
  if (topics.size === 0) return;
  waiting = new Set();
  shell.draw(store, words, parseRoute(location.hash), theme.theme);
  view?.update(topics);
  refreshAges(document, words, store.now());
}

store.subscribe((topics) => {
  if (waiting.size === 0) requestAnimationFrame(drawChanges);
  for (const topic of topics) waiting.add(topic);
  // The tab's title and icon are what a hidden page still says; readings alone change neither at once.
  if (document.hidden && [...topics].some((topic) => topic !== "tick" && topic !== "torch")) shell.drawTab(store, words);
});

const FETCH_MS = 500; // after the first data: the first paint is over
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
  scrolling.left();
  showView();
  scrolling.arrived();
});
// What was just unfolded is drawn only now, and its ages are blank until they are told.
document.addEventListener("toggle", () => requestAnimationFrame(() => refreshAges(document, words, store.now())), true);
/** Where there is no connection, now is a good time to try. */
function tryNow() {
  if (store.connection.phase !== "live" && !document.hidden) socket.connect();
}
addEventListener("online", tryNow);
document.addEventListener("visibilitychange", tryNow);
theme.addEventListener("change", showView);

preferences.addEventListener("change", () => {
  if (isUtc() === (preferences.values.zone === "utc")) return;
  setZone(preferences.values.zone);
  showView();
});
new Notifier(store, () => words, preferences);
listenForKeys(
  {
    theme: () => theme.next(),
    language: () => speak(words.language === "en" ? "zh" : "en"),
    zone: () => preferences.choose({ zone: isUtc() ? "local" : "utc" }),
    help,
  },
  () => preferences.values.keys,
);

// The first agent of all has arrived: said once, for the guide that asked for it is gone.
let none = false;
store.subscribe((topics) => {
  if (!topics.has("nodes")) return;
  const [first] = store.nodes.values();
  if (none && first !== undefined)
    toast(words, words.count("start.arrived", first.gpus.length, { node: first.info.node }));
  none = first === undefined;
});
// What else there is to see is fetched once the first of it is seen.
const stopWaiting = store.subscribe((topics) => {
  if (!topics.has("nodes")) return;
  stopWaiting();
  setTimeout(fetchViews, FETCH_MS);
});

// Last, for what was said meanwhile is told at once.
listen({
  opened: () => store.connectionOpened(),
  frame: (text) => store.receive(text),
  lost: (retryAtMs) => store.connectionLost(retryAtMs),
  ended: () => store.connectionEnded(),
});
showView();
