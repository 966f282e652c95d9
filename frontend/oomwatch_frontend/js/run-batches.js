// How a verl configuration cuts a step into batches, as verl itself works it out (0.5 to 0.9). Pure.

/** @typedef {Record<string, string | number | boolean>} Config */

/**
 * @typedef {object} Derived
 * @property {string} name of the number, as the catalogue has it
 * @property {number | null} value
 * @property {string} how with its numbers: "60 × 12"
 * @property {string[]} missing settings without which it is unknown
 * @property {string[]} together of those, the ones that are told for all GPUs together, under their older names
 * @property {string[]} assumed settings that are not told, with verl's own default: "ulysses_sequence_parallel_size = 1"
 * @property {string | null} broken what is wrong, as the catalogue has it: verl refuses to start so
 */

const ACTOR = "actor_rollout_ref.actor";
const ROLLOUT = "actor_rollout_ref.rollout";
const REF = "actor_rollout_ref.ref";
const TRAIN = "data.train_batch_size";
const N = `${ROLLOUT}.n`;
const MICRO = `${ACTOR}.ppo_micro_batch_size_per_gpu`;
const NODES = "trainer.nnodes";
const CARDS = "trainer.n_gpus_per_node";
const ENGINE = `${ROLLOUT}.tensor_model_parallel_size`;
const PARALLEL = ["tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"];

/** Reads settings, and keeps which it missed. */
class Asked {
  /** @param {Config} config */
  constructor(config) {
    this.config = config;
    /** @type {string[]} */
    this.missing = [];
    /** @type {string[]} */
    this.together = [];
    /** @type {string[]} */
    this.assumed = [];
  }

  /** @param {string} key @returns {number} NaN where it is missing */
  count(key) {
    const value = this.config[key];
    if (typeof value === "number" && Number.isInteger(value) && value > 0) return value;
    const older = key.replace(/_per_gpu$/, "");
    if (older !== key && typeof this.config[older] === "number") this.together.push(older);
    else if (!this.missing.includes(key)) this.missing.push(key);
    return NaN;
  }

  /** @param {string[]} keys the first that is told @param {number} otherwise verl's own default */
  orDefault(keys, otherwise) {
    const told = keys.map((key) => this.config[key]).find((value) => typeof value === "number" && value > 0);
    if (typeof told === "number") return told;
    const name = `${keys[0].split(".").at(-1)} = ${otherwise}`;
    if (!this.assumed.includes(name)) this.assumed.push(name);
    return otherwise;
  }
}

/** @param {string} name @param {Asked} asked @param {number} value @param {string} how @param {string | null} [broken] @returns {Derived} */
function derived(name, asked, value, how, broken = null) {
  const { missing, together, assumed } = asked;
  const known = Number.isFinite(value) && missing.length === 0;
  const told = { missing, together: known ? [] : together, assumed: known ? assumed : [] };
  return { name, value: known ? value : null, how: known ? how : "", broken: known ? broken : null, ...told };
}

/** All that a configuration tells. @param {Config} config @returns {Derived[]} */
export function batchesOf(config) {
  return [
    gpus(config),
    sequences(config),
    replicas(config),
    replicaSequences(config),
    miniBatches(config),
    normalised(config),
    ...microBatches(config),
    ...logProbs(config),
  ];
}

/** GPUs, and how many of them work on different data. @param {Asked} asked */
function parallel(asked) {
  const all = asked.count(NODES) * asked.count(CARDS);
  const ways =
    asked.config[`${ACTOR}.strategy`] === "megatron"
      ? PARALLEL.map((key) => asked.orDefault([`${ACTOR}.megatron.${key}`], 1)).reduce((a, b) => a * b, 1)
      : asked.orDefault(
          [`${ACTOR}.ulysses_sequence_parallel_size`, `${ACTOR}.fsdp_config.ulysses_sequence_parallel_size`],
          1,
        );
  return { all, ways, data: all / ways };
}

/** @param {Config} config */
function gpus(config) {
  const asked = new Asked(config);
  const { all, ways, data } = parallel(asked);
  const how = `${config[NODES]} × ${config[CARDS]}`;
  const broken = Number.isInteger(data) ? null : "parallel";
  return derived("gpus", asked, all, ways > 1 ? `${how} (${ways} × ${data})` : how, broken);
}

/** @param {Config} config */
function sequences(config) {
  const asked = new Asked(config);
  const value = asked.count(TRAIN) * asked.count(N);
  const isDynamic = config[`${ACTOR}.use_dynamic_bsz`] === true;
  const all = Number(config[NODES]) * Number(config[CARDS]);
  const isUneven = config[`${ACTOR}.strategy`] !== "megatron" && !isDynamic && value % all > 0;
  return derived("sequences", asked, value, `${config[TRAIN]} × ${config[N]}`, isUneven ? "sequences" : null);
}

/** @param {Config} config */
function replicas(config) {
  const asked = new Asked(config);
  const all = parallel(asked).all;
  const wide = asked.count(ENGINE);
  const broken = all % wide > 0 ? "replicas" : null;
  return derived("replicas", asked, Math.floor(all / wide), `${all} / ${wide}`, broken);
}

/** @param {Config} config */
function replicaSequences(config) {
  const asked = new Asked(config);
  const engines = parallel(asked).all / asked.count(ENGINE);
  const prompts = asked.count(TRAIN) / engines;
  return derived("replica_sequences", asked, prompts * asked.count(N), `${config[TRAIN]} / ${engines} × ${config[N]}`);
}

/** @param {Config} config */
function miniBatches(config) {
  const asked = new Asked(config);
  const [train, mini] = [asked.count(TRAIN), asked.count(`${ACTOR}.ppo_mini_batch_size`)];
  return derived("mini", asked, Math.ceil(train / mini), `${train} / ${mini}`);
}

/** @param {Asked} asked */
function normalisedSize(asked) {
  const [mini, n] = [asked.count(`${ACTOR}.ppo_mini_batch_size`), asked.count(N)];
  const { data } = parallel(asked);
  return { value: Math.floor((mini * n) / data), how: `${mini} × ${n} / ${data}` };
}

/** @param {Config} config */
function normalised(config) {
  const asked = new Asked(config);
  const { value, how } = normalisedSize(asked);
  return derived("normalised", asked, value, how, value > 0 ? null : "normalised");
}

/** Passes of the update; with dynamic batches, the tokens of one. @param {Config} config @returns {Derived[]} */
function microBatches(config) {
  const asked = new Asked(config);
  if (config[`${ACTOR}.use_dynamic_bsz`] === true) {
    return [derived("tokens", asked, asked.count(`${ACTOR}.ppo_max_token_len_per_gpu`), "")];
  }
  const mini = normalisedSize(asked).value;
  const micro = asked.count(MICRO);
  const broken = mini % micro > 0 ? "micro" : null;
  return [derived("micro", asked, Math.ceil(mini / micro), `${mini} / ${micro}`, broken)];
}

/** Passes of the log-probs, which bound their peak, each where it is told. @param {Config} config @returns {Derived[]} */
function logProbs(config) {
  const parts = /** @type {const} */ ([
    ["log_prob", ROLLOUT],
    ["ref_log_prob", REF],
  ]);
  return parts
    .filter(([, section]) => config[`${section}.log_prob_use_dynamic_bsz`] !== true)
    .filter(([name, section]) => name === "log_prob" || `${section}.log_prob_micro_batch_size_per_gpu` in config)
    .map(([name, section]) => {
      const asked = new Asked(config);
      const each = (asked.count(TRAIN) * asked.count(N)) / parallel(asked).data;
      const micro = asked.count(`${section}.log_prob_micro_batch_size_per_gpu`);
      return derived(name, asked, Math.ceil(each / micro), `${each} / ${micro}`);
    });
}

/**
 * The settings in which two runs differ.
 * @param {Config} a @param {Config} b @returns {{ key: string, a: string | number | boolean | null, b: string | number | boolean | null }[]} null: not told
 */
export function differences(a, b) {
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
  return keys
    .map((key) => ({ key, a: a[key] ?? null, b: b[key] ?? null }))
    .filter((one) => one.a !== one.b);
}
