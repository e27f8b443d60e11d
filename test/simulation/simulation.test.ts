import { expect, it } from 'vitest';
import { simulate } from './simulation.ts';

it('no history breaks a promise: nothing overdrawn, nothing acknowledged lost, settled is the truth', async () => {
  expect((await simulate(3, 34)).broken).toBeUndefined();
});
