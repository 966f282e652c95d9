// What the map shows, in the order in which it shows it: each GPU as a look, each node with its name and note.
// Between two alerts only readings change, so a tick costs a pass over numbers and nothing else. Pure.

import { dataIn, flagsOf, lookOf } from "./fleet-look.js";
import { gpuData, gpuRatio, hostUse, nodeData } from "./judge.js";
import { gpuKey } from "./store.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./store.js").NodeView} NodeView */
/** @typedef {import("./store.js").GpuView} GpuView */
/** @typedef {import("./judge.js").AlertIndex} AlertIndex */
/** @typedef {import("./foreseen.js").Forecasts} Forecasts */
/** @typedef {import("./foreseen.js").Foreseen} Foreseen */
/** @typedef {import("./fleet-groups.js").Part} Part */
/** @typedef {{ view: NodeView, first: number, look: number }} NodeOnMap with the index of its first GPU; its host as a look */

const HOST_SIZE = 100; // a host's look tells its share in percent: its bar is painted that exactly

export class Scene {
  constructor() {
    /** @type {NodeOnMap[]} */
    this.nodes = [];
    /** @type {GpuView[]} */
    this.gpus = [];
    /** @type {(Foreseen | null)[]} */
    this.foreseen = [];
    this.flags = new Uint8Array(0);
    this.nodeFlags = new Uint8Array(0);
    this.looks = new Int32Array(0);
  }

  /** @param {Store} store @param {Part[]} parts in the order of the map */
  arrange(store, parts) {
    this.nodes = [];
    this.gpus = [];
    for (const part of parts) {
      const view = /** @type {NodeView} */ (store.nodes.get(part.node));
      this.nodes.push({ view, first: this.gpus.length, look: 0 });
      for (const index of part.gpus) this.gpus.push(view.gpus[index]);
    }
    this.flags = new Uint8Array(this.gpus.length);
    this.nodeFlags = new Uint8Array(this.nodes.length);
    this.looks = new Int32Array(this.gpus.length);
    this.foreseen = new Array(this.gpus.length).fill(null);
  }

  /** What the alerts say. @param {AlertIndex} alerts @param {Forecasts} forecasts */
  mark(alerts, forecasts) {
    this.gpus.forEach((gpu, index) => {
      const key = gpuKey(gpu.node, gpu.facts.gpu);
      const foreseen = forecasts.things.get(key) ?? null;
      this.foreseen[index] = foreseen;
      this.flags[index] = flagsOf(alerts.gpus.get(key) ?? "ok", alerts.signs.get(key) ?? "none", foreseen !== null);
    });
    this.nodes.forEach(({ view }, index) => {
      const { node } = view.info;
      const foreseen = forecasts.things.has(node);
      this.nodeFlags[index] = flagsOf(alerts.nodes.get(node) ?? "ok", alerts.signs.get(node) ?? "none", foreseen);
    });
  }

  /** The readings as they are now. @param {number} now server's clock @param {number} size of a cell, px */
  read(now, size) {
    this.nodes.forEach((node, index) => {
      const data = nodeData(node.view, now);
      const end = this.nodes[index + 1]?.first ?? this.gpus.length;
      for (let gpu = node.first; gpu < end; gpu += 1) {
        const card = this.gpus[gpu];
        this.looks[gpu] = lookOf(this.flags[gpu], gpuData(card, data), gpuRatio(card), size);
      }
      node.look = lookOf(this.nodeFlags[index], data, hostUse(node.view)?.ratio ?? null, HOST_SIZE);
    });
  }

  /** What lies at a place. @param {number} block @param {number | null} gpu @returns {{ view: NodeView, card: GpuView | null, foreseen: Foreseen | null }} */
  at(block, gpu) {
    const { view, first } = this.nodes[block];
    if (gpu === null) return { view, card: null, foreseen: null };
    return { view, card: this.gpus[first + gpu], foreseen: this.foreseen[first + gpu] };
  }

  /** Where a GPU is. @param {string} node @param {string} gpu */
  find(node, gpu) {
    const index = this.gpus.findIndex((card) => card.node === node && card.facts.gpu === gpu);
    if (index === -1) return null;
    const block = this.nodes.findLastIndex(({ first }) => first <= index);
    return { block, gpu: index - this.nodes[block].first };
  }

  /** Whether all that a node says is current. @param {number} block */
  isCurrent(block) {
    return dataIn(this.nodes[block].look) === "ok";
  }
}
