import { expect, it } from 'vitest';
import { askRandomly } from './same-answers.ts';

it('says of random rules what a slow evaluation says, and takes no more steps than estimated', () => {
  expect(askRandomly(3, 5, 100)).toBeGreaterThan(200);
});
