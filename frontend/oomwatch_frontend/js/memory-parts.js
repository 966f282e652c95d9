// Where the memory of a GPU is: told by torch's allocator, by processes, and an honest rest that nobody tells. Pure.

import { heldAt } from "./history.js";
import { NAMES } from "./process-kinds.js";

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

/** @typedef {"engine" | "training" | "others"} Kind */

/** Whose each process is, by pid. @param {GpuProcess[]} processes @param {TorchSample[]} probes @returns {Map<number, Kind>} */
function kindsOf(processes, probes) {
  const run = processes.find((one) => one.run !== null)?.run ?? null;
  const engines = new Set(probes.filter(isEngine).map((one) => one.pid));
  return new Map(processes.map((one) => [one.pid, engines.has(one.pid) ? "engine" : kindOf(one, run)]));
}

/** @param {{ role: string | null }} one */
const isEngine = ({ role }) => role === "rollout";

/** @param {GpuProcess} process @param {string | null} ofGpu the run on this GPU @returns {Kind} */
function kindOf({ name, run, role }, ofGpu) {
  if (run !== null && ofGpu !== null && run !== ofGpu) return "others";
  if (role === "rollout" || NAMES.engine.test(name ?? "")) return "engine";
  const trains = NAMES.worker.test(name ?? "") || NAMES.driver.test(name ?? "");
  return run !== null || role !== null || trains ? "training" : "others";
}

/** @param {GpuProcess[]} processes @param {TorchSample[]} probes @returns {Record<PartName, number>} */
function claimsOfProcesses(processes, probes) {
  const claims = { allocated: 0, unused: 0, context: 0, training: 0, engine: 0, others: 0, rest: 0 };
  const held = new Map(processes.map((one) => [one.pid, one.used_bytes]));
  const kinds = kindsOf(processes, probes);
  const trainers = probes.filter((probe) => !isEngine(probe));
  for (const probe of trainers) {
    const most = held.get(probe.pid) ?? Infinity;
    const reserved = Math.min(most, probe.reserved_bytes ?? 0);
    const allocated = Math.min(reserved, probe.allocated_bytes ?? reserved);
    claims.allocated += allocated;
    claims.unused += reserved - allocated;
    if (most !== Infinity) claims.context += most - reserved;
  }
  const probed = new Set(trainers.map((one) => one.pid));
  for (const { pid, used_bytes: bytes } of processes)
    if (!probed.has(pid)) claims[kinds.get(pid) ?? "others"] += bytes ?? 0;
  // An engine with the probe whose process is not listed: what its allocator says.
  for (const probe of probes) if (isEngine(probe) && !held.has(probe.pid)) claims.engine += probe.reserved_bytes ?? 0;
  return claims;
}

/**
 * @typedef {object} Held sums over the processes of a kind, bytes; null where that is not known. As store/beside.py has it.
 * @property {number | null} trainer
 * @property {number | null} probed of those that train, the ones with a probe
 * @property {number | null} engine
 * @property {number | null} other
 */

/** Whose memory it is at one moment. @param {GpuProcess[] | null} processes @param {TorchSample[]} probes @returns {Held} */
export function heldNow(processes, probes) {
  if (processes === null) return { trainer: null, probed: null, engine: null, other: null };
  const kinds = kindsOf(processes, probes);
  const probed = new Set(probes.filter((one) => !isEngine(one)).map((one) => one.pid));
  const all = (/** @type {Kind} */ kind) => processes.filter(({ pid }) => kinds.get(pid) === kind);
  const trainers = all("training");
  return {
    trainer: sumOf(trainers),
    probed: sumOf(trainers.filter(({ pid }) => probed.has(pid))),
    engine: sumOf(all("engine")),
    other: sumOf(all("others")),
  };
}

/** 0 of no process; null where none of them tells its size. @param {GpuProcess[]} processes */
function sumOf(processes) {
  const known = processes.flatMap((one) => one.used_bytes ?? []);
  return known.length === 0 && processes.length > 0 ? null : known.reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * @typedef {object} Told what the history tells of a GPU beside what is in use
 * @property {Series} reserved torch, of all processes
 * @property {Series} allocated
 * @property {Series} engineReserved of these, the engines'
 * @property {Series} engineAllocated
 * @property {Series} trainer whose memory it is, at each list of processes
 * @property {Series} probed
 * @property {Series} engine
 * @property {Series} other
 */

/** @typedef {(number | null)[]} Column */
/** @typedef {{ name: PartName, low: Column, high: Column }} Layer its edges over time, bytes; null where it is not known */

/**
 * The same over time: what was told of each moment stands upon one another, and the rest is what nobody told. What
 * is not known is left out, and never 0.
 * @param {Series} used @param {Told} told @param {number} probeSeconds how long torch's word holds @param {number} listSeconds how long that of a list of processes
 * @returns {Layer[]} from the bottom up, those that are not empty, with a value for each point of `used`
 */
export function stackOver(used, told, probeSeconds, listSeconds) {
  const torch = (/** @type {Series} */ series) => heldAt(series, used.at, probeSeconds);
  const listed = (/** @type {Series} */ series) => heldAt(series, used.at, listSeconds);
  const columns = {
    reserved: torch(told.reserved),
    allocated: torch(told.allocated),
    engineReserved: torch(told.engineReserved),
    engineAllocated: torch(told.engineAllocated),
    trainer: listed(told.trainer),
    probed: listed(told.probed),
    engine: listed(told.engine),
    other: listed(told.other),
  };
  const names = /** @type {PartName[]} */ (Object.keys(PARTS));
  const layers = names.map((name) => ({ name, low: /** @type {Column} */ ([]), high: /** @type {Column} */ ([]) }));
  used.mean.forEach((whole, index) => {
    const claims = whole === null ? null : claimsAt(columns, index);
    let top = 0;
    for (const { name, low, high } of layers) {
      const bytes = whole === null ? null : name === "rest" ? whole - top : (claims?.[name] ?? null);
      low.push(bytes === null ? null : top);
      if (bytes !== null) top = Math.min(whole ?? 0, top + bytes);
      high.push(bytes === null ? null : top);
    }
  });
  const full = layers.filter(({ low, high }) => high.some((edge, index) => edge !== null && edge > (low[index] ?? 0)));
  return full.every(({ name }) => name === "rest") ? [] : full;
}

/**
 * @param {Record<keyof Told, Column>} columns @param {number} index
 * @returns {Partial<Record<PartName, number | null>>}
 */
function claimsAt(columns, index) {
  const at = (/** @type {keyof Told} */ name) => columns[name][index];
  const reserved = lessOf(at("reserved"), at("engineReserved"));
  const allocated = lessOf(at("allocated"), at("engineAllocated"));
  const [trainer, probed] = [at("trainer"), at("probed")];
  // Without torch's word, what a process with a probe holds is training like any other's.
  const beside = reserved === null ? trainer : lessOf(trainer, probed);
  return {
    allocated: reserved === null || allocated === null ? null : Math.min(reserved, allocated),
    unused: lessOf(reserved, allocated === null ? null : Math.min(reserved ?? 0, allocated)),
    context: reserved === null ? null : lessOf(probed, reserved),
    training: beside,
    engine: at("engine"),
    others: at("other"),
  };
}

/** One without the other, where that is known. @param {number | null} whole @param {number | null} part */
const lessOf = (whole, part) => (whole === null ? null : Math.max(0, whole - (part ?? 0)));
