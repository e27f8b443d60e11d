/** Whatever a user sends as a text gets the same answer on both databases, and is never an outage. */

import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { MaxLeasesFilter } from '../../filters/max-leases-filter.ts';
import { NO_KEYSTONE } from '../../src/enforcement/keystone.ts';
import { createSharedServices } from '../../src/enforcement/services.ts';
import type { Context, Lease } from '../../src/index.ts';
import { claimantOf } from '../../src/ledger/lease-request.ts';
import { ChainOutbox } from '../../src/ledger/outbox/chain-outbox.ts';
import type { ListedLease } from '../../src/ledger/reconciliation/leases.ts';
import { reconcileList } from '../../src/ledger/reconciliation/reconcile.ts';
import { ChainLedger } from '../../src/ledger/service.ts';
import { ANY_CHARACTER } from '../support/characters.ts';
import { DIALECTS, NO_WAIT, newLedgers, openedLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { leaseOf } from './fixture.ts';
import { by, LIST_TERMS } from './recorded-leases.ts';

const newLedger = newLedgers();
const clock = { now: () => new Date('2026-11-21T09:00:30Z') };

async function newChain(dialect: (typeof DIALECTS)[number]) {
  const connection = await newLedger(dialect);
  const failed: string[] = [];
  const observer = {
    transacted: (operation: string, outcome: string) => void (outcome === 'failed' && failed.push(operation)),
  };
  const logger = recordingLogger();
  const options = { connection, commit: 'check', timeout: 10, pool_size: 2 } as const;
  const chain = new ChainLedger(options, { clock, logger, observer });
  onTestFinished(() => chain.close());
  await chain.open();
  const services = {
    ...createSharedServices({ clock, logger }),
    ledger: chain,
    outbox: new ChainOutbox({ ledger: chain, logger, observer }),
    keystone: NO_KEYSTONE,
  };
  const filter = new MaxLeasesFilter(
    MaxLeasesFilter.options.parse({ max_leases_per_user: 3 }) as never,
    services,
  );
  const answer = async (context: Context, lease: Lease) => {
    const claimants = [claimantOf(filter, 'MaxLeasesFilter', false)];
    const checked = await chain.check(filter, { context, lease }, {});
    const { refusal } = await chain.commit({ context, lease }, claimants, by('create'), NO_WAIT);
    await chain.end({ context, lease }, {});
    return { checked, refusal };
  };
  return { connection, answer, failed };
}

const text = fc.oneof(
  fc.string({ unit: ANY_CHARACTER, maxLength: 20 }),
  fc.string({
    unit: fc.constantFrom('\0', '\ud83e', '\udd5e', '\u0301', "'", '\\', '🧪', '\u202e', '$1', '%'),
  }),
  fc
    .tuple(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 3 }), fc.integer({ min: 1, max: 4000 }))
    .map(([unit, times]) => unit.repeat(times)),
  fc.constantFrom('__proto__', 'constructor', 'x'.repeat(255), '研'.repeat(255), 'x'.repeat(256)),
);

it('is answered alike, and breaks nothing', async () => {
  const chains = await Promise.all(DIALECTS.map(newChain));
  await fc.assert(
    fc.asyncProperty(
      text,
      text,
      fc.constantFrom('id', 'name', 'user', 'project', 'region', 'type'),
      async (one, rest, where) => {
        const at = (name: string, plain: string) => (where === name ? one : plain);
        const context = {
          user_id: at('user', 'alice'),
          project_id: at('project', 'climate'),
          region_name: at('region', rest.slice(0, 5)),
        };
        const reservations = [{ resource_type: at('type', 'physical:host'), min: 1, max: 1, amount: 1 }];
        const lease = { ...leaseOf({ id: at('id', 'lease') }), name: at('name', 'run'), reservations };
        const [first, second] = await Promise.all(chains.map(({ answer }) => answer(context, lease)));
        expect(second).toEqual(first);
        expect(JSON.stringify(first)).not.toContain('cannot be read or written');
      },
    ),
    { numRuns: 60 },
  );
  expect(chains.map(({ failed }) => failed)).toEqual([[], []]);
});

it('of one lease stops no reconciling of the others', async () => {
  const all = {
    start: 1_800_000_000_000_000n,
    end: 1_800_000_360_000_000n,
    projectId: 'climate',
    userId: 'alice',
  };
  const lease = (id: string, rest: Partial<ListedLease> = {}): ListedLease => ({
    ...all,
    id,
    name: id.slice(0, 9),
    reservations: [{ resource_type: 'physical:host' }],
    ...rest,
  });
  const listed = [
    lease('named', { name: 'a\0b' }),
    lease('long', { name: 'x'.repeat(4000) }),
    lease('a\0b'),
    lease('x'.repeat(4000)),
    lease('whose', { userId: 'a\0b' }),
    lease('where', { projectId: 'x'.repeat(4000) }),
    lease('what', { reservations: [{ resource_type: 'a\0b' }] }),
    lease('good'),
  ];
  const said = [];
  for (const dialect of DIALECTS) {
    const ledger = await openedLedger(await newLedger(dialect));
    const outcomes: [string, string | null][] = [];
    // Twice: what is recorded once is found again under the name that is kept.
    for (let time = 0; time < 2; time += 1) {
      for await (const { outcome, leaseId, note } of reconcileList(ledger, listed, LIST_TERMS, NO_WAIT)) {
        outcomes.push([`${outcome} ${leaseId?.slice(0, 9)}`, note]);
      }
    }
    said.push(outcomes);
  }
  expect(said[1]).toEqual(said[0]);
  expect(said[0]?.filter(([what]) => what.startsWith('recorded')).map(([what]) => what)).toEqual([
    'recorded named',
    'recorded long',
    'recorded good',
  ]);
  expect(said[0]?.filter(([what]) => what.startsWith('left'))).toHaveLength(10);
});
