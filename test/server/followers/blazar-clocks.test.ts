/** A clock that is set while the ledger is compared with Blazar releases nothing that Blazar lists. */
import { describe, expect, it } from 'vitest';
import { type Answer, RecordedBlazar } from './recorded-blazar.ts';

/** In seconds. */
const SET = { ahead: 54 * 60, back: -54 * 60 } as const;
/** Half an hour before the end of one of the recorded leases. */
const BEFORE_END = '2030-01-01T11:30:00Z';
const PATHS = ['/v1/leases', '/v1/os-hosts/allocations', '/v1/os-hosts'] as const;

function shifted(date: string, seconds: number): string {
  return new Date(Date.parse(date) + seconds * 1000).toISOString();
}

/** Leases that the ledger knows by their ids. Blazar's clock is right, whatever ours says from now on. */
async function comparedWorld(now: string): Promise<RecordedBlazar> {
  const blazar = await RecordedBlazar.asked();
  await blazar.round();
  blazar.now = now;
  const { status, headers, body } = blazar.answers.get('/v1/leases') as Answer;
  blazar.answers.set('/v1/leases', {
    status,
    body,
    headers: { ...headers, date: new Date(now).toUTCString() },
  });
  await blazar.round();
  return blazar;
}

const openIds = async (blazar: RecordedBlazar) => (await blazar.open()).map(({ lease_id }) => lease_id);

describe.each(PATHS)('a clock that is set while Blazar is asked for %s', (path) => {
  it.each(Object.entries(SET))('and goes %s, releases no lease', async (_, seconds) => {
    const blazar = await comparedWorld(BEFORE_END);
    const before = await openIds(blazar);
    const taken = await blazar.taken();
    blazar.before = async (asked) => {
      if (asked === path) {
        blazar.now = shifted(BEFORE_END, seconds);
      }
    };
    const { changes } = await blazar.round();
    expect(changes).toEqual([]);
    expect(await openIds(blazar)).toEqual(before);
    expect(await blazar.taken()).toBe(taken);
  });
});

it('a lease that Blazar goes on with past the end that the ledger has is charged until its new end', async () => {
  const blazar = await comparedWorld(BEFORE_END);
  const taken = await blazar.taken();
  const [lease] = blazar.leases.filter(({ end_date }) => end_date === '2030-01-01T12:00:00.000000');
  const others = blazar.leases.filter((one) => one !== lease);
  // Nobody has asked, nobody has looked meanwhile, and nothing else has happened in the project.
  Object.assign(lease ?? {}, { end_date: '2030-01-01T18:00:00.000000' });
  blazar.now = '2030-01-01T13:00:00Z';
  const { changes } = await blazar.round();
  expect(changes).toEqual([expect.stringMatching(/^corrected #\d+: Blazar has changed it without asking$/)]);
  expect(await openIds(blazar)).toEqual([...others, lease].map((one) => one?.id).sort());
  // 3 hosts, and 3 instances that cost a tenth each.
  expect(await blazar.taken()).toBeCloseTo(taken + 6 * 3.3);
  expect((await blazar.round()).changes).toEqual([]);
});

it('a lease of which the ledger has not heard is recorded beside one without an id that began with it and is over', async () => {
  const blazar = await comparedWorld('2030-01-01T02:00:00Z');
  const [lease] = blazar.leases;
  const ofDora = { ...lease, user_id: 'dora', id: 'dora-1', created_at: '2026-11-20 00:00:00' };
  await blazar.ask(ofDora, '2026-11-22T09:00:00Z', { end_date: '2030-01-01 01:00' });
  blazar.leases.push(ofDora);
  const { changes } = await blazar.round();
  expect(changes).toEqual(['recorded #5: Blazar has it, and the ledger had not']);
});
