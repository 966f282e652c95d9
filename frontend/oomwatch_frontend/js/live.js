// What takes long begins before the rest of the page is here: the connection, whose messages are kept, the words, plotly.

import { loadWhereCharted } from "./plotly.js";
import { LiveSocket } from "./socket.js";

/** @typedef {import("./socket.js").Handlers} Handlers */

/** @type {Promise<import("./i18n.js").Catalogue>} */
export const catalogue = fetch(new URL("../catalogue.json", import.meta.url)).then((answer) => answer.json());

const address = new URL("ws/live", document.baseURI);
address.protocol = address.protocol === "https:" ? "wss:" : "ws:";

/** @type {((handlers: Handlers) => void)[]} */
let kept = [];

export const socket = new LiveSocket(address.href, {
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
