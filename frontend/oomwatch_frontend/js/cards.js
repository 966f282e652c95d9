// What is known of the cards of a node, told in full or, to those who did not ask for it, at a glance. Pure.

/** @typedef {import("./wire.js").GpuFacts} GpuFacts */
/** @typedef {import("./wire.js").CardsAlike} CardsAlike */
/** @typedef {import("./wire.js").Node} Node */
/** @typedef {Omit<GpuFacts, "uuid"> & { uuid: string | null }} CardFacts uuid null: told at a glance, so the rest is not known */

const UNTOLD = { uuid: null, pci_bus_id: null, power_limit_watts: null, driver_version: null };

/**
 * The cards of a node in their order. Of one told at a glance that has not become another, what was told in full stays.
 * @param {Node} node @param {CardFacts[]} known before @returns {CardFacts[]}
 */
export function cardsOf({ facts, cards }, known) {
  if (cards.length === 0) return facts.gpus;
  const before = new Map(known.map((card) => [card.gpu, card]));
  return cards.flatMap(({ gpus, ...kind }) =>
    gpus.map((gpu) => {
      const old = before.get(gpu);
      return old !== undefined && isOf(kind, old) ? old : { gpu, ...kind, ...UNTOLD };
    }),
  );
}

/** @param {Omit<CardsAlike, "gpus">} kind @param {CardFacts} card */
const isOf = (kind, card) =>
  card.name === kind.name && card.total_bytes === kind.total_bytes && card.reserved_bytes === kind.reserved_bytes && card.mig === kind.mig;
