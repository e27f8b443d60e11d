import { expect, it } from 'vitest';
import { MAX_AMOUNT } from '../../../src/filter/claim.ts';
import { type Lease, reject } from '../../../src/index.ts';
import { setBudget } from '../../../src/ledger/budgets/budgets.ts';
import { NO_WAIT } from '../../support/ledgers.ts';
import { type LedgerFixtures, leaseOf } from '../fixture.ts';
import { by } from '../recorded-leases.ts';

const TEXTS = [
  ['__proto__', '__proto__'],
  ['constructor', 'constructor'],
  ['quotes', `'; DROP TABLE leases; -- "\\" \` $1 ? :a %_`],
  ['emoji', '🧪\u202e‮Ünïcode'],
  ['white space', ' \t\r\n'],
  ['JSON', '["usage_budget/1","5"]'],
] as const;

/** Names that are meant to break something, and numbers that are too large. */
export function withstanding(fixtures: LedgerFixtures): void {
  it.each(TEXTS)('accepts %s as a project, a user, a name, an id and a resource type', async (_, text) => {
    const fixture = await fixtures({ projectId: `${text}${Math.random()}`, mostPerUser: 1, budget: '30' });
    const reservations = [
      { resource_type: 'physical:host', min: 1, max: 1 },
      { resource_type: text, amount: 1 },
    ];
    const lease: Lease = { ...leaseOf(), name: text, reservations };
    const { lease: row } = await fixture.create(lease, text, { key: 'k1' });
    expect((await fixture.create(lease, text, { key: 'k1' })).lease).toBe(row);
    expect((await fixture.create({ ...lease, id: text }, text, { adopts: true })).lease).toBe(row);
    const other = await fixture.create({ ...lease, name: `${text}!` }, text);
    expect(other.refusal?.filter).toBe('MaxLeasesFilter');
    expect((await fixture.update({ ...lease, id: text }, { end_date: '2026-12-02 06:00' }, text)).lease).toBe(
      row,
    );
    await fixture.end({ ...lease, id: text, end_date: '2026-12-02 06:00' }, text);
    expect((await fixture.rows('leases')).map(({ state }) => state)).toEqual(['ended']);
    expect((await fixture.rows('accounts')).map(({ balance }) => balance)).toEqual([
      0n,
      0n,
      0n,
      0n,
      0n,
      0n,
      0n,
    ]);
  });

  it('accepts a name of 64 KB', async () => {
    const fixture = await fixtures({ most: 1 });
    const name = Array.from({ length: 4096 }, (_, index) =>
      `${(index * 2654435761) % 2 ** 32}`.padEnd(16),
    ).join('');
    expect((await fixture.create(leaseOf({ name }))).refusal).toBeUndefined();
    await fixture.end(leaseOf({ id: 'A', name }));
    expect(await fixture.count()).toBe(0n);
  });

  it.each([
    ['a NUL', 'a\0b', 'expected a text without NUL and without halves of surrogate pairs'],
    [
      'half an emoji',
      'lone \ud83e half',
      'expected a text without NUL and without halves of surrogate pairs',
    ],
    ['4,000 characters', 'x'.repeat(4000), 'expected at most 255 characters, got 4000'],
  ])('refuses %s in every text that it stores, and names the field', async (what, text, mistake) => {
    const fixture = await fixtures({ most: 1 });
    const before = await fixture.everything();
    const whole = leaseOf({ id: 'A' });
    const reservations = [{ resource_type: text, amount: 1 }];
    const asked = [
      ['context.user_id', whole, { user_id: text }],
      ['context.project_id', whole, { project_id: text }],
      ['context.region_name', whole, { region_name: text }],
      ['lease.id', { ...whole, id: text }, {}],
      ['lease.reservations[0].resource_type', { ...whole, reservations }, {}],
      ...(what === '4,000 characters' ? [] : [['lease.name', { ...whole, name: text }, {}] as const]),
    ] as const;
    for (const [field, lease, change] of asked) {
      const request = { context: { ...fixture.context(), ...change }, lease };
      const message = `The lease cannot be recorded: ${field}: ${mistake}.`;
      const { refusal } = await fixture.chain.commit(request, fixture.claimants, by('create'), NO_WAIT);
      expect(refusal).toEqual({ filter: 'MaxLeasesFilter', message });
      expect(await fixture.chain.check(fixture.countFilter, request, {})).toEqual(reject(message));
      await fixture.chain.end(request, {});
    }
    expect(await fixture.everything()).toEqual(before);
    expect((await fixture.create(leaseOf({ name: 'a' }))).refusal).toBeUndefined();
  });

  it('counts the largest amounts to the last digit', async () => {
    const fixture = await fixtures();
    const { project: projectId } = fixture;
    const valid = { validFrom: 0n, validUntil: 4_000_000_000n };
    const budget = { projectId, userId: null, ...valid, amount: MAX_AMOUNT };
    await setBudget(fixture.ledger, budget, { who: 'operator', reason: null }, NO_WAIT);
    // 2^63 - 1 millionths of a unit and seconds are 9,223,372,036,854 seconds of a unit, and a bit.
    const hosts = 9_223_372;
    const seconds = { from: '2026-12-01 00:00', until: '2026-12-12 13:46:40' };
    expect((await fixture.create(leaseOf({ hosts, ...seconds }))).refusal).toBeUndefined();
    const [entry] = (await fixture.rows('entries')).slice(-1);
    expect(entry?.delta).toBe(9_223_372_000_000_000_000n);
    const more = leaseOf({ name: 'more', hosts: 37, until: '2026-12-01 00:16:40' });
    expect((await fixture.create(more)).refusal?.filter).toBe('UsageBudgetFilter');
    const rest = leaseOf({ name: 'rest', hosts: 36, until: '2026-12-01 00:16:40' });
    expect((await fixture.create(rest)).refusal).toBeUndefined();
    const account = (await fixture.rows('accounts')).find(({ name }) => name.startsWith('usage_budget/'));
    expect(account?.balance).toBe(9_223_372_036_000_000_000n);
  });

  it.each([false, true])(
    'refuses an amount that no database holds, by its filter (audit: %s)',
    async (audit) => {
      const fixture = await fixtures({ budget: 'none', audit, mayOverdraw: true });
      const years = { from: '2026-12-01 00:00', until: '2027-12-31 00:00' };
      const before = await fixture.everything();
      for (const hosts of [300_000, Number.MAX_SAFE_INTEGER]) {
        const { refusal, warnings } = await fixture.create(leaseOf({ id: `${hosts}`, hosts, ...years }));
        const said = audit ? warnings : [refusal];
        expect(said.map((one) => one?.filter)).toEqual(['UsageBudgetFilter']);
        expect(said[0]?.message).toMatch(/takes more than can be counted/);
      }
      if (audit) {
        expect(await fixture.count()).toBe(2n);
        // Each of them would do; their sum would not.
        const large = leaseOf({ hosts: 200_000, ...years });
        for (const expected of [/has no budget/, /takes more than can be counted/]) {
          expect((await fixture.create(large)).warnings.map(({ message }) => message)).toEqual([
            expect.stringMatching(expected),
          ]);
        }
        await fixture.end({ ...large, id: 'A' });
      } else {
        expect(await fixture.everything()).toEqual(before);
      }
    },
  );
}
