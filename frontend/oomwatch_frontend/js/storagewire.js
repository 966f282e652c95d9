// What the server says of its database and of itself, checked (docs/reference/api.md; the types are in
// backend/oomwatch/web/storagewatch.py and health.py).

import { flag, list, maybe, number, struct, text } from "./wire.js";

const history = struct({ kept: text, chunks: number, bytes: number, oldest_at: maybe(number), newest_at: maybe(number) });
/** @typedef {ReturnType<typeof history>} HistorySize readings of one fineness */

/** An answer of /api/v1/storage; before the first measurement all is null. @throws {import("./wire.js").WireError} */
export const readStorage = struct({
  measured_at: maybe(number),
  database_bytes: maybe(number),
  used_bytes: maybe(number),
  growth_bytes_per_day: maybe(number),
  growth_since_at: maybe(number),
  history: list(history),
});
/** @typedef {ReturnType<typeof readStorage>} Storage */

/** An answer of /readyz. @throws {import("./wire.js").WireError} */
export const readReady = struct({ ready: flag, problems: list(text) });
/** @typedef {ReturnType<typeof readReady>} Ready */
