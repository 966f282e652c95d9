// What the page knows: the snapshot and every change since. Mutators are methods; every change is one "change" event
// whose detail is the set of topics that changed. Views read, and never write.

import { cardsOf } from "./cards.js";
import { MIB } from "./format.js";
import { missedBetween, together } from "./missed.js";
import { mergePhases } from "./phases.js";
import { WireError, decode } from "./wire.js";

/** @typedef {import("./wire.js").Node} Node */
/** @typedef {import("./wire.js").Run} Run */
/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {import("./wire.js").Rule} Rule */
/** @typedef {import("./wire.js").Silence} Silence */
/** @typedef {import("./wire.js").ChannelState} ChannelState */
/** @typedef {import("./wire.js").NodeTick} NodeTick */
/** @typedef {import("./wire.js").TorchPoint} TorchPoint */
/** @typedef {import("./wire.js").LiveMessage} LiveMessage */
/** @typedef {import("./wire.js").GpuStatus} GpuStatus */
/** @typedef {"connection" | "tick" | "nodes" | "runs" | "alerts" | "torch" | "rules" | "silences" | "channels" | "clock"} Topic */

/**
 * @typedef {object} GpuView one GPU with its latest reading
 * @property {string} node
 * @property {import("./cards.js").CardFacts} facts
 * @property {number} usableBytes total without what the driver keeps
 * @property {number | null} usedBytes
 * @property {number | null} utilizationRatio
 * @property {GpuStatus} status
 * @property {number | null} torchReservedBytes of all processes with a probe; null: there is none
 * @property {string | null} run the run that it works on, where that is known
 * @property {import("./wire.js").GpuSample | null} sample what ticks leave out: processes, power, temperature
 */

/**
 * @typedef {object} NodeView
 * @property {Node} info
 * @property {boolean} isDetailed what ticks leave out (info.sample, info.together) was told of it
 * @property {GpuView[]} gpus in the order of the facts
 * @property {number | null} hostUsedBytes
 * @property {number | null} cgroupUsedBytes
 * @property {number} heardAt server's clock, Unix seconds
 * @property {number} readAt when the reading shown was made
 */

/**
 * @typedef {object} Connection
 * @property {"connecting" | "live" | "reconnecting" | "ended"} phase connecting: no snapshot was ever read; ended: nobody is signed in any more
 * @property {number | null} retryAtMs Date.now milliseconds of the next try, while there is no connection
 * @property {boolean} failed whether a try has failed since data last came
 */

const STEPS_KEPT = 5000; // a page may stay open for weeks
const ENDED_KEPT = 400; // alerts; the server's snapshot holds 200

/** @param {string} node @param {string} gpu */
export const gpuKey = (node, gpu) => `${node}/${gpu}`;

export class Store extends EventTarget {
  /** @param {() => number} [clock] local Unix seconds */
  constructor(clock = () => Date.now() / 1000) {
    super();
    this.clock = clock;
    /** @type {Connection} */
    this.connection = { phase: "connecting", retryAtMs: null, failed: false };
    /** @type {import("./wire.js").ServerInfo | null} */
    this.server = null;
    /** @type {Map<string, NodeView>} */
    this.nodes = new Map();
    /** @type {Map<string, Run>} */
    this.runs = new Map();
    /** @type {Map<string, Alert>} */
    this.alerts = new Map();
    /** @type {Rule[]} */
    this.rules = [];
    /** In force or yet to come, by their end. @type {Silence[]} */
    this.silences = [];
    /** In the order of alerts.yaml. @type {ChannelState[]} */
    this.channels = [];
    /** @type {TorchPoint | null} the reading that came last; charts append it */
    this.torch = null;
    /** Names of the nodes in the last tick. @type {string[]} */
    this.ticked = [];
    /** What was missed while there was no connection, until somebody has seen it. @type {import("./missed.js").Missed | null} */
    this.missed = null;
    this.unknownFrames = 0;
    this.malformedFrames = 0;
    /** @type {string | null} */
    this.malformedReason = null;
    /** Server's clock minus ours, seconds. */
    this.offset = 0;
    /** Server's time of the newest frame that told one. @type {number | null} */
    this.newestAt = null;
  }

  /** The server's clock now, Unix seconds. */
  now() {
    return this.clock() + this.offset;
  }

  /** @param {...Topic} topics */
  #changed(...topics) {
    this.dispatchEvent(new CustomEvent("change", { detail: new Set(topics) }));
  }

  /** @param {(topics: Set<Topic>) => void} listener @returns {() => void} stop listening */
  subscribe(listener) {
    const handle = (/** @type {Event} */ event) => listener(/** @type {CustomEvent} */ (event).detail);
    this.addEventListener("change", handle);
    return () => this.removeEventListener("change", handle);
  }

  // -------------------------------------------------------------- mutators

  /** Time went on: ages and staleness may read differently. */
  passTime() {
    this.#changed("clock");
  }

  /** @param {number} retryAtMs */
  connectionLost(retryAtMs) {
    const phase = this.newestAt === null ? "connecting" : "reconnecting";
    this.connection = { phase, retryAtMs, failed: true };
    this.#changed("connection");
  }

  /** The server knows this browser no more. A try of a tab that somebody comes back to may be taken again. */
  connectionEnded() {
    this.connection = { phase: "ended", retryAtMs: null, failed: true };
    this.#changed("connection");
  }

  /** A try goes on: nothing is waited for, and nothing is known yet. */
  connectionOpened() {
    this.connection = { ...this.connection, retryAtMs: null };
    this.#changed("connection");
  }

  /** Somebody has read what was missed. */
  dismissMissed() {
    this.missed = null;
    this.#changed("connection");
  }

  /** A frame as it came. What cannot be read is counted, never thrown. @param {string} frame */
  receive(frame) {
    try {
      const message = decode(frame);
      if (message === null) this.unknownFrames += 1;
      else this.apply(message);
      if (message === null) this.#changed("connection");
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.malformedFrames += 1;
      this.malformedReason = error.message;
      this.#changed("connection");
    }
  }

  /** @param {LiveMessage} message */
  apply(message) {
    switch (message.type) {
      case "snapshot":
        return this.#replaceAll(message);
      case "tick":
        return this.#tick(message);
      case "node":
        this.#putNode(message.node);
        return this.#changed("nodes");
      case "run":
        this.#putRun(message.run);
        return this.#changed("runs");
      case "alert":
        this.#putAlert(message.alert);
        return this.#changed("alerts");
      case "torch":
        this.torch = message;
        return this.#changed("torch");
      case "rules":
        this.server = message.server;
        this.rules = message.rules;
        return this.#changed("rules");
      case "silences":
        this.silences = message.silences;
        return this.#changed("silences");
      case "channels":
        this.channels = message.channels;
        return this.#changed("channels");
      case "forgotten":
        return this.#forget(message);
    }
  }

  /** The answer to a question for this node: all there is of it. @param {Node} node */
  putDetail(node) {
    this.#putNode(node);
    /** @type {NodeView} */ (this.nodes.get(node.node)).isDetailed = true; // also where nothing was read of it yet
    this.#changed("nodes");
  }

  /** @param {import("./wire.js").Snapshot} snapshot */
  #replaceAll(snapshot) {
    if (this.newestAt !== null) {
      this.missed = together(this.missed, missedBetween(this.alerts, snapshot.alerts, this.newestAt, snapshot.at));
    }
    this.offset = snapshot.at - this.clock();
    this.newestAt = snapshot.at;
    this.connection = { phase: "live", retryAtMs: null, failed: false };
    this.server = snapshot.server;
    this.rules = snapshot.rules;
    this.silences = snapshot.silences;
    this.channels = snapshot.channels;
    const known = this.nodes;
    this.nodes = new Map(snapshot.nodes.map((node) => [node.node, viewOf(node, null, known.get(node.node) ?? null)]));
    this.runs = new Map(snapshot.runs.map((run) => [run.run, run]));
    this.alerts = new Map(snapshot.alerts.map((alert) => [alert.id, alert]));
    this.#changed("connection", "nodes", "runs", "alerts", "rules", "silences", "channels", "tick");
  }

  /** @param {import("./wire.js").Tick} tick */
  #tick(tick) {
    this.newestAt = tick.at;
    // The least delayed frame tells the offset best.
    this.offset = Math.max(this.offset, tick.at - this.clock());
    this.ticked = [];
    for (const reading of tick.nodes) {
      const view = this.nodes.get(reading.node);
      if (view === undefined) continue;
      view.heardAt = tick.at;
      takeReading(view, reading);
      this.ticked.push(reading.node);
    }
    this.#changed("tick");
  }

  /** Nodes and runs that are no more. @param {import("./wire.js").Forgotten} gone */
  #forget({ nodes, runs }) {
    for (const name of nodes) this.nodes.delete(name);
    for (const name of runs) this.runs.delete(name);
    this.#changed("nodes", "runs");
  }

  /** @param {Node} node */
  #putNode(node) {
    const old = this.nodes.get(node.node) ?? null;
    this.nodes.set(node.node, viewOf(node, old, old));
  }

  /** An alert that ended before it ever fired was none, and is taken away. @param {Alert} alert */
  #putAlert(alert) {
    if (alert.state === "resolved" && alert.fired_at === null) this.alerts.delete(alert.id);
    else this.alerts.set(alert.id, alert);
    if (alert.state === "resolved") this.#forgetEnded();
  }

  /** Those that came first go first, a hundred at once, so that it costs nothing most of the time. */
  #forgetEnded() {
    const ended = [...this.alerts.values()].filter(({ state }) => state === "resolved");
    if (ended.length <= ENDED_KEPT + 100) return;
    ended.sort((a, b) => (a.ended_at ?? 0) - (b.ended_at ?? 0));
    for (const { id } of ended.slice(0, ended.length - ENDED_KEPT)) this.alerts.delete(id);
  }

  /** @param {Run} run with new steps, and the phases that may have changed, only */
  #putRun(run) {
    const old = this.runs.get(run.run);
    if (old === undefined) return void this.runs.set(run.run, run);
    const steps = [...old.steps, ...run.steps].slice(-STEPS_KEPT);
    this.runs.set(run.run, { ...run, steps, phases: mergePhases(old.phases, run.phases) });
  }
}

/**
 * @param {Node} node @param {NodeView | null} old whose readings stay where the node brings none that is newer
 * @param {NodeView | null} detailed whose detail stays where the node brings none
 * @returns {NodeView}
 */
function viewOf(node, old, detailed) {
  const told = node.sample !== null || detailed === null ? node : detailed.info;
  const samples = new Map(told.sample?.gpus.map((sample) => [sample.gpu, sample]));
  const cards = cardsOf(node, detailed?.gpus.map(({ facts }) => facts) ?? []);
  const known = new Map(old?.gpus.map((gpu) => [gpu.facts.gpu, gpu]));
  const view = {
    info: { ...node, sample: told.sample, together: told.together },
    isDetailed: told.sample !== null || (detailed?.isDetailed ?? false),
    gpus: cards.map((facts, index) =>
      gpuOf(node, index, facts, known.get(facts.gpu) ?? UNREAD, samples.get(facts.gpu) ?? null),
    ),
    hostUsedBytes: old?.hostUsedBytes ?? null,
    cgroupUsedBytes: old?.cgroupUsedBytes ?? null,
    heardAt: Math.max(node.last_seen_at, old?.heardAt ?? 0),
    readAt: old?.readAt ?? -Infinity,
  };
  if (node.reading !== null && node.reading.at >= view.readAt) takeReading(view, node.reading); // else a tick was newer
  return view;
}

/** @typedef {Pick<GpuView, "usedBytes" | "utilizationRatio" | "torchReservedBytes" | "status">} Latest */

/** @type {Latest} */
const UNREAD = { usedBytes: null, utilizationRatio: null, torchReservedBytes: null, status: "no_data" };

/**
 * @param {Node} node @param {number} index among its GPUs @param {GpuView["facts"]} facts @param {Latest} latest @param {GpuView["sample"]} sample
 * @returns {GpuView}
 */
function gpuOf(node, index, facts, { usedBytes, utilizationRatio, torchReservedBytes, status }, sample) {
  const usableBytes = Math.max(0, facts.total_bytes - facts.reserved_bytes);
  const run = node.gpu_runs[index] ?? null;
  return { node: node.node, facts, usableBytes, usedBytes, utilizationRatio, torchReservedBytes, status, run, sample };
}

/** @param {NodeView} view @param {NodeTick} reading */
function takeReading(view, reading) {
  view.readAt = reading.at;
  view.hostUsedBytes = mib(reading.host_used_mib);
  view.cgroupUsedBytes = mib(reading.cgroup_used_mib);
  view.gpus.forEach((gpu, index) => {
    const percent = reading.utilization_percent[index] ?? null;
    gpu.usedBytes = mib(reading.used_mib[index] ?? null);
    gpu.utilizationRatio = percent === null ? null : percent / 100;
    gpu.torchReservedBytes = mib(reading.torch_reserved_mib?.[index] ?? null);
    gpu.status = reading.status?.[index] ?? (gpu.usedBytes === null ? "no_data" : "ok");
  });
}

/** @param {number | null} amount */
const mib = (amount) => (amount === null ? null : amount * MIB);
