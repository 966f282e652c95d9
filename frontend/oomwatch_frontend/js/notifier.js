// Tells of new alerts by the browser's own notifications and by a sound, where the reader asked for it. However many tabs
// are open, each alert is told of once.

import { openGroups, titleOf } from "./groups.js";
import { levelOf } from "./judge.js";
import { iconUrl } from "./marks.js";
import { News, nameOf } from "./news.js";
import { link } from "./router.js";
import { claimFor } from "./told.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./i18n.js").Words} Words */
/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {"notify" | "sound"} Way */

const GATHER_MS = 500; // what fires together is one notification

export class Notifier {
  /** @param {Store} store @param {() => Words} words @param {import("./preferences.js").Preferences} preferences */
  constructor(store, words, preferences) {
    this.store = store;
    this.words = words;
    this.preferences = preferences;
    this.news = new News();
    /** @type {Map<string, Alert>} */
    this.gathered = new Map();
    // A page that was loaded anew may sound only once it was touched again.
    const touched = () => void (preferences.values.sound && audio === null && unlockSound());
    for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, touched);
    store.subscribe((topics) => (topics.has("alerts") ? this.#look() : undefined));
  }

  #look() {
    const fresh = this.news.of(this.store.alerts.values());
    if (fresh.length > 0 && this.gathered.size === 0) setTimeout(() => this.#tell(), GATHER_MS);
    for (const alert of fresh) this.gathered.set(alert.id, alert);
  }

  async #tell() {
    const alerts = [...this.gathered.values()];
    this.gathered.clear();
    const { notify, sound } = this.preferences.values;
    if (notify && mayNotify()) for (const group of openGroups(await mine("notify", alerts))) this.#show(group);
    if (sound && canSound()) play(openGroups(await mine("sound", alerts)).map(({ alerts: [worst] }) => levelOf(worst)));
  }

  /** @param {import("./groups.js").Group} group */
  #show(group) {
    const words = this.words();
    const [worst] = group.alerts;
    const level = levelOf(worst);
    const options = { body: titleOf(words, group), tag: group.key, icon: iconUrl(level), lang: words.locale };
    const shown = new Notification(`${words.t(`mark.${level}`)} · oomwatch`, options);
    shown.onclick = () => {
      focus();
      location.hash = link("alerts", [], { id: worst.id });
      shown.close();
    };
  }
}

/** Those that no other tab has told of in this way. @param {Way} way @param {Alert[]} alerts */
async function mine(way, alerts) {
  const names = await claimFor(way, alerts.map(nameOf));
  return alerts.filter((alert) => names.includes(nameOf(alert)));
}

/** Whether the browser shows notifications of pages at all: under https, or on this machine itself. */
export const knowsNotifications = () => "Notification" in globalThis && isSecureContext;

const mayNotify = () => knowsNotifications() && Notification.permission === "granted";

// ---------------------------------------------------------------- sound

/** @type {AudioContext | null} */
let audio = null;

/** Browsers let a page sound once it was clicked. To be called on a click. */
export async function unlockSound() {
  audio ??= new AudioContext();
  await audio.resume();
}

const canSound = () => audio?.state === "running";

const TONES_HZ = { ok: [], watch: [], warning: [587], critical: [784, 587, 784] };
const TONE_SECONDS = 0.18;

/** One tone for a warning, three for what is critical. @param {import("./judge.js").Level[]} levels the worst first */
export function play(levels) {
  if (audio === null || levels.length === 0) return;
  const from = audio.currentTime;
  TONES_HZ[levels[0]].forEach((pitch, index) => tone(/** @type {AudioContext} */ (audio), pitch, from + index * TONE_SECONDS * 1.3));
}

/** @param {AudioContext} context @param {number} pitch @param {number} at */
function tone(context, pitch, at) {
  const source = new OscillatorNode(context, { frequency: pitch });
  const loudness = new GainNode(context, { gain: 0 });
  loudness.gain.setTargetAtTime(0.2, at, 0.01);
  loudness.gain.setTargetAtTime(0, at + TONE_SECONDS, 0.03);
  source.connect(loudness).connect(context.destination);
  source.start(at);
  source.stop(at + TONE_SECONDS * 2);
}
