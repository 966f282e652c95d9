import assert from "node:assert/strict";
import { test } from "node:test";

import { LARGEST_CELL, LARGEST_ON_WALL, ON_WALL, SMALLEST_CELL, cellAt, fit, hit, step } from "../../frontend/oomwatch_frontend/js/fleet-layout.js";

/** @param {number} count @param {number} [gpus] */
const nodes = (count, gpus = 8) => [
  { title: null, nodes: Array.from({ length: count }, (_, index) => ({ name: `gpu-${index}`, gpus })) },
];

for (const [count, cells] of [
  [1, 8],
  [6, 48],
  [128, 1024],
]) {
  test(`${cells} GPUs fit on one screen`, () => {
    const layout = fit(nodes(count), 919, 604);
    assert.ok(layout.height <= 604);
    assert.ok(layout.blocks.every((block) => block.x + block.width <= 919));
  });
}

for (const [screen, width, height] of /** @type {const} */ ([
  ["a laptop's", 919, 604],
  ["a phone's", 366, 404],
])) {
  test(`10,240 GPUs fit on one screen, ${screen}`, () => {
    const layout = fit(nodes(1280), width, height);
    assert.ok(layout.height <= height);
    assert.ok(layout.blocks.every((block) => block.x + block.width <= width));
  });
}

test("a hundred runs of a node each stand side by side, with room for their names", () => {
  const runs = Array.from({ length: 100 }, (_, index) => ({ title: `run-${index}`, nodes: nodes(1)[0].nodes }));
  const layout = fit(runs, 919, 604);
  assert.ok(layout.height <= 604);
  assert.equal(layout.headings.length, 100);
  assert.ok(layout.headings.every((heading) => heading.width >= 52 && heading.x + heading.width <= 919));
  for (const [index, a] of layout.headings.entries())
    for (const b of layout.headings.slice(index + 1)) assert.ok(a.y !== b.y || a.x + a.width <= b.x || b.x + b.width <= a.x);
});

test("what fits nowhere has the smallest cells, and the page scrolls", () => {
  assert.equal(fit(nodes(5000), 366, 404).cell, SMALLEST_CELL);
});

test("no two blocks lie on each other", () => {
  const { blocks } = fit([...nodes(5), ...nodes(3, 12), ...nodes(2, 1)], 700, 400);
  for (const [index, a] of blocks.entries()) {
    for (const b of blocks.slice(index + 1)) {
      const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
      assert.ok(apart, `${a.name} and ${b.name}`);
    }
  }
});

test("an empty fleet and a node without GPUs have a layout too", () => {
  assert.equal(fit([], 900, 600).height, 0);
  assert.equal(fit(nodes(1, 0), 900, 600).blocks[0].gpus, 0);
});

test("the middle of every cell is hit as that cell, and the name as the node", () => {
  const layout = fit(nodes(6, 12), 800, 500);
  layout.blocks.forEach((block, index) => {
    for (let gpu = 0; gpu < block.gpus; gpu += 1) {
      const { x, y } = cellAt(layout, block, gpu);
      assert.deepEqual(hit(layout, x + layout.cell / 2, y + layout.cell / 2), { block: index, gpu });
    }
    assert.deepEqual(hit(layout, block.x + 1, block.y + 1), { block: index, gpu: null });
  });
  assert.equal(hit(layout, -1, -1), null);
});

test("the room after the last cell of a node is the node's and no GPU's", () => {
  const layout = fit(nodes(1, 12), 800, 500);
  const { x, y } = cellAt(layout, layout.blocks[0], 12);
  assert.deepEqual(hit(layout, x + 1, y + 1), { block: 0, gpu: null });
});

test("right and left lead through all GPUs in order and stop at the ends", () => {
  const layout = fit(nodes(2), 300, 600);
  let at = { block: 0, gpu: 0 };
  for (let count = 0; count < 20; count += 1) at = step(layout, at, "ArrowRight");
  assert.deepEqual(at, { block: 1, gpu: 7 });
  for (let count = 0; count < 20; count += 1) at = step(layout, at, "ArrowLeft");
  assert.deepEqual(at, { block: 0, gpu: 0 });
});

test("down leads to the cell below, also of the next node, and up leads back", () => {
  const layout = fit(nodes(4), 300, 2000);
  const below = step(layout, { block: 0, gpu: 5 }, "ArrowDown");
  assert.ok(below.block > 0);
  assert.equal(below.gpu, 5);
  assert.deepEqual(step(layout, below, "ArrowUp"), { block: 0, gpu: 5 });
  assert.deepEqual(step(layout, { block: 0, gpu: 5 }, "ArrowUp"), { block: 0, gpu: 5 });
});

test("on a wall screen the cells of a few GPUs grow into the room that there is", () => {
  assert.equal(fit(nodes(1), 1600, 900).cell, LARGEST_CELL);
  const wall = fit(nodes(1), 1600, 900, ON_WALL);
  assert.ok(wall.cell > 180, `${wall.cell} px`);
  assert.ok(wall.blocks[0].width <= 1600);
});

test("on a wall screen cells are taller where the map would else leave a band empty below, and pointing finds them", () => {
  const [width, height] = [900, 250];
  const wall = fit(nodes(3), width, height, ON_WALL);
  assert.ok(wall.tall > wall.cell && wall.height <= height && wall.height > height - 20, `${wall.tall} px, ${wall.height} px`);
  const { x, y } = cellAt(wall, wall.blocks[2], 7);
  assert.deepEqual(hit(wall, x + wall.cell / 2, y + wall.tall - 2), { block: 2, gpu: 7 });
  assert.equal(fit(nodes(3), width, height).tall, fit(nodes(3), width, height).cell);
});

test("on a wall screen a single node takes two rows, where one would leave the lower half empty", () => {
  const wall = fit(nodes(1), 890, 560, ON_WALL);
  assert.equal(wall.blocks[0].columns, 4);
  assert.ok(wall.height > 0.7 * 560, `${wall.height} px`);
  assert.ok(wall.cell <= LARGEST_ON_WALL);
});
