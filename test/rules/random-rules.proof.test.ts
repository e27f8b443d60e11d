/** Random rules and requests, beside a slow evaluation written from the specification. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { expectSameAnswers } from './same-answers.ts';
import { anyExpression, anyRequest } from './slow-rules.ts';

const RUNS = 400_000;

/** For each expression. */
const REQUESTS = 20;

it('says of hundreds of thousands of random rules and requests what a slow evaluation says', () => {
  let asked = 0;
  fc.assert(
    fc.property(
      anyExpression(4),
      fc.array(anyRequest, { minLength: REQUESTS, maxLength: REQUESTS }),
      (tree, requests) => {
        asked += expectSameAnswers(tree, requests);
      },
    ),
    { numRuns: RUNS / REQUESTS },
  );
  expect(asked).toBeGreaterThan(RUNS / 2);
}, 3_600_000);
