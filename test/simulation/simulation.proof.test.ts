/** `npm run simulate` runs the first test with its own histories. */
import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import type { History } from './history.ts';
import { type Asked, simulate } from './simulation.ts';

const { SIMULATION_MINUTES: minutes, SIMULATION_SEED: seed } = process.env;
const isCommand = minutes !== undefined || seed !== undefined;

function* histories(): Generator<Asked> {
  if (seed !== undefined) {
    yield [Number(seed)];
  } else if (minutes !== undefined) {
    for (const until = performance.now() + Number(minutes) * 60_000; performance.now() < until; ) {
      yield [randomInt(2 ** 32)];
    }
  } else {
    yield* Array.from({ length: 100 }, (_, run) => [1_000_000 + run] as const);
  }
}

/** Everything that may break a promise. */
const HAPPENS = [
  /answers check-create .*: allowed/,
  /answers check-create .*: .*would cost/,
  /answers check-update .*: allowed/,
  /answers commit-create .*: allowed/,
  /answers on-end .*: allowed/,
  /waits no longer/,
  / crashes/,
  / freezes/,
  /the clock of/,
  /compares: released/,
  /compares: corrected/,
  /calls .*on-end/,
  /begun early/,
  /compares: corrected .*: Blazar has not ended it/,
];

/** Time to shrink a history is added. */
const timeout = (Number(minutes ?? 0) + 20) * 60_000;

it('no history breaks a promise', { timeout }, async () => {
  let count = 0;
  let missing = HAPPENS;
  const see = ({ seed: own, broken: promise, lines }: History) => {
    count += 1;
    if (promise !== undefined) {
      console.log(`Shrinking the history of seed ${own}: ${promise}`);
    }
    missing = missing.filter((happened) => !lines.some((line) => happened.test(line)));
  };
  const broken = await simulate(histories(), { see });
  console.log(`Histories: ${count}`);
  if (broken !== undefined) {
    expect.fail(broken);
  }
  expect(isCommand ? [] : missing).toEqual([]);
});

it('a seed makes the same history again', async () => {
  const seeds = [7, 8, 9, 10, 11];
  const seen: History[] = [];
  await simulate(
    [...seeds, ...seeds].map((one) => [one]),
    { see: (history) => seen.push(history) },
  );
  expect(seen.slice(seeds.length)).toEqual(seen.slice(0, seeds.length));
});
