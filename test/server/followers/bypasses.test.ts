import { describe, expect, it } from 'vitest';
import { decisionRecordSchema } from '../../../src/decisions/record.ts';
import { bypassRecord } from '../../../src/decisions/review-record.ts';
import type { Settlement } from '../../../src/ledger/reconciliation/settle-cluster.ts';
import { Bypasses } from '../../../src/server/followers/skypilot-follower.ts';
import type { ClusterChange } from '../../../src/skypilot/charging/follow.ts';

const NOBODY_ASKED: Settlement = {
  outcome: 'recorded',
  row: 1n,
  projectId: 'ml',
  userId: 'eve',
  exceeded: undefined,
  hasLostAutostop: false,
};
const NO_AUTOSTOP: Settlement = { ...NOBODY_ASKED, outcome: 'continued', hasLostAutostop: true };

function change(settlement: Settlement | undefined, changes: Partial<ClusterChange> = {}): ClusterChange {
  const place = { limit: 'UsageBudgetPolicy', workspace: 'ml', cluster: 'train', startedAt: 0n };
  return { ...place, settlement, error: undefined, ...changes };
}

describe('what got past policies', () => {
  it('is one event for all policies, with the limit that is exceeded', () => {
    const found = new Bypasses();
    found.add(change(NOBODY_ASKED));
    found.add(change({ ...NOBODY_ASKED, exceeded: 'too much' }, { limit: 'GpuQuotaPolicy' }));
    expect(found.all).toEqual([
      {
        kind: 'undecided',
        workspace: 'ml',
        cluster: 'train',
        startedAt: 0n,
        userId: 'eve',
        policies: ['UsageBudgetPolicy', 'GpuQuotaPolicy'],
        exceeded: 'too much',
      },
    ]);
  });

  it('is two events for a cluster that nobody was asked about and that lost autostop', () => {
    const found = new Bypasses();
    found.add(change({ ...NOBODY_ASKED, hasLostAutostop: true }));
    expect(found.all.map(({ kind }) => kind)).toEqual(['undecided', 'autostop-off']);
  });

  it.each<[string, ClusterChange]>([
    ['goes on', change({ ...NOBODY_ASKED, outcome: 'continued' })],
    ['has ended', change({ ...NOBODY_ASKED, outcome: 'ended' })],
    [
      'is up beyond a limit after a decision',
      change({ ...NOBODY_ASKED, outcome: 'continued', exceeded: 'a' }),
    ],
    ['cannot be read', change(undefined, { error: 'unreadable' })],
  ])('is not a cluster that %s', (_, one) => {
    const found = new Bypasses();
    found.add(one);
    expect(found.all).toEqual([]);
  });

  it('is told once if a round was cut off between two policies', () => {
    const first = new Bypasses();
    first.add(change(NO_AUTOSTOP));
    const second = new Bypasses(first.keys);
    second.add(change(NO_AUTOSTOP, { limit: 'GpuQuotaPolicy' }));
    second.add(change(NO_AUTOSTOP, { limit: 'GpuQuotaPolicy', cluster: 'other' }));
    expect(second.all.map(({ cluster }) => cluster)).toEqual(['other']);
  });

  it('keeps clusters of hostile names apart', () => {
    const found = new Bypasses();
    found.add(change(NOBODY_ASKED, { workspace: '__proto__', cluster: 'a"]' }));
    found.add(change(NOBODY_ASKED, { workspace: '__proto__', cluster: 'a' }));
    expect(found.all).toHaveLength(2);
  });

  it('makes records that the log can be read with, whatever SkyPilot sends', () => {
    const names = { workspace: 'w'.repeat(10_000), cluster: '\u202e\0'.repeat(5000), userId: '' };
    const events = {
      kind: 'autostop-off',
      startedAt: undefined,
      policies: [],
      exceeded: 'x'.repeat(9000),
    } as const;
    const record = bypassRecord({ ...names, ...events }, new Date(0), 3);
    expect(decisionRecordSchema.parse(JSON.parse(JSON.stringify(record)))).toEqual(record);
    expect(record).toMatchObject({ user_id: null, filter: null, generation: 3, allowed: true });
    expect(record.lease_name).toHaveLength(256);
    expect(record.message).toHaveLength(2001);
  });
});
