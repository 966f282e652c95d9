// What the largest processes in a host's memory hold, by their kind. Pure.

import { kindOfName } from "./process-kinds.js";

/** @typedef {import("./wire.js").HostProcess} HostProcess */
/** @typedef {import("./process-kinds.js").NamedKind | "other"} HostKind */

/** How the line of each is drawn. @type {Record<HostKind, { colour: string, dash: "solid" | "dash" | "dot" }>} */
export const HOST_KINDS = {
  worker: { colour: "part-torch", dash: "solid" },
  engine: { colour: "part-engine", dash: "dash" },
  driver: { colour: "accent", dash: "solid" },
  object_store: { colour: "part-context", dash: "dot" },
  other: { colour: "part-others", dash: "dash" },
};

/** @param {HostProcess[]} processes @returns {Record<HostKind, number>} bytes */
export function heldByKind(processes) {
  const held = { worker: 0, engine: 0, driver: 0, object_store: 0, other: 0 };
  for (const { name, rss_bytes: bytes } of processes) held[kindOfName(name)] += bytes;
  return held;
}
