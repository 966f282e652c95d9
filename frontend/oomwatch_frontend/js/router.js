// The address after "#": #/gpu/NODE/GPU, #/run/NAME, #/alerts?state=open&node=NODE.

import { pushAddress } from "./scrolling.js";

/** @typedef {{ view: string, args: string[], query: Record<string, string> }} Route */

/** @param {string} hash @returns {Route} */
export function parseRoute(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map(unescapePart);
  return {
    view: parts[0] ?? "fleet",
    args: parts.slice(1),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

const OF_ONE_NODE = ["node", "gpu"];

/** The node of which an address shows all there is. @param {string} hash @returns {string | null} */
export function nodeOf(hash) {
  const { view, args } = parseRoute(hash);
  return OF_ONE_NODE.includes(view) ? (args[0] ?? null) : null;
}

/** @param {string} part */
function unescapePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a stray "%" in an address someone typed
  }
}

/**
 * Writes what a view shows into its address, so that a link shows others the same and "back" leads to what was shown before.
 * @param {Record<string, string>} changed of the query; "" takes something out
 */
export function noteInAddress(changed) {
  const { view, args, query } = parseRoute(location.hash);
  const address = link(view, args, { ...query, ...changed });
  if (address !== location.hash) pushAddress(address);
}

/**
 * @param {string} view @param {string[]} [args] @param {Record<string, string>} [query] empty values are left out
 * @returns {string} the hash of a route, with its "#"
 */
export function link(view, args = [], query = {}) {
  const path = [view, ...args].map(encodeURIComponent).join("/");
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `#/${path}${search === "" ? "" : `?${search}`}`;
}
