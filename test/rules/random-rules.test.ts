import fc from 'fast-check';
import { expect, it } from 'vitest';
import { expectSameAnswers } from './same-answers.ts';
import { anyExpression, anyRequest } from './slow-rules.ts';

/** For each expression. */
const REQUESTS = 5;

it('says of random rules what a slow evaluation says, and takes no more steps than estimated', () => {
  let asked = 0;
  fc.assert(
    fc.property(
      anyExpression(3),
      fc.array(anyRequest, { minLength: REQUESTS, maxLength: REQUESTS }),
      (tree, requests) => {
        asked += expectSameAnswers(tree, requests);
      },
    ),
    { numRuns: 100 },
  );
  expect(asked).toBeGreaterThan(200);
});
