// What ticks leave out (processes, probes, engines) of the one node that a view shows: asked for while it is shown.

import { readNode } from "./wire.js";

const ASK_MS = 5000;

/**
 * Keeps a node of the store current in full. A try that fails is left at that: the connection's own state says why.
 * @param {import("./store.js").Store} store @param {string} name @returns {() => void} stop
 */
export function watchNode(store, name) {
  const abort = new AbortController();
  const ask = async () => {
    if (document.hidden || store.connection.phase !== "live") return;
    try {
      const response = await fetch(`api/v1/nodes/${encodeURIComponent(name)}`, { signal: abort.signal });
      if (response.ok) store.putDetail(readNode(await response.json()));
    } catch {
      // the next one is due in seconds
    }
  };
  const timer = setInterval(ask, ASK_MS);
  const leave = store.subscribe((topics) => {
    if (topics.has("connection") && store.nodes.get(name)?.isDetailed === false) void ask(); // it was made for another view
  });
  void ask();
  return () => {
    leave();
    clearInterval(timer);
    abort.abort();
  };
}
