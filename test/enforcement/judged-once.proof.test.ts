/** A lease that is judged in the transaction that records it, beside one that is checked before: the same answers, the same ledger. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { CheckOptions } from '../../src/index.ts';
import { onLedger } from '../filters/on-ledger.ts';
import { filterSource } from '../support/filter-folder.ts';
import '../support/properties.ts';
import { newLedger } from '../support/ledgers.ts';
import { createHost } from '../support/requests.ts';

const places = (name: string, claims: string) => `import { LedgerFilter, reject } from 'blazar-enforcement';
export class ${name} extends LedgerFilter {
  claims({ reservations, start }) { const most = BigInt(reservations[0].max ?? 1); ${claims} }
}
void reject;
`;
const FILES = {
  PlacesFilter: places(
    'PlacesFilter',
    "return [{ kind: 'held', account: 'places', amount: most, limit: 5n, refuse: ({ taken }) => taken + ' taken' }];",
  ),
  OddFilter: places('OddFilter', "return most === 3n ? reject('three') : [];"),
  BrokenFilter: places('BrokenFilter', "if (most === 4n) { throw new Error('four'); } return [];"),
  StrictFilter: filterSource('StrictFilter', {
    create: "return lease.name === 'b' ? reject('b') : allow();",
  }),
  ShortenFilter: filterSource('ShortenFilter', {
    create: "return lease.name === 'c' ? allow({ ...lease, end_date: '2026-12-01 10:00' }) : allow();",
  }),
};
const NAMES = ['MaxLeasesFilter', 'UsageBudgetFilter', ...Object.keys(FILES)];

interface Asked {
  readonly name: string;
  readonly days: number;
  readonly hosts: number;
  readonly key: string | undefined;
  readonly acceptsChanges: boolean;
}

const requests = fc.array(
  fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    days: fc.integer({ min: 1, max: 9 }),
    hosts: fc.integer({ min: 1, max: 4 }),
    key: fc.constantFrom(undefined, undefined, 'k1', 'k2'),
    acceptsChanges: fc.boolean(),
  }),
  { minLength: 3, maxLength: 8 },
);

const requestOf = ({ name, days, hosts }: Asked) =>
  createHost({
    name,
    end_date: `2026-12-0${days} 19:00`,
    reservations: [{ resource_type: 'physical:host', min: 1, max: hosts }],
  });

it('gives the same answers and the same ledger as a lease that is checked first', {
  timeout: 1_200_000,
}, async () => {
  const chains = fc
    .tuple(fc.shuffledSubarray(NAMES, { minLength: 1 }), fc.subarray(NAMES, { maxLength: 2 }))
    .map(([enabled, audited]) => ({
      enabled: enabled.filter((name) => !audited.includes(name)),
      options: { audit_filters: audited, max_leases_per_project: 3 },
      files: FILES,
    }))
    .filter(({ enabled }) => enabled.length > 0);
  await fc.assert(
    fc.asyncProperty(chains, requests, async (setup, asked) => {
      const run = async (options: CheckOptions) => {
        const chain = await onLedger({ ...setup, connection: await newLedger() });
        await chain.budget({ amount: '300' });
        const answers = [];
        for (const one of asked) {
          const { key: idempotencyKey, acceptsChanges } = one;
          const { allowed, message, filter, lease, outcomes } = await chain.enforcement.checkCreate(
            requestOf(one),
            { ...options, idempotencyKey, acceptsChanges },
          );
          const audited = outcomes
            .filter(({ audit }) => audit)
            .map((outcome) => [outcome.filter, outcome.message]);
          answers.push({ allowed, message, filter, lease, audited: audited.sort() });
        }
        await chain.enforcement.close();
        const leases = chain
          .leases()
          .map(({ name, state, ends_at, claims }) => ({ name, state, ends_at, claims }));
        return { answers, balances: chain.balances(), leases };
      };
      expect(await run({})).toEqual(await run({ explain: true }));
    }),
    { numRuns: 40 },
  );
});
