import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { timedYield, yieldToEventLoop } from '../../src/base/yield-to-event-loop.ts';

function work(milliseconds: number): void {
  const until = performance.now() + milliseconds;
  while (performance.now() < until) {
    // Holds the process.
  }
}

/** Somebody who has something to do in each turn of the loop. Tells how many turns there were. */
function others(): () => number {
  let turns = 0;
  let isOver = false;
  onTestFinished(() => {
    isOver = true;
  });
  const go = async () => {
    while (!isOver) {
      work(0.2);
      turns += 1;
      await nextTurn();
    }
  };
  void go();
  return () => turns;
}

it('lets others have their turns while the work lasts', async () => {
  const turns = others();
  const yieldIfDue = timedYield();
  for (let step = 0; step < 20; step += 1) {
    work(1);
    await yieldIfDue();
  }
  expect(turns()).toBeGreaterThan(5);
});

it('goes on while others always have something to do, also after a long wait and within another loop', async () => {
  others();
  const outer = timedYield();
  const inner = timedYield();
  let steps = 0;
  for (; steps < 12; steps += 1) {
    work(1);
    await inner();
    await outer();
  }
  expect(steps).toBe(12);
});

it('lets others wait for one piece of long work, however much of it there is', async () => {
  const turns = others();
  const pieces: number[] = [];
  const long = async () => {
    await yieldToEventLoop();
    const yieldIfDue = timedYield();
    for (let step = 0; step < 3; step += 1) {
      await yieldIfDue();
      pieces.push(turns());
      work(5);
    }
  };
  await Promise.all(Array.from({ length: 8 }, long));
  expect(pieces).toHaveLength(24);
  // Others had a turn between any two.
  expect(new Set(pieces).size).toBe(24);
});
