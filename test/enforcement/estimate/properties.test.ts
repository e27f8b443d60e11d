import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { newLedger } from '../../support/ledgers.ts';
import { RandomProjects, randomProjects } from './random-projects.ts';

it('suggests only what is allowed, changes only what it says, and records nothing', async () => {
  const all = await RandomProjects.open(await newLedger());
  onTestFinished(() => all.close());
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(randomProjects, async (world) => {
      for (const one of await all.try(world)) {
        seen.add(one);
      }
    }),
    { numRuns: 30 },
  );
  const changes = ['allowed', 'smaller-later', 'change: allowed', 'change: shorter'];
  expect([...seen]).toEqual(expect.arrayContaining(['later', 'shorter', 'smaller', ...changes]));
});
