// What the readings mean for a person: which state a GPU is shown in, and what is closest to full. Pure.

import { gpuKey } from "./store.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./store.js").NodeView} NodeView */
/** @typedef {import("./store.js").GpuView} GpuView */
/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {"ok" | "watch" | "warning" | "critical"} Level how bad the alerts of a thing are */
/** @typedef {"ok" | "stale" | "lost"} Data whether its numbers can be trusted */

/** @type {readonly Level[]} */
export const LEVELS = ["ok", "watch", "warning", "critical"];

/** @param {Level} a @param {Level} b @returns {Level} */
export const worse = (a, b) => (LEVELS.indexOf(a) >= LEVELS.indexOf(b) ? a : b);

/** How bad what a rule finds is, while it is so: what only informs is one to watch. @param {{ severity: string }} rule or an alert of it @returns {Level} */
export const levelOfRule = ({ severity }) => (severity === "info" ? "watch" : /** @type {Level} */ (severity));

/** An alert that waits out its hold time, or only informs, is one to watch. @param {Alert} alert @returns {Level} */
export function levelOf(alert) {
  if (alert.state === "resolved") return "ok";
  return alert.state === "pending" ? "watch" : levelOfRule(alert);
}

/** The worst first; among equals the oldest. @param {Alert} a @param {Alert} b */
export function byUrgency(a, b) {
  const rank = LEVELS.indexOf(levelOf(b)) - LEVELS.indexOf(levelOf(a));
  return rank !== 0 ? rank : a.started_at - b.started_at;
}

/** What an alert is about, whatever its severity. @param {Alert} alert */
const subjectOf = ({ alert, labels }) => JSON.stringify([alert, ...Object.entries(labels).sort()]);

/**
 * The open alerts, without those that say what a graver one of the same rule says of the same thing.
 * @param {Iterable<Alert>} alerts @returns {Alert[]} the most urgent first
 */
export function openAlerts(alerts) {
  const open = [...alerts].filter((alert) => alert.state !== "resolved").sort(byUrgency);
  /** @type {Map<string, Alert>} */
  const gravest = new Map();
  for (const alert of open) if (!gravest.has(subjectOf(alert))) gravest.set(subjectOf(alert), alert);
  return open.filter((alert) => {
    const graver = gravest.get(subjectOf(alert));
    return graver === undefined || levelOf(graver) === levelOf(alert);
  });
}

/** @typedef {"none" | "acknowledged" | "muted"} Sign what people did about all the open alerts of a thing */
/** @typedef {{ gpus: Map<string, Level>, nodes: Map<string, Level>, signs: Map<string, Sign>, hosts: Set<string> }} AlertIndex hosts: nodes of which, or of a GPU of which, there is an alert */

/**
 * The worst level of each GPU and node, and what was done about the alerts of each GPU and node. An alert marks the most exact thing that it names.
 * @param {Iterable<Alert>} alerts @returns {AlertIndex}
 */
export function indexAlerts(alerts) {
  /** @type {AlertIndex} */
  const index = { gpus: new Map(), nodes: new Map(), signs: new Map(), hosts: new Set() };
  /** @param {Map<string, Level>} into @param {string} key @param {Level} level */
  const raise = (into, key, level) => into.set(key, worse(level, into.get(key) ?? "ok"));
  for (const alert of alerts) {
    const level = shownLevel(alert);
    if (level === "ok") continue;
    const { node, gpu } = alert.labels;
    const key = node === undefined || gpu === undefined ? node : gpuKey(node, gpu);
    if (key !== undefined) raise(gpu === undefined ? index.nodes : index.gpus, key, level);
    if (key !== undefined) index.signs.set(key, together(index.signs.get(key), signOf(alert)));
    if (node !== undefined) index.hosts.add(node);
  }
  return index;
}

/** One that is muted is worth an eye, and no more. @param {Alert} alert @returns {Level} */
const shownLevel = (alert) => (alert.muted.length > 0 && alert.state !== "resolved" ? "watch" : levelOf(alert));

/** The runs that an alert concerns: the one it names, else those on its GPU or its node. @param {Store} store @param {Alert} alert @returns {string[]} */
export function runsOf(store, { labels: { run, node, gpu } }) {
  if (run !== undefined) return [run];
  const cards = store.nodes.get(node)?.gpus ?? [];
  return [...new Set(cards.filter(({ facts }) => gpu === undefined || facts.gpu === gpu).flatMap((card) => card.run ?? []))];
}

/** The worst level of each run of which there is an alert. @param {Store} store @returns {Map<string, Level>} */
export function runLevels(store) {
  /** @type {Map<string, Level>} */
  const levels = new Map();
  for (const alert of store.alerts.values()) {
    const level = shownLevel(alert);
    if (level === "ok") continue;
    for (const run of runsOf(store, alert)) levels.set(run, worse(level, levels.get(run) ?? "ok"));
  }
  return levels;
}

/** @param {Alert} alert @returns {Sign} */
const signOf = ({ muted, acknowledged }) => (muted.length > 0 ? "muted" : acknowledged !== null ? "acknowledged" : "none");

/** One that nobody did anything about is what counts, then one that somebody takes care of. @param {Sign | undefined} before @param {Sign} sign @returns {Sign} */
function together(before, sign) {
  if (before === undefined || before === sign) return sign;
  return before === "none" || sign === "none" ? "none" : "acknowledged";
}

/** Three of its intervals, and 5 s at least: one late frame is no gap. @param {NodeView} view */
export const patience = (view) => Math.max(5, 3 * view.info.interval_seconds);

/** Whether a node's numbers are current. @param {NodeView} view @param {number} now server's clock @returns {Data} */
export function nodeData(view, now) {
  if (view.info.state !== "live") return "stale";
  return now - view.heardAt > patience(view) ? "stale" : "ok";
}

/** @param {GpuView} gpu @param {Data} ofNode @returns {Data} */
export function gpuData(gpu, ofNode) {
  if (gpu.status === "lost") return "lost";
  return ofNode !== "ok" || gpu.status === "no_data" || gpu.usedBytes === null ? "stale" : "ok";
}

/** Share of the usable memory in use. @param {GpuView} gpu @returns {number | null} */
export function gpuRatio(gpu) {
  return gpu.usedBytes === null || gpu.usableBytes === 0 ? null : gpu.usedBytes / gpu.usableBytes;
}

/** @typedef {{ used: number, whole: number, ratio: number, contained: boolean }} HostUse */

/**
 * How full a host is: the tighter of the machine's memory and the container's limit, as the rules judge it
 * (backend/oomwatch/core/hostmemory.py; both are held against tests/core/host_use.json).
 * @param {NodeView} view @returns {HostUse | null}
 */
export function hostUse(view) {
  const host = view.info.facts.host;
  if (host === null) return null;
  const machine = useOf(view.hostUsedBytes, host.memory_total_bytes, false);
  const container = useOf(view.cgroupUsedBytes, host.memory_limit_bytes, true);
  return machine === null || (container !== null && container.ratio > machine.ratio) ? container : machine;
}

/** @param {number | null} used @param {number | null} whole @param {boolean} contained @returns {HostUse | null} */
const useOf = (used, whole, contained) =>
  used === null || whole === null || whole === 0 ? null : { used, whole, ratio: used / whole, contained };

/**
 * Which runs work on each node: those on its GPUs. Where it is not known of each GPU, also the one that its agent was told
 * and those that name the node.
 * @param {Store} store @returns {Map<string, string[]>}
 */
export function runsByNode(store) {
  /** @type {Map<string, Set<string>>} */
  const found = new Map();
  /** @type {Set<string>} */
  const unsure = new Set();
  for (const [name, { info, gpus }] of store.nodes) {
    const known = gpus.flatMap((gpu) => gpu.run ?? []);
    if (gpus.length === 0 || known.length < gpus.length) unsure.add(name);
    found.set(name, new Set(info.run === null || !unsure.has(name) ? known : [info.run, ...known]));
  }
  for (const run of store.runs.values())
    for (const node of run.nodes) if (unsure.has(node)) found.get(node)?.add(run.run);
  return new Map([...found].map(([node, runs]) => [node, [...runs]]));
}

/** The GPUs of a run, by its nodes. @param {Store} store @param {import("./wire.js").Run} run @returns {Map<string, GpuView[]>} */
export function gpusOfRun(store, run) {
  return new Map(
    run.nodes.map((node) => [node, (store.nodes.get(node)?.gpus ?? []).filter((gpu) => gpu.run === run.run)]),
  );
}

/**
 * @typedef {object} Fullness a GPU's or a host's memory
 * @property {string} key
 * @property {string} node
 * @property {GpuView | null} gpu null for the host's memory
 * @property {number} used bytes
 * @property {number} whole bytes
 * @property {number} ratio
 */

/**
 * What is closest to full, fullest first. What has no current data is left out: its number is not known.
 * @param {Store} store @param {number} count @returns {Fullness[]}
 */
export function fullest(store, count) {
  const now = store.now();
  /** @type {Fullness[]} */
  const top = [];
  for (const [node, view] of store.nodes) {
    const data = nodeData(view, now);
    if (data !== "ok") continue;
    const host = hostUse(view);
    if (host !== null) offer(top, count, { key: node, node, gpu: null, ...host });
    for (const gpu of view.gpus) {
      const ratio = gpuRatio(gpu);
      if (ratio === null || gpu.usedBytes === null || gpuData(gpu, data) !== "ok") continue;
      const last = top[count - 1];
      if (last !== undefined && ratio <= last.ratio) continue;
      const key = gpuKey(node, gpu.facts.gpu);
      offer(top, count, { key, node, gpu, used: gpu.usedBytes, whole: gpu.usableBytes, ratio });
    }
  }
  return top;
}

/** How full one GPU's or host's memory is. @param {Store} store @param {string} key as in an AlertIndex @param {number} now @returns {Fullness | null} null: it is not known, or not now */
export function fullnessOf(store, key, now) {
  const at = key.lastIndexOf("/");
  const host = store.nodes.get(key);
  const view = host ?? store.nodes.get(key.slice(0, at));
  if (view === undefined || nodeData(view, now) !== "ok") return null;
  const { node } = view.info;
  if (host !== undefined) {
    const use = hostUse(view);
    return use === null ? null : { key, node, gpu: null, ...use };
  }
  const gpu = view.gpus.find(({ facts }) => facts.gpu === key.slice(at + 1));
  const ratio = gpu === undefined || gpuData(gpu, "ok") !== "ok" ? null : gpuRatio(gpu);
  if (gpu === undefined || ratio === null || gpu.usedBytes === null) return null;
  return { key, node, gpu, used: gpu.usedBytes, whole: gpu.usableBytes, ratio };
}

/** @param {Fullness[]} top @param {number} count @param {Fullness} item */
function offer(top, count, item) {
  const place = top.findIndex((other) => other.ratio < item.ratio);
  top.splice(place === -1 ? top.length : place, 0, item);
  if (top.length > count) top.pop();
}

/**
 * The used share from which a rule calls a memory tight, lowest first: of every condition on that metric.
 * @param {Store} store @param {"gpu_used_ratio" | "host_memory_ratio"} [of] @returns {{ ratio: number, severity: import("./wire.js").Severity }[]}
 */
export function memoryLimits(store, of = "gpu_used_ratio") {
  return store.rules
    .flatMap((rule) =>
      rule.when.map((condition) => ({ ratio: condition.above, metric: condition.metric, severity: rule.severity })),
    )
    .flatMap(({ ratio, metric, severity }) =>
      metric === of && typeof ratio === "number" ? [{ ratio, severity }] : [],
    )
    .sort((a, b) => a.ratio - b.ratio);
}

/** Whether anything shown is simulated. @param {Store} store */
export function isDemo(store) {
  const shown = [...store.nodes.values()].some((view) => view.info.simulated);
  return shown || [...store.alerts.values()].some((alert) => alert.simulated);
}
