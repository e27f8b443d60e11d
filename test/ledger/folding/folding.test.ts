/** Old leases become totals, and leases again: nothing that anybody is charged changes. */
import { describe, expect, it } from 'vitest';
import { foldLeases } from '../../../src/ledger/folding/fold.ts';
import { foldedLine, readFolded } from '../../../src/ledger/folding/folded-lease.ts';
import type { LeaseIdentity } from '../../../src/ledger/identity.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import { knownRegions } from '../../../src/ledger/reconciliation/regions.ts';
import { usageOf } from '../../../src/ledger/reports/usage.ts';
import { budgetsOverTime } from '../../../src/ledger/reports/usage-over-time.ts';
import { verifyLedger } from '../../../src/ledger/reports/verify.ts';
import { DIALECTS, giveBudget, NO_WAIT, newLedgers, openedLedger } from '../../support/ledgers.ts';
import { by, CLAIMANT, endLease, recordLease, requestOf } from '../recorded-leases.ts';
import { contentOf, fold, instant, restore } from './folded-ledgers.ts';

const newLedger = newLedgers();
const FIRST_OF_YEAR = '2027-01-01';

/** In 2027: leases of last year, one of which ended early, and some of today. */
async function oldLedger(dialect: (typeof DIALECTS)[number]): Promise<Ledger> {
  const connection = await newLedger(dialect);
  let now = '2026-11-21T09:00:30Z';
  const ledger = await openedLedger(connection, { now: () => now });
  await giveBudget(ledger, { amount: '1000' });
  await recordLease(ledger, { name: 'a', leaseId: 'A', region: 'north' });
  const early = await recordLease(ledger, { name: 'b', userId: 'bob', end: '2026-12-09' });
  await recordLease(ledger, { name: 'c', leaseId: 'C', end: '2026-12-05' });
  await recordLease(ledger, { name: 'o', projectId: 'ocean' });
  now = '2026-12-03T00:00:00Z';
  const shape = { start: instant('2026-12-01'), end: instant('2026-12-09'), demand: '' };
  await endLease(ledger, early, shape);
  now = '2027-02-01T00:00:00Z';
  for (const projectId of ['climate', 'ocean']) {
    await recordLease(ledger, { name: 'now', projectId, start: '2027-03-01', end: '2027-03-02' });
  }
  return ledger;
}

const differences = async (ledger: Ledger) => (await verifyLedger(ledger, NO_WAIT)).differences;

describe.each(DIALECTS)('folding on %s', (dialect) => {
  it('keeps every balance, and is undone row by row', async () => {
    const ledger = await oldLedger(dialect);
    const before = await contentOf(ledger);
    const kept = await fold(ledger, FIRST_OF_YEAR);
    expect(kept.map(({ lease }) => lease.name).sort()).toEqual(['a', 'b', 'c', 'o']);
    const folded = await contentOf(ledger);
    expect(folded.leases).toHaveLength((before.leases?.length ?? 0) - 4);
    expect(folded.accounts).toEqual(before.accounts);
    expect(await differences(ledger)).toEqual([]);
    expect(await knownRegions(ledger, NO_WAIT)).toEqual(['', 'north']);

    // Again, there is nothing.
    expect(await fold(ledger, FIRST_OF_YEAR)).toEqual([]);
    const written = kept.map((one) => readFolded(foldedLine(one)) ?? one);
    expect(written).toEqual(kept);
    await restore(ledger, FIRST_OF_YEAR, written);
    expect(await contentOf(ledger)).toEqual(before);
    const again = await restore(ledger, FIRST_OF_YEAR, written);
    expect(again.map(({ there }) => there)).toEqual([1, 1, 1, 1]);
    expect(await contentOf(ledger)).toEqual(before);
  });

  it('leaves a lease that changes while it is kept, and all of them when they cannot be kept', async () => {
    const ledger = await oldLedger(dialect);
    const before = await contentOf(ledger);
    const full = async () => {
      throw new Error('no space left on device');
    };
    const until = instant(FIRST_OF_YEAR);
    await expect(foldLeases(ledger, { until, keep: full }, NO_WAIT)).rejects.toThrow('no space left');
    expect(await contentOf(ledger)).toEqual(before);
    const change = async () => {
      await recordLease(ledger, {
        name: 'a',
        leaseId: 'A',
        region: 'north',
        start: '2027-04-01',
        end: '2027-04-02',
      });
    };
    await foldLeases(ledger, { until, keep: change }, NO_WAIT);
    const names = (await contentOf(ledger)).leases?.map((row) => (row as { name: string }).name);
    expect(names).toContain('a');
    expect(names).not.toContain('c');
    expect(await differences(ledger)).toEqual([]);
  });

  it('restores nothing that was not folded, and no lease over a later one with its id', async () => {
    const ledger = await oldLedger(dialect);
    const kept = await fold(ledger, FIRST_OF_YEAR);
    const folded = await contentOf(ledger);
    const ofOther = await restore(ledger, '2026-12-31', kept);
    expect(ofOther.every(({ isUnknown, restored }) => isUnknown && restored === 0)).toBe(true);
    expect(await contentOf(ledger)).toEqual(folded);
    await recordLease(ledger, { name: 'later', leaseId: 'C', start: '2027-04-01', end: '2027-04-02' });
    const results = await restore(ledger, FIRST_OF_YEAR, kept);
    expect(results.flatMap(({ left }) => left.map(({ lease }) => lease.name))).toEqual(['c']);
    expect(results.reduce((sum, { restored }) => sum + restored, 0)).toBe(3);
    expect(await differences(ledger)).toEqual([]);
  });

  it('says of usage from when on it is known, and of budgets the same to the second', async () => {
    const ledger = await oldLedger(dialect);
    const from = instant('2026-11-01') / 1_000_000n;
    const until = instant('2027-04-01') / 1_000_000n;
    const query = { projectId: 'climate', from, until };
    const coursesOf = () => budgetsOverTime(ledger, { ...query, points: 4 }, NO_WAIT);
    const [whole] = await coursesOf();
    await fold(ledger, FIRST_OF_YEAR);
    const usage = await usageOf(ledger, { ...query, groupBy: 'user' }, NO_WAIT);
    expect(usage).toMatchObject({ isPartial: true, from: instant(FIRST_OF_YEAR) / 1_000_000n });
    const [course] = await coursesOf();
    expect(course?.isPartial).toBe(true);
    expect(course?.points.at(-1)).toEqual(whole?.points.at(-1));
    const since = { ...query, from: instant(FIRST_OF_YEAR) / 1_000_000n };
    expect(await usageOf(ledger, { ...since, groupBy: 'user' }, NO_WAIT)).toMatchObject({ isPartial: false });
  });

  it('judges and charges a late change of a folded lease as that of one that has ended', async () => {
    const results = [];
    for (const isFolded of [false, true]) {
      const ledger = await oldLedger(dialect);
      if (isFolded) {
        await fold(ledger, FIRST_OF_YEAR);
      }
      const identity = { leaseId: 'C', region: '', projectId: 'climate', userId: 'alice' };
      const refused = await update(ledger, identity, 3n);
      const allowed = await update(ledger, identity, undefined);
      const { accounts } = await contentOf(ledger);
      results.push({ refused, allowed, accounts });
      expect(await differences(ledger)).toEqual([]);
    }
    expect(results[0]).toMatchObject({ refused: true, allowed: false });
    expect(results[1]).toEqual(results[0]);
  });
});

/** Blazar says that the lease runs until May. Resolves to whether it is refused. `limit`: of leases. */
async function update(ledger: Ledger, identity: LeaseIdentity, limit: bigint | undefined): Promise<boolean> {
  const limited = {
    ...CLAIMANT,
    claims: (...asked: Parameters<typeof CLAIMANT.claims>) => {
      const claims = CLAIMANT.claims(...asked);
      return 'allowed' in claims
        ? claims
        : claims.map((claim) =>
            claim.account === 'usage_budget/1' && limit !== undefined
              ? { ...claim, limit, refuse: () => 'too much' }
              : claim,
          );
    },
  };
  const request = requestOf({ name: 'c', end: '2027-05-01', claimant: limited });
  const change = { ...request, identity, current: request.proposal };
  return (await ledger.commit(change, by('update'), NO_WAIT)).refusal !== undefined;
}
