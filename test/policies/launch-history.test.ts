import fc from 'fast-check';
import { expect, it } from 'vitest';
import { histories, play } from './launch-history.ts';

it('charges what was used, whatever befalls clusters', async () => {
  await fc.assert(
    fc.asyncProperty(histories, (history) => play(history)),
    { numRuns: 3 },
  );
  expect.hasAssertions();
});
