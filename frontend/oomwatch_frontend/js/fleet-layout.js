// Where each GPU's square lies on the map: the largest squares with which the whole fleet fits. Pure arithmetic.

export const LARGEST_CELL = 96;
export const LARGEST_ON_WALL = 240; // read from across the room, where there is nothing else to see
const TALLEST = 1.7; // times their width, so that a wall screen has no empty band below
const TALLEST_PX = 255; // fleet-look.js has no more room for it
export const SMALLEST_CELL = 2;
const CELLS_A_ROW = 8; // a node of the usual kind is one row
const HALF_A_ROW = 4; // or two, where a wide and low map would leave a wall screen half empty
const NAMED_FROM = 24; // px: cells of this size are large enough, names and all
const LEAST_NAMED = 9; // px: below it there is no room for the names of nodes
const NAMED_WORTH = 0.6; // names are worth cells of this share of the size they could have
const LETTER = 7.5; // px of a letter, and a bit: text is not measured here
const NAME_MOST = 68; // px that a node of one or two GPUs is given for its name
const MARK_ROOM = 16; // px before the name of a node with an alert of its own
const HEADING_MOST = 160; // px
const LEAST_HEADING = 72; // px: less of a heading says nothing

/** @typedef {{ title: string | null, nodes: { name: string, gpus: number }[] }} Section */
/** @typedef {{ section: number, node: number, name: string, x: number, y: number, columns: number, gpus: number, width: number, height: number }} Block */
/** @typedef {{ title: string, x: number, y: number, width: number }} Heading */
/** @typedef {{ cell: number, tall: number, gap: number, label: number, host: number, blocks: Block[], headings: Heading[], width: number, height: number }} Layout */
/** @typedef {{ gap: number, label: number, host: number, between: number, heading: number }} Spacing px */
/** @typedef {{ blocks: Block[], width: number, height: number }} Box a section laid out by itself, from 0, 0 */
/** @typedef {{ most: number, aRow: number[], isLow: boolean, isFilled: boolean }} Wish px of a cell at most, how many cells a row may have, whether a low map is worth slightly smaller ones, and whether cells grow taller into the room that is left */

/** @type {Wish} */
export const ON_DESK = { most: LARGEST_CELL, aRow: [CELLS_A_ROW], isLow: true, isFilled: false };
/** @type {Wish} */
export const ON_WALL = { most: LARGEST_ON_WALL, aRow: [CELLS_A_ROW, HALF_A_ROW], isLow: false, isFilled: true };

/** Spaces that go with a size of cell. @param {number} cell px @param {boolean} named @returns {Spacing} */
function spacing(cell, named) {
  return {
    gap: cell >= 24 ? 3 : cell >= 8 ? 2 : 1,
    label: named ? 16 : 0,
    host: named && cell >= 24 ? 8 : 0, // the bar of the host's memory below the cells
    between: cell >= 24 ? 20 : named ? 10 : cell >= 5 ? 4 : 2,
    heading: 22,
  };
}

/**
 * Blocks from left to right, wrapped; sections below each other, and beside each other where they are narrow.
 * @param {Section[]} sections @param {number} width px @param {number} cell px @param {boolean} named
 * @param {number} [aRow] cells in a row of a node @param {number} [tall] px of a cell's height @returns {Layout}
 */
export function place(sections, width, cell, named, aRow = CELLS_A_ROW, tall = cell) {
  const spaces = spacing(cell, named);
  const { gap, label, host, between, heading } = spaces;
  const apart = Math.max(between, 10) + 2;
  /** @type {Layout} */
  const layout = { cell, tall, gap, label, host, blocks: [], headings: [], width, height: 0 };
  let [x, y, tallest] = [0, 0, 0];
  sections.forEach((section, index) => {
    const box = boxOf(section, index, width, { ...spaces, cell, tall, aRow });
    const above = section.title === null ? 0 : heading;
    const wide = Math.max(box.width, headingWidth(section.title, width));
    if (x > 0 && x + wide > width) {
      y += tallest + apart;
      [x, tallest] = [0, 0];
    }
    if (section.title !== null) layout.headings.push({ title: section.title, x, y, width: wide });
    for (const block of box.blocks) layout.blocks.push({ ...block, x: block.x + x, y: block.y + y + above });
    x += wide + apart;
    tallest = Math.max(tallest, above + box.height);
  });
  layout.height = y + tallest;
  return layout;
}

/** @param {string | null} title @param {number} width of the map */
const headingWidth = (title, width) => (title === null ? 0 : Math.min(width, Math.max(LEAST_HEADING, Math.min(HEADING_MOST, title.length * LETTER))));

/** @param {Section} section @param {number} index @param {number} width px at most @param {Spacing & { cell: number, tall: number, aRow: number }} spaces @returns {Box} */
function boxOf(section, index, width, { cell, tall, aRow, gap, label, host, between }) {
  /** @type {Box} */
  const box = { blocks: [], width: 0, height: 0 };
  let [x, y, tallest] = [0, 0, 0];
  section.nodes.forEach(({ name, gpus }, node) => {
    const columns = Math.max(1, Math.min(aRow, gpus));
    const rows = Math.max(1, Math.ceil(gpus / aRow));
    const room = label > 0 ? Math.min(NAME_MOST, MARK_ROOM + Math.ceil(name.length * LETTER)) : 0;
    const size = { width: Math.max(columns * (cell + gap) - gap, room), height: label + rows * (tall + gap) - gap + host };
    if (x > 0 && x + size.width > width) {
      y += tallest + between;
      [x, tallest] = [0, 0];
    }
    box.blocks.push({ section: index, node, name, x, y, columns, gpus, ...size });
    box.width = Math.max(box.width, x + size.width);
    x += size.width + between;
    tallest = Math.max(tallest, size.height);
  });
  box.height = y + tallest;
  return box;
}

/**
 * The layout with the largest cells that fits, or, where none fits, the smallest (the page then scrolls). Nodes are
 * named unless that makes the cells much smaller: then the tooltip names them.
 * @param {Section[]} sections @param {number} width px @param {number} height px @param {Wish} [wish] @returns {Layout}
 */
export function fit(sections, width, height, wish = ON_DESK) {
  const named = largest(sections, width, height, true, wish);
  if (named !== null && named.cell >= NAMED_FROM) return named;
  const bare = largest(sections, width, height, false, wish);
  if (named !== null && bare !== null && named.cell >= NAMED_WORTH * bare.cell) return named;
  return bare ?? place(sections, width, SMALLEST_CELL, false);
}

/** @param {Section[]} sections @param {number} width @param {number} height @param {boolean} named @param {Wish} wish */
function largest(sections, width, height, named, { most, aRow, isLow, isFilled }) {
  const from = named ? LEAST_NAMED : SMALLEST_CELL;
  for (let cell = Math.min(most, roomiest(sections, width, height)); cell >= from; cell -= cell > 40 ? 4 : 1)
    for (const cells of aRow) {
      const tried = place(sections, width, cell, named, cells);
      if (tried.height > height || widest(tried) > width) continue;
      if (isFilled && named && cell >= NAMED_FROM) return taller(sections, height, tried, cells);
      return isLow ? flatter(sections, tried) : tried;
    }
  return null;
}

/** No larger cells can fit: their area alone would be more than there is. @param {Section[]} sections @param {number} width @param {number} height */
function roomiest(sections, width, height) {
  const gpus = sections.reduce((sum, { nodes }) => sum + nodes.reduce((some, node) => some + node.gpus, 0), 0);
  return Math.floor(Math.sqrt((width * height) / Math.max(1, gpus)));
}

/**
 * Slightly smaller cells, where with them so many more nodes stand side by side that the map is much lower.
 * @param {Section[]} sections @param {Layout} found @returns {Layout}
 */
function flatter(sections, found) {
  if (found.cell < NAMED_FROM) return found;
  for (let cell = found.cell - 1; cell >= 0.75 * found.cell; cell -= 1) {
    const tried = place(sections, found.width, cell, found.label > 0);
    if (tried.height < 0.7 * found.height) return tried;
  }
  return found;
}

/**
 * The same cells as tall as the map may be.
 * @param {Section[]} sections @param {number} height px @param {Layout} found @param {number} aRow @returns {Layout}
 */
function taller(sections, height, found, aRow) {
  const most = Math.min(TALLEST_PX, Math.floor(TALLEST * found.cell));
  for (let tall = most; tall > found.cell; tall -= 2) {
    const tried = place(sections, found.width, found.cell, true, aRow, tall);
    if (tried.height <= height) return tried;
  }
  return found;
}

/** @param {Layout} layout */
function widest(layout) {
  return layout.blocks.reduce((most, block) => Math.max(most, block.x + block.width), 0);
}

/** The corner of a block's cell. @param {Layout} layout @param {Block} block @param {number} index */
export function cellAt(layout, block, index) {
  const { cell, tall, gap, label } = layout;
  return {
    x: block.x + (index % block.columns) * (cell + gap),
    y: block.y + label + Math.floor(index / block.columns) * (tall + gap),
  };
}

/**
 * What lies under a point.
 * @param {Layout} layout @param {number} x @param {number} y
 * @returns {{ block: number, gpu: number | null } | null} gpu null: on the node's name or between its cells
 */
export function hit(layout, x, y) {
  const found = layout.blocks.findIndex(
    (block) => x >= block.x && x < block.x + block.width && y >= block.y && y < block.y + block.height,
  );
  if (found === -1) return null;
  const block = layout.blocks[found];
  const column = Math.floor((x - block.x) / (layout.cell + layout.gap));
  const row = Math.floor((y - block.y - layout.label) / (layout.tall + layout.gap));
  const index = row * block.columns + column;
  const inside = y >= block.y + layout.label && index < block.gpus && column < block.columns;
  return { block: found, gpu: inside ? index : null };
}

/**
 * Where an arrow key leads: the nearest cell in that direction.
 * @param {Layout} layout @param {{ block: number, gpu: number }} from @param {string} key
 * @returns {{ block: number, gpu: number }}
 */
export function step(layout, from, key) {
  const here = layout.blocks[from.block];
  if (key === "ArrowLeft" || key === "ArrowRight") return stepAlong(layout, from, key === "ArrowRight" ? 1 : -1);
  const down = key === "ArrowDown" ? 1 : -1;
  const next = from.gpu + down * here.columns;
  if (next >= 0 && next < here.gpus) return { block: from.block, gpu: next };
  const at = cellAt(layout, here, from.gpu);
  return nearest(layout, at, down) ?? from;
}

/** @param {Layout} layout @param {{ block: number, gpu: number }} from @param {number} by 1 or -1 */
function stepAlong(layout, from, by) {
  const gpu = from.gpu + by;
  if (gpu >= 0 && gpu < layout.blocks[from.block].gpus) return { block: from.block, gpu };
  for (let block = from.block + by; block >= 0 && block < layout.blocks.length; block += by) {
    const { gpus } = layout.blocks[block];
    if (gpus > 0) return { block, gpu: by > 0 ? 0 : gpus - 1 };
  }
  return from;
}

/** @param {Layout} layout @param {{ x: number, y: number }} at @param {number} down 1 or -1 */
function nearest(layout, at, down) {
  /** @type {{ block: number, gpu: number } | null} */
  let best = null;
  let least = Infinity;
  layout.blocks.forEach((block, index) => {
    if (block.gpus === 0 || (block.y - at.y) * down < -layout.label - layout.tall) return;
    for (let gpu = 0; gpu < block.gpus; gpu += 1) {
      const cell = cellAt(layout, block, gpu);
      const away = (cell.y - at.y) * down;
      if (away < layout.tall / 2) continue;
      const distance = away * 4 + Math.abs(cell.x - at.x);
      if (distance < least) [least, best] = [distance, { block: index, gpu }];
    }
  });
  return best;
}
