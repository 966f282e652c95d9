// What a process is, by what it calls itself. Pure.

/** @typedef {"driver" | "engine" | "worker" | "object_store"} NamedKind */

/**
 * In the order in which it is asked: Ray titles its workers ray::CLASS, vLLM and SGLang theirs VLLM::PART and
 * sglang::PART. The rules know processes by the same words (core/parts.py); tests/core/process_kinds.json holds both to
 * each word of it.
 * @type {Record<NamedKind, RegExp>}
 */
export const NAMES = {
  driver: /TaskRunner|main_task|main_ppo/,
  engine: /vllm|EngineCore|sglang|AsyncLLM/i,
  worker: /WorkerDict|ActorRollout|CriticWorker|RewardModelWorker|TrainingWorker|ray::\w*Worker/,
  object_store: /raylet|plasma/,
};

/** @param {string} name @returns {NamedKind | "other"} */
export const kindOfName = (name) =>
  /** @type {NamedKind[]} */ (Object.keys(NAMES)).find((kind) => NAMES[kind].test(name)) ?? "other";
