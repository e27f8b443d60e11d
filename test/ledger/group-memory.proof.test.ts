/** Whatever parts a group in PostgreSQL has: they come to what they come to one after the other, each asking for itself. */
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import type { Undo } from '../../src/ledger/transactions.ts';
import { verifyLedger } from '../../src/ledger/verify.ts';
import { NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { contentOf, groundAt, HOUR, perform, round } from './grouped-operations.ts';

const newLedger = newLedgers();

async function newGround() {
  const ground = groundAt(await newLedger('postgresql'));
  onTestFinished(() => ground.ledger.close());
  return ground;
}

const known = (undos: Undo[]) => ({ before: [...undos], undos });
/** What fails for two reasons may tell either. */
const told = (answer: Promise<unknown>) => answer.catch(() => 'failed');

it('comes to what its parts come to one after the other', async () => {
  const [together, apart] = [await newGround(), await newGround()];
  const runs = 40 * Number(process.env.LEDGER_PROOFS ?? 1);
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 4 }), async (rounds) => {
      const project = crypto.randomUUID();
      const undos: [Undo[], Undo[]] = [[], []];
      for (const { minutes, operations } of rounds) {
        together.time.now += minutes * (HOUR / 60n);
        apart.time.now = together.time.now;
        const [ofTogether, ofApart] = [known(undos[0]), known(undos[1])];
        const answers = await Promise.all(
          operations.map((asked) => told(perform(together, project, asked, ofTogether))),
        );
        const expected: unknown[] = [];
        for (const asked of operations) {
          expected.push(await told(perform(apart, project, asked, ofApart)));
        }
        expect(answers).toEqual(expected);
      }
      expect(await contentOf(together, project)).toEqual(await contentOf(apart, project));
      expect((await verifyLedger(together.ledger, NO_WAIT)).differences).toEqual([]);
    }),
    { numRuns: runs },
  );
});
