/** Random rules and requests, beside a slow evaluation written from the specification. */
import { expect, it } from 'vitest';
import { askRandomly } from './same-answers.ts';

const RUNS = 100_000;
/** For each expression. */
const REQUESTS = 20;

it('says of a hundred thousand random rules and requests what a slow evaluation says', () => {
  expect(askRandomly(4, REQUESTS, RUNS / REQUESTS)).toBeGreaterThan(RUNS / 2);
}, 3_600_000);
