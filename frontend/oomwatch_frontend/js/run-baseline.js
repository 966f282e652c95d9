// What a rollout usually takes, and above what the rule speaks of a jump: as backend/oomwatch/core/conditions/jump.py
// judges it, for every step and not for the last one alone. Pure.

/** @typedef {import("./wire.js").StepPoint} StepPoint */
/** @typedef {{ usual: number, limit: number }} Usual seconds */

const WARM_UP_STEPS = 3; // no baseline: they compile and allocate
const SETTLED_STEPS = 20; // a level that has lasted so long is what is usual now
const KEPT_STEPS = 500; // as many as the server remembers of a run

/**
 * The share by which a rollout may take longer than usual, as the rule in force says it; null where no rule watches it.
 * @param {import("./wire.js").Rule[]} rules
 */
export function allowedIncrease(rules) {
  const found = rules
    .flatMap((rule) => rule.when)
    .find((condition) => condition.kind === "jump" && condition.metric === "rollout_seconds");
  return typeof found?.increase === "number" ? found.increase : null;
}

/**
 * Of each step, what the steps before it say is usual. A restart begins anew: its settings may differ.
 * @param {StepPoint[]} points training steps in the order they were read @param {number} increase 2 is three times as much
 * @returns {Map<StepPoint, Usual>} without the steps before which nothing is known
 */
export function usualTimes(points, increase) {
  /** @type {Map<StepPoint, Usual>} */
  const found = new Map();
  let times = new Times(increase);
  points.forEach((point, index) => {
    const resumed = index > 0 && point.step.step <= points[index - 1].step.step;
    if (resumed) times = new Times(increase);
    const usual = times.usual();
    if (usual !== null) found.set(point, { usual, limit: usual * (1 + increase) });
    const seconds = point.step.rollout_seconds;
    if (seconds !== null && !resumed && point.step.step > WARM_UP_STEPS) times.add(seconds);
  });
  return found;
}

/** Times that are usual, and those that have jumped since. */
class Times {
  /** @param {number} increase */
  constructor(increase) {
    this.increase = increase;
    /** @type {number[]} */
    this.sorted = [];
    /** @type {number[]} */
    this.inOrder = [];
    /** @type {number[]} */
    this.jumped = [];
  }

  /** Their median. @returns {number | null} */
  usual() {
    const { sorted } = this;
    if (sorted.length === 0) return null;
    const middle = Math.floor(sorted.length / 2);
    return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }

  /** @param {number} seconds */
  add(seconds) {
    const usual = this.usual();
    if (usual === null || seconds <= usual * (1 + this.increase)) {
      this.jumped = [];
      this.#keep(seconds);
      return;
    }
    this.jumped.push(seconds);
    if (this.jumped.length < SETTLED_STEPS) return;
    this.inOrder = this.jumped;
    this.sorted = [...this.jumped].sort((a, b) => a - b);
    this.jumped = [];
  }

  /** @param {number} seconds */
  #keep(seconds) {
    this.inOrder.push(seconds);
    this.sorted.splice(placeOf(this.sorted, seconds), 0, seconds);
    if (this.inOrder.length <= KEPT_STEPS) return;
    const [oldest] = this.inOrder.splice(0, 1);
    this.sorted.splice(placeOf(this.sorted, oldest), 1);
  }
}

/** The place of the first that is not less. @param {number[]} sorted @param {number} value */
function placeOf(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
