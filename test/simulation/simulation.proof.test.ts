/** `SIMULATION_RUNS=10000` for more, `SIMULATION_SEED=7` for the history of one seed. */
import { expect, it } from 'vitest';
import { simulate } from './simulation.ts';

it('no history breaks a promise', async () => {
  const { broken, lines } = await simulate(200, 1_000_000);
  expect(broken).toBeUndefined();
  if (process.env.SIMULATION_SEED !== undefined) {
    return;
  }
  // Everything that may break one has happened.
  for (const happened of [
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
  ]) {
    expect(lines.some((line) => happened.test(line))).toBe(true);
  }
});

it('a seed makes the same history again', async () => {
  const [first, second] = [await simulate(5, 7), await simulate(5, 7)];
  expect(second.lines).toEqual(first.lines);
});
