import { afterEach, describe, expect, it } from 'vitest';
import type { Claim } from '../../../src/filter/claim.ts';
import { toInstant } from '../../../src/lease/dates.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import type { Claimant } from '../../../src/ledger/ledger-request.ts';
import type { ListedLease } from '../../../src/ledger/reconciliation/leases.ts';
import type { ListTerms } from '../../../src/ledger/reconciliation/plan.ts';
import { reconcileList } from '../../../src/ledger/reconciliation/reconcile.ts';
import { leaseDetails, listLeases } from '../../../src/ledger/reports/reports.ts';
import { verifyLedger } from '../../../src/ledger/reports/verify.ts';
import { giveBudgets, ledgerAt, NO_WAIT } from '../../support/ledgers.ts';
import { CLAIMANT, copiedLedgers, endLease, LIST_TERMS, recordLease } from '../recorded-leases.ts';

const newLedger = copiedLedgers(async (connection) => {
  await giveBudgets(connection, [{ amount: '1000' }]);
});
const opened: Ledger[] = [];
let now = '2026-11-21T09:00:30Z';
afterEach(async () => {
  now = '2026-11-21T09:00:30Z';
  for (const ledger of opened.splice(0)) {
    // After every reconciliation, the balances match the entries.
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
    await ledger.close();
  }
});

async function open(): Promise<Ledger> {
  const ledger = await ledgerAt(await newLedger(), { now: () => now });
  opened.push(ledger);
  return ledger;
}

const instant = (date: string) => toInstant(date) ?? 0n;

/** A lease as the command line of OpenStack lists it, with more fields if given. */
function listedLease(lease: {
  id: string;
  name: string;
  start?: string;
  end?: string;
  projectId?: string;
  userId?: string;
  reservations?: ListedLease['reservations'];
}): ListedLease {
  const { id, name, start = '2026-12-01', end = '2026-12-02' } = lease;
  const { projectId, userId, reservations } = lease;
  return { id, name, start: instant(start), end: instant(end), projectId, userId, reservations };
}

const WHOLE = { projectId: 'climate', userId: 'alice', reservations: [{ resource_type: 'physical:host' }] };

async function reconciled(ledger: Ledger, listed: readonly ListedLease[], options: Partial<ListTerms> = {}) {
  const done = [];
  const all = { ...LIST_TERMS, reason: 'a test', ...options };
  for await (const { outcome, name, leaseId, note } of reconcileList(ledger, listed, all, NO_WAIT)) {
    done.push([outcome, name, leaseId, note]);
  }
  return done;
}

/** [lease id, state, start, end], by row. */
async function leases(ledger: Ledger) {
  const all = await listLeases(ledger, { limit: 100 }, NO_WAIT);
  return all.reverse().map(({ name, leaseId, state }) => [name, leaseId, state]);
}

async function budgetEntries(ledger: Ledger, row: bigint): Promise<bigint[]> {
  const [details] = await leaseDetails(ledger, row, NO_WAIT);
  return (details?.entries ?? [])
    .filter(({ account }) => account === 'usage_budget/1')
    .map(({ delta }) => delta);
}

const DAY = 86_400n * 1_000_000n;

it('releases missing leases, records unknown ones, corrects dates and adds ids', async () => {
  const ledger = await open();
  await recordLease(ledger, { name: 'gone', start: '2026-12-03', end: '2026-12-04' });
  await recordLease(ledger, { name: 'kept', leaseId: 'K' });
  await recordLease(ledger, { name: 'nameless' });
  await recordLease(ledger, { name: 'longer', leaseId: 'L' });
  const list = [
    listedLease({ id: 'K', name: 'kept' }),
    listedLease({ id: 'N', name: 'nameless' }),
    listedLease({ id: 'L', name: 'longer', end: '2026-12-04' }),
    listedLease({ id: 'U', name: 'unseen', ...WHOLE }),
    listedLease({ id: 'X', name: 'whose' }),
  ];
  const expected = [
    ['released', 'gone', null, null],
    ['corrected', 'longer', 'L', 'it was 2026-12-01T00:00:00Z to 2026-12-02T00:00:00Z'],
    ['identified', 'nameless', 'N', null],
    ['left', 'whose', 'X', "can't be recorded: the list does not say whose it is"],
    ['recorded', 'unseen', 'U', null],
  ];
  const before = await leases(ledger);
  const { compared } = await verifyLedger(ledger, NO_WAIT);
  const dryRun = await reconciled(ledger, list, { isDryRun: true });
  expect(dryRun.toSorted()).toEqual(expected.toSorted());
  expect(await leases(ledger)).toEqual(before);
  expect((await verifyLedger(ledger, NO_WAIT)).compared).toEqual(compared);

  expect((await reconciled(ledger, list)).toSorted()).toEqual(expected.toSorted());
  expect(await leases(ledger)).toEqual([
    ['gone', null, 'ended'],
    ['kept', 'K', 'open'],
    ['nameless', 'N', 'open'],
    ['longer', 'L', 'open'],
    ['unseen', 'U', 'open'],
  ]);
  expect(await budgetEntries(ledger, 1n)).toEqual([DAY, -DAY]);
  expect(await budgetEntries(ledger, 4n)).toEqual([DAY, 2n * DAY]);
  const [details] = await leaseDetails(ledger, 1n, NO_WAIT);
  expect(details?.entries.at(-1)).toMatchObject({
    operation: 'reconcile',
    who: 'operator',
    reason: 'a test',
  });

  expect(await reconciled(ledger, list)).toEqual([
    ['left', 'whose', 'X', "can't be recorded: the list does not say whose it is"],
  ]);
});

describe('a lease is released', () => {
  it('only if it was recorded before the list can have been made', async () => {
    const ledger = await open();
    await recordLease(ledger, { name: 'a' });
    now = '2026-11-21T10:00:29Z';
    const note = 'not in the list, which may be older than the lease';
    expect(await reconciled(ledger, [], { olderThan: 3600n })).toEqual([['left', 'a', null, note]]);
    now = '2026-11-21T10:00:30Z';
    expect(await reconciled(ledger, [], { olderThan: 3600n })).toEqual([['released', 'a', null, null]]);
  });

  it('only in the projects and the region of the list', async () => {
    const ledger = await open();
    await recordLease(ledger, { name: 'here', region: 'R' });
    await recordLease(ledger, { name: 'there', region: 'S' });
    await recordLease(ledger, { name: 'other', region: 'R', projectId: 'ocean' });
    const options = { region: 'R', projectIds: new Set(['climate']) };
    expect(await reconciled(ledger, [], options)).toEqual([['released', 'here', null, null]]);
  });

  it('only if it has not ended', async () => {
    const ledger = await open();
    await recordLease(ledger, { name: 'a' });
    now = '2026-12-02T00:00:00Z';
    expect(await reconciled(ledger, [])).toEqual([]);
  });

  it('and charged for its use until then', async () => {
    const ledger = await open();
    await recordLease(ledger, { name: 'a' });
    now = '2026-12-01T18:00:00Z';
    await reconciled(ledger, []);
    expect(await budgetEntries(ledger, 1n)).toEqual([DAY, -DAY / 4n]);
  });
});

describe('a lease without an id', () => {
  const NOW_ONE = [
    ['a', null, 'ended'],
    ['a', 'A', 'open'],
  ];
  it('is told apart from a lease of the same name by its end date', async () => {
    const ledger = await open();
    await recordLease(ledger, { name: 'a' });
    await recordLease(ledger, { name: 'a', end: '2026-12-03' });
    const list = [listedLease({ id: 'A', name: 'a', end: '2026-12-03' })];
    expect((await reconciled(ledger, list)).toSorted()).toEqual([
      ['identified', 'a', 'A', null],
      ['released', 'a', null, null],
    ]);
    expect(await leases(ledger)).toEqual(NOW_ONE);
  });

  it('is left unchanged if it is ambiguous, and identified by its owner if the list has that', async () => {
    const ledger = await open();
    await recordLease(ledger, { name: 'a' });
    await recordLease(ledger, { name: 'a', userId: 'bob' });
    const unclear = [listedLease({ id: 'A', name: 'a' })];
    expect(await reconciled(ledger, unclear)).toMatchObject([
      ['left', 'a', 'A', expect.stringContaining('it may be several leases')],
    ]);
    const clear = [listedLease({ id: 'A', name: 'a', projectId: 'climate', userId: 'bob' })];
    expect((await reconciled(ledger, clear)).toSorted()).toEqual([
      ['identified', 'a', 'A', null],
      ['released', 'a', null, null],
    ]);
    expect(await leases(ledger)).toEqual(NOW_ONE);
  });
});

describe('different dates', () => {
  it('are charged by the reservations of the lease if the list has them', async () => {
    const ledger = await open();
    await recordLease(ledger, { name: 'a', leaseId: 'A' });
    const lease = listedLease({ id: 'A', name: 'a', end: '2026-12-05', ...WHOLE });
    await reconciled(ledger, [lease]);
    expect(await budgetEntries(ledger, 1n)).toEqual([DAY, 3n * DAY]);
  });

  it('return what the lease no longer needs, and nothing that was used', async () => {
    const ledger = await open();
    await recordLease(ledger, { name: 'a', leaseId: 'A', end: '2026-12-05' });
    now = '2026-12-02T00:00:00Z';
    await reconciled(ledger, [listedLease({ id: 'A', name: 'a', end: '2026-12-03' })]);
    expect(await budgetEntries(ledger, 1n)).toEqual([4n * DAY, -2n * DAY]);
  });

  it.each([{ start: '2025-12-01' }, { end: '2028-02-01' }])(
    'are left unchanged if the budget is not valid at that time: %j',
    async (dates) => {
      const ledger = await open();
      await recordLease(ledger, { name: 'a', leaseId: 'A' });
      expect(await reconciled(ledger, [listedLease({ id: 'A', name: 'a', ...dates })])).toMatchObject([
        ['left', 'a', 'A', expect.stringContaining('its budget is not valid then')],
      ]);
    },
  );

  it('reopen a lease that ended before the list, and leave one that may have ended since', async () => {
    const ledger = await open();
    const identity = await recordLease(ledger, { name: 'a', leaseId: 'A' });
    await endLease(ledger, identity);
    const list = [listedLease({ id: 'A', name: 'a' })];
    expect(await reconciled(ledger, list, { olderThan: 60n })).toMatchObject([
      ['left', 'a', 'A', 'it ended at 2026-11-21T09:00:30Z; the list may be older'],
    ]);
    now = '2026-11-21T09:02:00Z';
    expect(await reconciled(ledger, list, { olderThan: 60n })).toEqual([
      ['corrected', 'a', 'A', 'it had ended'],
    ]);
    expect(await leases(ledger)).toEqual([['a', 'A', 'open']]);
    expect(await budgetEntries(ledger, 1n)).toEqual([DAY, -DAY, DAY]);
  });
});

describe('a lease from the list', () => {
  const lease = listedLease({ id: 'U', name: 'u', ...WHOLE });

  it('is charged from now on', async () => {
    const ledger = await open();
    now = '2026-12-01T12:00:00Z';
    await reconciled(ledger, [lease]);
    expect(await budgetEntries(ledger, 1n)).toEqual([DAY / 2n]);
  });

  it('is recorded even over a limit, which is reported', async () => {
    const ledger = await open();
    const strict: Claimant = {
      ...CLAIMANT,
      claims: () => [
        { kind: 'held', account: 'max_leases/project', amount: 1n, limit: 0n, refuse: () => 'Too many.' },
      ],
    };
    expect(await reconciled(ledger, [lease], { claimants: [strict] })).toEqual([
      ['recorded', 'u', 'U', 'Too many.'],
    ]);
    expect(await leases(ledger)).toEqual([['u', 'U', 'open']]);
  });

  it('is not recorded if its cost cannot be determined', async () => {
    const ledger = await open();
    const broken = () => {
      throw new TypeError('no factor');
    };
    for (const [claims, note] of [
      [() => ({ allowed: false, message: 'No size.' }) as const, 'No size.'],
      [broken, 'no factor'],
    ] as const) {
      const claimants = [{ ...CLAIMANT, claims }];
      expect(await reconciled(ledger, [lease], { claimants })).toEqual([['left', 'u', 'U', note]]);
    }
    expect(await leases(ledger)).toEqual([]);
  });

  it('is not recorded for exempt or other projects, without filters, or without its reservations', async () => {
    const ledger = await open();
    expect(await reconciled(ledger, [lease], { exemptProjects: ['climate'] })).toEqual([]);
    expect(await reconciled(ledger, [lease], { projectIds: new Set(['ocean']) })).toEqual([]);
    expect(await reconciled(ledger, [lease], { claimants: [] })).toMatchObject([
      ['left', 'u', 'U', expect.stringContaining('no enabled filter')],
    ]);
    expect(await reconciled(ledger, [{ ...lease, reservations: undefined }])).toMatchObject([
      ['left', 'u', 'U', expect.stringContaining('does not say what it reserves')],
    ]);
    expect(await leases(ledger)).toEqual([]);
  });
});

it('leases without an id that were renamed stay charged, whatever their names in the list; the most expensive one stays if it is ambiguous', async () => {
  const ledger = await open();
  for (const [name, hosts] of [
    ['a', 4n],
    ['b', 1n],
  ] as const) {
    const claimant = {
      ...CLAIMANT,
      claims: (...asked: Parameters<Claimant['claims']>) =>
        (CLAIMANT.claims(...asked) as Claim[]).map((claim) =>
          claim.kind === 'usage' ? { ...claim, perSecond: hosts * claim.perSecond } : claim,
        ),
    };
    await recordLease(ledger, { name, claimant });
  }
  // Lease a was renamed to b; the lease that had that name was never created.
  expect(await reconciled(ledger, [listedLease({ id: 'A', name: 'b' })])).toMatchObject([
    ['released', 'b', null, null],
    ['identified', 'a', 'A', null],
  ]);
  expect(await budgetEntries(ledger, 1n)).toEqual([4n * DAY]);
  expect(await budgetEntries(ledger, 2n)).toEqual([DAY, -DAY]);
});
