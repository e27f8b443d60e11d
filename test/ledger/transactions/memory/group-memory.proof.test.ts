/** Whatever parts a group has: they come to what they come to one after the other, each asking for itself. */
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { verifyLedger } from '../../../../src/ledger/reports/verify.ts';
import type { Undo } from '../../../../src/ledger/transactions/lease-transactions.ts';
import { DIALECTS, NO_WAIT, newLedgers } from '../../../support/ledgers.ts';
import { contentOf, fixtureAt, HOUR, type Operation, perform, round } from '../../grouped-operations.ts';

const newLedger = newLedgers();

async function newGround(dialect: (typeof DIALECTS)[number]) {
  const fixture = fixtureAt(await newLedger(dialect));
  onTestFinished(() => fixture.ledger.close());
  return { ...fixture, undos: new Map<string, Undo[]>() };
}
type LedgerFixture = Awaited<ReturnType<typeof newGround>>;

/** Performs operations that begin now. What fails for two reasons may tell either. */
function performing(fixture: LedgerFixture) {
  const before = new Map([...fixture.undos].map(([project, undos]) => [project, [...undos]]));
  return (asked: Operation, project: string): Promise<unknown> => {
    const undos = fixture.undos.get(project) ?? [];
    fixture.undos.set(project, undos);
    return perform(fixture, project, asked, { before: before.get(project) ?? [], undos }).catch(
      () => 'failed',
    );
  };
}

it.each(DIALECTS)('comes to what its parts come to one after the other: %s', async (dialect) => {
  const together = await newGround(dialect);
  const apart = await newGround(dialect);
  const runs = (dialect === 'sqlite' ? 60 : 20) * Number(process.env.LEDGER_PROOFS ?? 1);
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 4 }), async (rounds) => {
      const projects = [crypto.randomUUID(), crypto.randomUUID()];
      const operations = rounds.map((one) => ({
        minutes: one.minutes,
        asked: one.operations.map((of) => ({ asked: of.asked, project: projects[of.project] ?? '' })),
      }));
      for (const { minutes, asked } of operations) {
        together.time.now += minutes * (HOUR / 60n);
        apart.time.now = together.time.now;
        const atOnce = performing(together);
        const inTurn = performing(apart);
        const answers = await Promise.all(asked.map((one) => atOnce(one.asked, one.project)));
        const expected: unknown[] = [];
        for (const one of asked) {
          expected.push(await inTurn(one.asked, one.project));
        }
        expect(answers).toEqual(expected);
      }
      for (const project of projects) {
        expect(await contentOf(together, project)).toEqual(await contentOf(apart, project));
      }
      expect((await verifyLedger(together.ledger, NO_WAIT)).differences).toEqual([]);
    }),
    { numRuns: runs },
  );
});
