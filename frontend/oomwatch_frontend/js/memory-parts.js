// Where the memory of a GPU is: told by torch's allocator, by processes, and an honest rest that nobody tells. Pure.

import { heldAt } from "./history.js";

/** @typedef {import("./wire.js").GpuProcess} GpuProcess */
/** @typedef {import("./wire.js").TorchSample} TorchSample */
/** @typedef {import("./history.js").Series} Series */
/** @typedef {"allocated" | "unused" | "context" | "training" | "engine" | "others" | "rest"} PartName */

/**
 * How each part is drawn, from the bottom up. The colour alone tells none apart: each has a pattern too.
 * @type {Record<PartName, { colour: string, pattern: string }>}
 */
export const PARTS = {
  allocated: { colour: "part-torch", pattern: "" },
  unused: { colour: "part-torch", pattern: "/" },
  context: { colour: "part-context", pattern: "." },
  training: { colour: "part-torch", pattern: "-" },
  engine: { colour: "part-engine", pattern: "\\" },
  others: { colour: "part-others", pattern: "x" },
  rest: { colour: "part-rest", pattern: "+" },
};

/**
 * @typedef {object} Parts
 * @property {number} whole bytes: the device's own figure, or what the processes held if that was more
 * @property {boolean} earlier the processes held more than the device does now: they were read before it
 * @property {{ name: PartName, bytes: number }[]} parts those that are not empty; together they are the whole
 */

/**
 * Splits what a device holds. torch's figure is believed up to what its process holds: the pool of a sleeping engine
 * stays counted by torch though its pages are gone.
 * @param {number} usedBytes of the device @param {GpuProcess[] | null} processes null: not read
 * @param {TorchSample[]} probes on this GPU @returns {Parts}
 */
export function partsNow(usedBytes, processes, probes) {
  const listed = processes ?? [];
  const told = listed.reduce((sum, one) => sum + (one.used_bytes ?? 0), 0);
  const whole = Math.max(usedBytes, told);
  const claims = claimsOfProcesses(listed, probes);
  let left = whole;
  /** @type {Parts["parts"]} */
  const parts = [];
  for (const name of /** @type {PartName[]} */ (Object.keys(PARTS))) {
    const bytes = name === "rest" ? left : Math.min(left, claims[name]);
    left -= bytes;
    if (bytes > 0) parts.push({ name, bytes });
  }
  return { whole, earlier: told > usedBytes, parts };
}

/** @param {GpuProcess[]} processes @param {TorchSample[]} probes @returns {Record<PartName, number>} */
function claimsOfProcesses(processes, probes) {
  const claims = { allocated: 0, unused: 0, context: 0, training: 0, engine: 0, others: 0, rest: 0 };
  const held = new Map(processes.map((one) => [one.pid, one.used_bytes]));
  const engines = new Set([...processes, ...probes].filter((one) => one.role === "rollout").map((one) => one.pid));
  const trainers = probes.filter((probe) => !engines.has(probe.pid));
  for (const probe of trainers) {
    const most = held.get(probe.pid) ?? Infinity;
    const reserved = Math.min(most, probe.reserved_bytes ?? 0);
    const allocated = Math.min(reserved, probe.allocated_bytes ?? reserved);
    claims.allocated += allocated;
    claims.unused += reserved - allocated;
    if (most !== Infinity) claims.context += most - reserved;
  }
  const probed = new Set(trainers.map((one) => one.pid));
  for (const one of processes.filter(({ pid }) => !probed.has(pid))) {
    const name = engines.has(one.pid) ? "engine" : one.run === null && one.role === null ? "others" : "training";
    claims[name] += one.used_bytes ?? 0;
  }
  // An engine with the probe whose process is not listed: what its allocator says.
  for (const probe of probes.filter(({ pid }) => engines.has(pid) && !held.has(pid))) claims.engine += probe.reserved_bytes ?? 0;
  return claims;
}

/**
 * @typedef {object} Stack the upper edges of the layers over time, bytes; null where that is not known
 * @property {(number | null)[]} allocated
 * @property {(number | null)[]} reserved
 * @property {(number | null)[]} used
 * @property {(number | null)[]} rest where the rest begins: on top of torch, or at 0 where torch told nothing
 */

/**
 * The same over time, as far as the history tells it: torch's two figures of all processes, and the rest.
 * @param {Series} used @param {Series} reserved @param {Series} allocated @param {number} seconds how long torch's word holds
 * @returns {Stack} a value for each point of `used`
 */
export function stackOver(used, reserved, allocated, seconds) {
  const held = heldAt(reserved, used.at, seconds);
  const live = heldAt(allocated, used.at, seconds);
  /** @type {Stack} */
  const stack = { allocated: [], reserved: [], used: used.mean, rest: [] };
  used.mean.forEach((whole, index) => {
    const top = whole === null || held[index] === null ? null : Math.min(whole, held[index]);
    const told = live[index];
    stack.reserved.push(top);
    stack.allocated.push(top === null || told === null ? null : Math.min(top, told));
    stack.rest.push(whole === null ? null : (top ?? 0));
  });
  return stack;
}
