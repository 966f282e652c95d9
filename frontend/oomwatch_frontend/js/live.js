// What takes long begins before the rest of the page is here: the connection, whose messages are kept, the words, plotly.

import { loadWhereCharted } from "./plotly.js";
import { nodeOf } from "./router.js";
import { LiveSocket } from "./socket.js";

/** @typedef {import("./socket.js").Handlers} Handlers */

/** @type {Promise<import("./i18n.js").Catalogue>} */
export const catalogue = fetch(new URL("../catalogue.json", import.meta.url)).then((answer) => answer.json());

/** Of the node that is shown, the snapshot holds all there is. */
function address() {
  const url = new URL("ws/live", document.baseURI);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const node = nodeOf(location.hash);
  if (node !== null) url.searchParams.set("node", node);
  return url.href;
}

/** @type {((handlers: Handlers) => void)[]} */
let kept = [];

export const socket = new LiveSocket(address, {
  opened: () => kept.push((handlers) => handlers.opened()),
  frame: (text) => kept.push((handlers) => handlers.frame(text)),
  lost: (retryAtMs) => kept.push((handlers) => handlers.lost(retryAtMs)),
  ended: () => kept.push((handlers) => handlers.ended()),
});
socket.connect();
loadWhereCharted();

/** Tells these handlers all that was said, and from now on whatever is. @param {Handlers} handlers */
export function listen(handlers) {
  socket.handlers = handlers;
  for (const tell of kept) tell(handlers);
  kept = [];
}
