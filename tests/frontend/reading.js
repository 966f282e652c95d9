// What the page's tests share: the real catalogue, the golden messages, and a store whose clock they set.

import { readFileSync, readdirSync } from "node:fs";

import { Words } from "../../frontend/oomwatch_frontend/js/i18n.js";
import { Store } from "../../frontend/oomwatch_frontend/js/store.js";
import { decode } from "../../frontend/oomwatch_frontend/js/wire.js";

const GOLDEN = new URL("../wire/v1/", import.meta.url);
const FRONTEND = new URL("../../frontend/oomwatch_frontend/", import.meta.url);

/** @param {string} path in the page's folder */
export const pageFile = (path) => readFileSync(new URL(path, FRONTEND), "utf8");

/** Every script of the page, by its path in the page's folder. @returns {Map<string, string>} */
export function scripts() {
  const folders = ["js/", "js/elements/", "js/views/"];
  const paths = folders.flatMap((folder) =>
    readdirSync(new URL(folder, FRONTEND))
      .filter((name) => name.endsWith(".js"))
      .map((name) => folder + name),
  );
  return new Map(paths.map((path) => [path, pageFile(path)]));
}

/** @type {import("../../frontend/oomwatch_frontend/js/i18n.js").Catalogue} */
export const catalogue = JSON.parse(pageFile("catalogue.json"));
export const english = new Words(catalogue, "en");
export const chinese = new Words(catalogue, "zh");

/** @param {string} name without "live-" and ".json" */
export const goldenText = (name) => readFileSync(new URL(`live-${name}.json`, GOLDEN), "utf8");

/** Names of all golden live messages. */
export const goldenNames = readdirSync(GOLDEN)
  .filter((file) => file.startsWith("live-"))
  .map((file) => file.slice("live-".length, -".json".length));

/** A golden message as the page reads it. @param {string} name @returns {any} */
export const golden = (name) => decode(goldenText(name));

export const AT = 1764430000; // the moment of the golden snapshot

/** A store that has read the golden snapshot at its own moment; `clock.now` is the local clock. */
export function goldenStore() {
  const clock = { now: AT };
  const store = new Store(() => clock.now);
  store.receive(goldenText("snapshot"));
  return { store, clock };
}
