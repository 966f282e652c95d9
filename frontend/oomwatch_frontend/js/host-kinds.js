// What the largest processes in a host's memory hold, by their kind. Pure.

/** @typedef {import("./wire.js").HostProcess} HostProcess */
/** @typedef {"worker" | "engine" | "driver" | "object_store" | "other"} HostKind */

/** What processes call themselves, in the order in which it is asked, as core/parts.py has it. @type {[HostKind, RegExp][]} */
const NAMES = [
  ["driver", /TaskRunner|main_task|main_ppo/],
  ["engine", /vllm|EngineCore|sglang|AsyncLLM/i],
  ["worker", /WorkerDict|ActorRollout|CriticWorker|RewardModelWorker|TrainingWorker|ray::\w*Worker/],
  ["object_store", /raylet|plasma/],
];

/** How the line of each is drawn. @type {Record<HostKind, { colour: string, dash: "solid" | "dash" | "dot" }>} */
export const HOST_KINDS = {
  worker: { colour: "part-torch", dash: "solid" },
  engine: { colour: "part-engine", dash: "dash" },
  driver: { colour: "accent", dash: "solid" },
  object_store: { colour: "part-context", dash: "dot" },
  other: { colour: "part-others", dash: "dash" },
};

/** @param {string} name @returns {HostKind} */
export const hostKindOf = (name) => NAMES.find(([, pattern]) => pattern.test(name))?.[0] ?? "other";

/** @param {HostProcess[]} processes @returns {Record<HostKind, number>} bytes */
export function heldByKind(processes) {
  const held = { worker: 0, engine: 0, driver: 0, object_store: 0, other: 0 };
  for (const { name, rss_bytes: bytes } of processes) held[hostKindOf(name)] += bytes;
  return held;
}
