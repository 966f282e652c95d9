// The live messages (docs/reference/wire-protocol.md, "Server and browser"; the types are backend/oomwatch/wire.py).
//
// A reader takes one JSON value and gives it back checked, with what was left out filled in: a list as [], a flag as
// false, everything else as null. The types below are derived from the readers, so the two cannot drift apart. Past
// decode() nothing has to be checked again.

/**
 * @template T
 * @typedef {(value: unknown) => T} Reader
 */

/** A frame that breaks the protocol. Its message names the field. */
export class WireError extends Error {}

/** @param {string} what @param {unknown} value @returns {never} */
function refuse(what, value) {
  throw new WireError(`expected ${what}, got ${value === null ? "null" : typeof value}`);
}

/**
 * Runs a reader and puts the name of the place before its complaint.
 * @template T
 * @param {string} place @param {Reader<T>} read @param {unknown} value @returns {T}
 */
function at(place, read, value) {
  try {
    return read(value);
  } catch (error) {
    if (error instanceof WireError) error.message = `${place}: ${error.message}`;
    throw error;
  }
}

/** @type {Reader<string>} */
const text = (value) => (typeof value === "string" ? value : refuse("text", value));
/** @type {Reader<number>} */
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : refuse("a number", value));
/** @type {Reader<boolean>} */
const flag = (value) =>
  value === undefined ? false : typeof value === "boolean" ? value : refuse("true or false", value);
/** @type {Reader<unknown>} */
const anything = (value) => value;
/** @type {Reader<string | number>} */
const textOrNumber = (value) => (typeof value === "string" ? value : number(value));

/** @template T @param {Reader<T>} read @returns {Reader<T | null>} */
const maybe = (read) => (value) => (value === undefined || value === null ? null : read(value));

/** @template T @param {Reader<T>} read @param {T} fallback @returns {Reader<T>} */
const or = (read, fallback) => (value) => (value === undefined ? fallback : read(value));

/** @template {string} T @param {...T} names @returns {Reader<T>} */
const oneOf =
  (...names) =>
  (value) => {
    const found = names.find((name) => name === value);
    return found ?? refuse(names.join(" or "), value);
  };

/** @template T @param {Reader<T>} read @returns {Reader<T[]>} */
const list = (read) => (value) => {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return refuse("a list", value);
  let index = 0;
  try {
    const out = new Array(value.length);
    for (; index < value.length; index += 1) out[index] = read(value[index]);
    return out;
  } catch (error) {
    if (error instanceof WireError) error.message = `[${index}]: ${error.message}`;
    throw error; // the place is named only here: a thousand readings should not cost a thousand names
  }
};

/** @param {unknown} value @returns {Record<string, unknown>} */
function entriesOf(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return refuse("an object", value);
  return /** @type {Record<string, unknown>} */ (value);
}

/** @template T @param {Reader<T>} read @returns {Reader<Record<string, T>>} */
const record = (read) => (value) => {
  if (value === undefined) return {};
  return Object.fromEntries(Object.entries(entriesOf(value)).map(([key, item]) => [key, at(key, read, item)]));
};

/**
 * @template {Record<string, Reader<any>>} S
 * @param {S} fields
 * @returns {Reader<{ [K in keyof S]: ReturnType<S[K]> }>}
 */
const struct = (fields) => {
  const names = Object.keys(fields);
  return (value) => {
    const given = entriesOf(value);
    /** @type {Record<string, unknown>} */
    const out = {};
    for (const name of names) out[name] = at(name, fields[name], given[name]);
    return /** @type {{ [K in keyof S]: ReturnType<S[K]> }} */ (out);
  };
};

/**
 * A struct that comes as a list of its fields in this order; those at the end may be left out.
 * @template {Record<string, Reader<any>>} S
 * @param {S} fields
 * @returns {Reader<{ [K in keyof S]: ReturnType<S[K]> }>}
 */
const tuple = (fields) => {
  const names = Object.keys(fields);
  return (value) => {
    if (!Array.isArray(value)) return refuse("a list", value);
    /** @type {Record<string, unknown>} */
    const out = {};
    for (let place = 0; place < names.length; place += 1) out[names[place]] = at(names[place], fields[names[place]], value[place]);
    return /** @type {{ [K in keyof S]: ReturnType<S[K]> }} */ (out);
  };
};

const amounts = list(maybe(number));

/** A number for each GPU, null where it is not known: thousands a second, so the list that came is kept. @type {Reader<(number | null)[]>} */
const column = (value) => (Array.isArray(value) && value.every(isAmount) ? value : amounts(value));

/** @param {unknown} value */
const isAmount = (value) => value === null || Number.isFinite(value);

export { anything, flag, list, maybe, number, oneOf, or, record, struct, text };

// ---------------------------------------------------------------- facts and samples

const gpuFacts = struct({
  gpu: text,
  uuid: text,
  name: text,
  total_bytes: number,
  reserved_bytes: or(number, 0),
  mig: flag,
  pci_bus_id: maybe(text),
  power_limit_watts: maybe(number),
  driver_version: maybe(text),
});
/** @typedef {ReturnType<typeof gpuFacts>} GpuFacts */

const hostFacts = struct({
  memory_total_bytes: number,
  memory_limit_bytes: maybe(number),
  memory_limit_source: maybe(text),
  swap_total_bytes: maybe(number),
  shm_total_bytes: maybe(number),
  disk_path: maybe(text),
  disk_total_bytes: maybe(number),
  cpu_count: maybe(number),
  hostname: maybe(text),
  kernel: maybe(text),
  addresses: list(text),
});
/** @typedef {ReturnType<typeof hostFacts>} HostFacts */

const sourceFacts = struct({
  name: text,
  state: oneOf("ok", "waiting", "missing", "failed", "hung"),
  detail: maybe(text),
});
/** @typedef {ReturnType<typeof sourceFacts>} SourceFacts */

const nodeFacts = struct({ gpus: list(gpuFacts), host: maybe(hostFacts), sources: list(sourceFacts) });
/** @typedef {ReturnType<typeof nodeFacts>} NodeFacts */

const gpuStatus = oneOf("ok", "no_data", "lost");
/** @typedef {ReturnType<typeof gpuStatus>} GpuStatus */

const gpuProcess = struct({
  pid: number,
  used_bytes: maybe(number),
  name: maybe(text),
  run: maybe(text),
  rank: maybe(number),
  role: maybe(text),
});
/** @typedef {ReturnType<typeof gpuProcess>} GpuProcess */

const gpuSample = struct({
  gpu: text,
  status: or(gpuStatus, "ok"),
  used_bytes: maybe(number),
  utilization_ratio: maybe(number),
  power_watts: maybe(number),
  temperature_celsius: maybe(number),
  ecc_uncorrected_total: maybe(number),
  processes: maybe(list(gpuProcess)),
});
/** @typedef {ReturnType<typeof gpuSample>} GpuSample */

const hostProcess = struct({ pid: number, name: text, rss_bytes: number, run: maybe(text) });
/** @typedef {ReturnType<typeof hostProcess>} HostProcess */

const hostSample = struct({
  memory_used_bytes: maybe(number),
  cgroup_used_bytes: maybe(number),
  swap_used_bytes: maybe(number),
  shm_used_bytes: maybe(number),
  disk_used_bytes: maybe(number),
  memory_pressure_some_ratio: maybe(number),
  memory_pressure_full_ratio: maybe(number),
  oom_kill_total: maybe(number),
  processes: maybe(list(hostProcess)),
});
/** @typedef {ReturnType<typeof hostSample>} HostSample */

const torchSample = struct({
  pid: number,
  gpu: maybe(text),
  run: maybe(text),
  rank: maybe(number),
  role: maybe(text),
  reserved_bytes: maybe(number),
  allocated_bytes: maybe(number),
  active_bytes: maybe(number),
  inactive_split_bytes: maybe(number),
  reserved_peak_bytes: maybe(number),
  allocated_peak_bytes: maybe(number),
  alloc_retries_total: maybe(number),
  ooms_total: maybe(number),
});
/** @typedef {ReturnType<typeof torchSample>} TorchSample */

const engineSample = struct({
  engine: text,
  address: text,
  model: maybe(text),
  run: maybe(text),
  kv_used_ratio: maybe(number),
  requests_running: maybe(number),
  requests_waiting: maybe(number),
  preemptions_total: maybe(number),
});
/** @typedef {ReturnType<typeof engineSample>} EngineSample */

const sample = struct({
  seq: number,
  at: number,
  gpus: list(gpuSample),
  host: maybe(hostSample),
  torch: list(torchSample),
  engines: list(engineSample),
});
/** @typedef {ReturnType<typeof sample>} Sample */

// ---------------------------------------------------------------- nodes, runs, alerts, rules

const nodeTick = tuple({
  node: text,
  at: number,
  used_mib: column,
  utilization_percent: column,
  status: maybe(list(gpuStatus)),
  torch_reserved_mib: maybe(column),
  host_used_mib: maybe(number),
  cgroup_used_mib: maybe(number),
});
/** @typedef {ReturnType<typeof nodeTick>} NodeTick */

const cardsAlike = tuple({
  gpus: list(text),
  name: text,
  total_bytes: number,
  reserved_bytes: or(number, 0),
  mig: flag,
});
/** @typedef {ReturnType<typeof cardsAlike>} CardsAlike */

const node = struct({
  node: text,
  state: oneOf("live", "silent", "stopped"),
  last_seen_at: number,
  agent_version: text,
  interval_seconds: number,
  facts: nodeFacts,
  cards: list(cardsAlike),
  run: maybe(text),
  gpu_runs: list(maybe(text)),
  simulated: flag,
  skew_seconds: or(number, 0),
  reading: maybe(nodeTick),
  sample: maybe(sample),
  together: maybe(sample),
});
/** @typedef {ReturnType<typeof node>} Node */

const step = struct({
  step: number,
  step_seconds: maybe(number),
  rollout_seconds: maybe(number),
  reshard_seconds: maybe(number),
  phase_seconds: record(number),
  torch_reserved_peak_bytes: maybe(number),
  torch_allocated_peak_bytes: maybe(number),
  host_used_bytes: maybe(number),
  response_length_mean_tokens: maybe(number),
  response_length_max_tokens: maybe(number),
  response_clip_ratio: maybe(number),
  rollout_ms_per_token: maybe(number),
  tokens_total: maybe(number),
  preemptions_mean: maybe(number),
  validation_only: flag,
});
/** @typedef {ReturnType<typeof step>} Step */

const stepPoint = struct({ at: number, step });
/** @typedef {ReturnType<typeof stepPoint>} StepPoint */

const phaseSpan = struct({
  start_at: number,
  end_at: maybe(number),
  phase: text,
  step: maybe(number),
  known_by: oneOf("mark", "step line"),
});
/** @typedef {ReturnType<typeof phaseSpan>} PhaseSpan */

const coverage = struct({
  signal: text,
  source: maybe(text),
  last_seen_at: maybe(number),
  count: or(number, 0),
  problem: maybe(text),
  step: maybe(number),
  texts: record(text),
});
/** @typedef {ReturnType<typeof coverage>} Coverage */

/** @type {Reader<string | number | boolean>} */
const configValue = (value) => (typeof value === "boolean" ? value : textOrNumber(value));

const run = struct({
  run: text,
  nodes: list(text),
  first_seen_at: number,
  last_seen_at: number,
  steps: list(stepPoint),
  reshard_cycles_total: or(number, 0),
  reshard_marker: maybe(text),
  phases: list(phaseSpan),
  coverage: list(coverage),
  config: record(configValue),
  simulated: flag,
});
/** @typedef {ReturnType<typeof run>} Run */

const alertText = struct({ summary: text, description: text, advice: list(text) });
/** @typedef {ReturnType<typeof alertText>} AlertText */

export const severity = oneOf("info", "warning", "critical");
/** @typedef {ReturnType<typeof severity>} Severity */

const act = struct({
  act: text,
  at: number,
  node: text,
  ok: flag,
  detail: maybe(text),
  path: maybe(text),
  seconds: maybe(number),
});
/** @typedef {ReturnType<typeof act>} Act */

const evidence = struct({ key: text, facts: record(textOrNumber), texts: record(text) });

const cause = struct({
  cause: text,
  score: number,
  phase: maybe(text),
  evidence: list(evidence),
  texts: record(text),
});
/** @typedef {ReturnType<typeof cause>} Cause */

const remedy = struct({
  remedy: text,
  cause: text,
  key: maybe(text),
  value_from: maybe(configValue),
  value_to: maybe(configValue),
  override: maybe(text),
  frees_bytes: maybe(number),
  needed_bytes: maybe(number),
  texts: record(text),
  price: record(text),
  source: maybe(text),
  limits_damage: or(flag, false),
});
/** @typedef {ReturnType<typeof remedy>} Remedy */

const outcome = struct({ verdict: text, at: number, lead_seconds: maybe(number), lead_steps: maybe(number) });
/** @typedef {ReturnType<typeof outcome>} Outcome */

const mute = struct({
  kind: oneOf("silence", "maintenance", "quiet_hours", "inhibited"),
  by: text,
  until: maybe(number),
  note: maybe(text),
});
/** @typedef {ReturnType<typeof mute>} Mute */

const acknowledgement = struct({ by: text, at: number, note: maybe(text) });
/** @typedef {ReturnType<typeof acknowledgement>} Acknowledgement */

const matcher = struct({ label: text, op: or(oneOf("=", "!=", "=~", "!~"), "="), value: or(text, "") });
/** @typedef {ReturnType<typeof matcher>} Matcher */

const silence = struct({
  id: text,
  matchers: list(matcher),
  starts_at: number,
  ends_at: number,
  created_by: text,
  created_at: number,
  note: maybe(text),
});
/** @typedef {ReturnType<typeof silence>} Silence */

const alert = struct({
  id: text,
  alert: text,
  severity,
  state: oneOf("pending", "firing", "resolved"),
  labels: record(text),
  started_at: number,
  texts: record(alertText),
  fired_at: maybe(number),
  ended_at: maybe(number),
  value: maybe(number),
  limit: maybe(number),
  unit: maybe(text),
  facts: record(textOrNumber),
  stale: flag,
  simulated: flag,
  reason: maybe(text),
  lowered_from: maybe(severity),
  causes: list(cause),
  remedies: list(remedy),
  outcome: maybe(outcome),
  acts: list(act),
  muted: list(mute),
  acknowledged: maybe(acknowledgement),
});
/** @typedef {ReturnType<typeof alert>} Alert */

const rule = struct({
  alert: text,
  severity,
  scope: text,
  for_seconds: number,
  keep_firing_for_seconds: number,
  when: list(record(anything)),
  texts: record(alertText),
});
/** @typedef {ReturnType<typeof rule>} Rule */

const channelState = struct({
  name: text,
  kind: text,
  health: or(oneOf("ok", "failing", "failed"), "ok"),
  waiting: or(number, 0),
  delivered_total: or(number, 0),
  failed_total: or(number, 0),
  retries_total: or(number, 0),
  dropped_total: or(number, 0),
  last_success_at: maybe(number),
  last_error_at: maybe(number),
  last_error: maybe(text),
});
/** @typedef {ReturnType<typeof channelState>} ChannelState */

const serverInfo = struct({ version: text, started_at: number, rules_error: maybe(text) });
/** @typedef {ReturnType<typeof serverInfo>} ServerInfo */

// ---------------------------------------------------------------- the messages

const torchMemory = struct({
  reserved_bytes: maybe(number),
  allocated_bytes: maybe(number),
  device_used_bytes: maybe(number),
  device_total_bytes: maybe(number),
  at_point: maybe(text),
  phase: maybe(text),
  step: maybe(number),
  gpu: maybe(text),
});
/** @typedef {ReturnType<typeof torchMemory>} TorchMemory */

const messages = {
  snapshot: struct({
    type: oneOf("snapshot"),
    at: number,
    server: serverInfo,
    nodes: list(node),
    runs: list(run),
    alerts: list(alert),
    rules: list(rule),
    silences: list(silence),
    channels: list(channelState),
  }),
  tick: struct({ type: oneOf("tick"), at: number, nodes: list(nodeTick) }),
  node: struct({ type: oneOf("node"), node }),
  run: struct({ type: oneOf("run"), run }),
  alert: struct({ type: oneOf("alert"), alert }),
  torch: struct({ type: oneOf("torch"), at: number, node: text, memory: torchMemory, run: maybe(text) }),
  rules: struct({ type: oneOf("rules"), server: serverInfo, rules: list(rule) }),
  silences: struct({ type: oneOf("silences"), silences: list(silence) }),
  channels: struct({ type: oneOf("channels"), channels: list(channelState) }),
  forgotten: struct({ type: oneOf("forgotten"), nodes: list(text), runs: list(text) }),
};
/** @typedef {ReturnType<typeof messages.snapshot>} Snapshot */
/** @typedef {ReturnType<typeof messages.tick>} Tick */
/** @typedef {ReturnType<typeof messages.torch>} TorchPoint */
/** @typedef {ReturnType<typeof messages.forgotten>} Forgotten */
/** @typedef {ReturnType<(typeof messages)[keyof typeof messages]>} LiveMessage */

/** An answer of /api/v1/nodes/NAME. @type {Reader<Node>} @throws {WireError} */
export const readNode = node;

/** An answer of /api/v1/gpus. @throws {WireError} */
export const readGpus = list(struct({ node: text, gpu: text, uuid: text }));

/** An alert as the live messages have it. @type {Reader<Alert>} @throws {WireError} */
export const readAlert = alert;

/** An answer of /api/v1/phases. @type {Reader<PhaseSpan[]>} @throws {WireError} */
export const readPhases = list(phaseSpan);

const acknowledged = struct({ alerts: list(text) });

/** The ids in an answer of POST /api/v1/alerts/acknowledge. @param {unknown} value @throws {WireError} */
export const readAcknowledged = (value) => acknowledged(value).alerts;

/** An answer of POST /api/v1/silences. @type {Reader<Silence>} @throws {WireError} */
export const readSilence = silence;

const preview = struct({
  alerts: list(struct({ id: text, severity, summary: text })),
  last_24h: struct({ fired: number, hidden: number }),
  warnings: list(text),
});
/** @typedef {ReturnType<typeof preview>} Preview what a silence would hide */

/** An answer of POST /api/v1/silences/preview. @type {Reader<Preview>} @throws {WireError} */
export const readPreview = preview;

const delivery = struct({
  channel: text,
  kind: text,
  state: oneOf("waiting", "delivered", "failed"),
  made_at: number,
  attempts: or(number, 0),
  done_at: maybe(number),
  error: maybe(text),
});
/** @typedef {ReturnType<typeof delivery>} Delivery */

const story = struct({ deliveries: list(delivery) });

/** Of an answer of /api/v1/alerts/ID. @param {unknown} value @returns {Delivery[]} @throws {WireError} */
export const readDeliveries = (value) => story(value).deliveries;

/** Of an answer of /api/v1/runs/NAME/steps. @type {Reader<StepPoint[]>} @throws {WireError} */
export const readSteps = list(stepPoint);

const peaks = struct({
  step: list(number),
  known_from_step: maybe(number),
  gpus: list(struct({ node: text, gpu: text, usable_bytes: number })),
  phases: record(struct({ peak_bytes: list(maybe(number)), gpu: list(maybe(number)) })),
  reshard_cycles: list(maybe(number)),
});
/** @typedef {ReturnType<typeof peaks>} Peaks columns, a value for each step */

/** An answer of /api/v1/runs/NAME/peaks. @type {Reader<Peaks>} @throws {WireError} */
export const readPeaks = peaks;

const incident = struct({ id: text, at: number, run: maybe(text), simulated: flag, summary: record(text), alerts: list(text) });
/** @typedef {ReturnType<typeof incident>} Incident the head of a report */

/** An answer of /api/v1/incidents. @type {Reader<Incident[]>} @throws {WireError} */
export const readIncidents = list(incident);

const alertRow = struct({
  id: text,
  alert: text,
  severity,
  state: text,
  labels: record(text),
  started_at: number,
  fired_at: maybe(number),
  ended_at: maybe(number),
  facts: record(textOrNumber),
  summary: text,
  outcome: maybe(outcome),
});
/** @typedef {ReturnType<typeof alertRow>} AlertRow in one language */

/** An answer of /api/v1/alerts. @type {Reader<AlertRow[]>} @throws {WireError} */
export const readAlertRows = list(alertRow);

export const LIVE_TYPES = Object.keys(messages);

/**
 * A frame of /ws/live as a checked message; null for a type that this page does not know (count it and go on).
 * @param {string} frame
 * @returns {LiveMessage | null}
 * @throws {WireError} the frame breaks the protocol
 */
export function decode(frame) {
  /** @type {unknown} */
  let value;
  try {
    value = JSON.parse(frame);
  } catch (error) {
    throw new WireError(`no JSON: ${/** @type {Error} */ (error).message}`);
  }
  const type = at("type", text, entriesOf(value).type);
  if (!Object.hasOwn(messages, type)) return null;
  const read = /** @type {Record<string, Reader<LiveMessage>>} */ (messages)[type];
  return at(type, read, value);
}
