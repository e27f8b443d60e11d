import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Claim, MAX_AMOUNT, type Shortage } from '../../../src/filter/claim.ts';
import {
  type Alternative,
  chargedBy,
  recordedAs,
  refundOf,
} from '../../../src/ledger/accounting/alternatives.ts';
import {
  type ChargeInput,
  type Claimed,
  calculateCharge,
  type FilterClaims,
} from '../../../src/ledger/accounting/charge-calculation.ts';
import type { RecordedClaim } from '../../../src/ledger/accounting/recorded-claim.ts';

function held(account: string, amount: bigint, limit?: bigint): Claim {
  return { kind: 'held', account, amount, limit, refuse };
}

function used(account: string, perSecond: bigint, from: bigint, until: bigint, limit?: bigint): Claim {
  return { kind: 'usage', account, perSecond, from, until, limit, refuse };
}

function refuse({ asked, left, taken, isUpdate }: Shortage): string {
  return `asked ${asked}, left ${left}, taken ${taken}${isUpdate ? ', update' : ''}`;
}

function by(filter: string, claims: readonly Claim[], audit = false): FilterClaims {
  return { filter, audit, claims, refusal: undefined };
}

const SHAPE = { start: 0n, end: 10n, demand: 'one host' };

function claimed(...byFilter: FilterClaims[]): Claimed {
  return { ...SHAPE, byFilter };
}

function taken(claims: readonly RecordedClaim[]): Alternative {
  return { ...SHAPE, claims };
}

function input(claims: readonly Claim[], more: Partial<ChargeInput> = {}): ChargeInput {
  return {
    now: 0n,
    wanted: [claimed(by('F', claims))],
    recorded: [],
    current: undefined,
    staysOpen: false,
    countsAreSeen: true,
    isOver: false,
    begun: undefined,
    shownStart: undefined,
    isUpdate: false,
    returned: new Map(),
    balances: new Map(),
    ...more,
  };
}

describe('calculateCharge', () => {
  it('lets a lease take all that is left, and no more', () => {
    const balances = new Map([['a', 7n]]);
    expect(calculateCharge(input([held('a', 3n, 10n)], { balances })).refusal).toBeUndefined();
    const { refusal } = calculateCharge(input([held('a', 4n, 10n)], { balances }));
    expect(refusal).toMatchObject({ filter: 'F', message: 'asked 4, left 3, taken 7' });
  });

  it('counts several claims on one account together', () => {
    const claims = [held('a', 3n, 5n), used('a', 1n, 0n, 3n, 5n)];
    expect(calculateCharge(input(claims)).refusal?.message).toBe('asked 6, left 5, taken 0');
  });

  it('refuses nothing without a limit, and nothing that costs nothing', () => {
    const balances = new Map([['a', 100n]]);
    expect(calculateCharge(input([held('a', 1n)], { balances })).refusal).toBeUndefined();
    expect(calculateCharge(input([held('a', 0n, 0n)], { balances })).refusal).toBeUndefined();
  });

  it('reports 0 left, never less, when more is taken than the limit', () => {
    const { refusal } = calculateCharge(input([held('a', 1n, 10n)], { balances: new Map([['a', 12n]]) }));
    expect(refusal?.message).toBe('asked 1, left 0, taken 12');
  });

  it('counts what leases past their end give back', () => {
    const balances = new Map([['a', 10n]]);
    const returned = new Map([['a', 4n]]);
    expect(calculateCharge(input([held('a', 4n, 10n)], { balances, returned })).refusal).toBeUndefined();
    const { refusal, deltas } = calculateCharge(input([held('a', 5n, 10n)], { balances, returned }));
    expect(refusal?.message).toBe('asked 5, left 4, taken 6');
    // What is returned is for somebody else to post.
    expect(deltas).toEqual(new Map([['a', 5n]]));
  });

  it('refuses by the first enforced filter, and warns for all audited ones', () => {
    const wanted = [
      by('Tried', [held('a', 1n, 0n), held('b', 1n, 0n)], true),
      { filter: 'Unsure', audit: true, claims: [], refusal: 'It does not say.' },
      by('First', [held('c', 1n, 0n)]),
      by('Second', [held('d', 1n, 0n)]),
    ];
    const { refusal, warnings } = calculateCharge(input([], { wanted: [claimed(...wanted)] }));
    expect(refusal?.filter).toBe('First');
    expect(warnings.map(({ filter }) => filter)).toEqual(['Tried', 'Unsure']);
  });

  it('names each limit that a filter refuses for once, up to five, in their order', () => {
    const exceeded = [3n, 1n, 2n, 1n].map((limit, index) => held(`${index}`, 9n, limit));
    const messageFor = (claims: readonly Claim[]) => calculateCharge(input(claims)).refusal?.message;
    expect(messageFor([held('fits', 1n, 9n), ...exceeded, held('0', 1n, 1n)])).toBe(
      'asked 10, left 3, taken 0 asked 9, left 1, taken 0 asked 9, left 2, taken 0',
    );
    const many = Array.from({ length: 7 }, (_, index) => held(`${index}`, 9n, BigInt(index)));
    expect(messageFor(many)).toMatch(/^(asked 9, left [0-4], taken 0 ){5}And 2 more\.$/);
  });

  it('enforces every limit of an account that several filters use', () => {
    const shared = [
      by('Unlimited', [held('a', 1n)]),
      by('Tried', [held('a', 1n, 0n)], true),
      by('Enforced', [held('a', 1n, 9n), held('a', 1n, 1n)]),
    ];
    const { refusal, warnings } = calculateCharge(input([], { wanted: [claimed(...shared)] }));
    expect([refusal, ...warnings].map((one) => one?.filter)).toEqual(['Enforced', 'Tried']);
  });

  it('refuses what an enforced filter cannot compute, even if an audited one cannot either', () => {
    const unsure = (filter: string, audit: boolean) => ({
      filter,
      audit,
      claims: [],
      refusal: 'It does not say.',
    });
    const wanted: [Claimed] = [claimed(unsure('Tried', true), unsure('Enforced', false))];
    expect(calculateCharge(input([], { wanted })).refusal?.filter).toBe('Enforced');
  });

  it('judges an update by what it takes more', () => {
    const recorded = [taken([{ kind: 'usage', account: 'a', perSecond: 2n, from: 0n, until: 10n }])];
    const running = { now: 4n, recorded, isUpdate: true, begun: 4n, balances: new Map([['a', 20n]]) };
    const { refusal } = calculateCharge(input([used('a', 3n, 0n, 10n, 25n)], running));
    expect(refusal?.message).toBe('asked 6, left 5, taken 8, update');
    const { deltas, alternatives } = calculateCharge(input([used('a', 3n, 0n, 10n, 26n)], running));
    expect(deltas).toEqual(new Map([['a', 6n]]));
    expect(recordedAs(alternatives)).toEqual(
      recordedAs([taken([{ kind: 'usage', account: 'a', perSecond: 3n, from: 4n, until: 10n }])]),
    );
    // Over the limit already, and no larger.
    expect(calculateCharge(input([used('a', 2n, 0n, 10n, 5n)], running)).refusal).toBeUndefined();
    expect(calculateCharge(input([used('a', 2n, 0n, 11n, 5n)], running)).refusal?.message).toBe(
      'asked 2, left 0, taken 8, update',
    );
  });

  it('trusts the request about a lease that the ledger does not have', () => {
    const current = claimed(by('F', [used('a', 2n, 0n, 10n)]));
    const running = { now: 4n, current, isUpdate: true, begun: 4n };
    expect(calculateCharge(input([used('a', 2n, 0n, 10n, 0n)], running))).toMatchObject({
      refusal: undefined,
      deltas: new Map([['a', 12n]]),
    });
    expect(calculateCharge(input([used('a', 2n, 0n, 11n, 13n)], running)).refusal?.message).toBe(
      'asked 2, left 1, taken 0, update',
    );
  });

  it('changes every balance by exactly the difference', () => {
    const account = fc.constantFrom('a', 'b', 'c');
    const figure = fc.bigInt({ min: 0n, max: 100n });
    const claim = fc.oneof(
      fc.record({ account, amount: figure }).map(({ account, amount }) => held(account, amount)),
      fc
        .record({ account, perSecond: figure, from: figure, length: figure })
        .map(({ account, perSecond, from, length }) => used(account, perSecond, from, from + length)),
    );
    fc.assert(
      fc.property(fc.array(claim), fc.array(claim), figure, fc.boolean(), (wanted, before, now, hasBegun) => {
        const begun = hasBegun ? now : undefined;
        const recorded = [taken(before)];
        const { deltas, alternatives } = calculateCharge(
          input(wanted, { recorded, now, begun, isUpdate: true }),
        );
        const charged = chargedBy(alternatives);
        const returned = refundOf(recorded, now);
        for (const name of ['a', 'b', 'c']) {
          expect(deltas.get(name) ?? 0n).toBe((charged.get(name) ?? 0n) - (returned.get(name) ?? 0n));
          expect(deltas.get(name)).not.toBe(0n);
        }
        expect(alternatives[0].claims).toHaveLength(wanted.length);
        // The same once more changes nothing.
        const again = calculateCharge(input(wanted, { recorded: alternatives, now, begun, isUpdate: true }));
        expect(hasBegun ? [...again.deltas] : []).toEqual([]);
      }),
    );
  });

  it('charges a lease for its most expensive alternative on each account', () => {
    const current = claimed(by('F', [used('a', 2n, 0n, 10n, 100n), used('b', 1n, 0n, 5n, 100n)]));
    const { deltas, alternatives } = calculateCharge(
      input([used('a', 1n, 0n, 10n, 100n), used('b', 3n, 0n, 5n, 100n)], { current, isUpdate: true }),
    );
    expect(deltas).toEqual(
      new Map([
        ['a', 20n],
        ['b', 15n],
      ]),
    );
    expect(alternatives).toHaveLength(2);
    // Half of its time is over: what the moreExpensive one has used by then is used.
    expect(refundOf(alternatives, 5n)).toEqual(
      new Map([
        ['a', 10n],
        ['b', 0n],
      ]),
    );
  });

  it.each([
    ['has yet to begin', 4n, 4n],
    ['has begun later than it might have', 1n, 2n],
  ])('charges nothing for the time before the start of a lease that %s', (_, shownStart, tooMuch) => {
    const asked = (from: bigint, until: bigint) => claimed(by('F', [used('a', 2n, from, until)]));
    const begun = (start: bigint, until: bigint) => ({
      ...taken([{ kind: 'usage', account: 'a', perSecond: 2n, from: start, until }]),
      start,
    });
    const recorded = [begun(0n, 3n), begun(shownStart, shownStart + 4n)];
    const rest = asked(shownStart > 2n ? shownStart : 2n, shownStart + 4n);
    const wanted: [Claimed] = [rest];
    const update = { now: 2n, current: rest, wanted, recorded, isUpdate: true };
    expect(calculateCharge(input([], { ...update, shownStart })).deltas).toEqual(new Map());
    // The row may be another lease's: what that may have used stays charged.
    expect(calculateCharge(input([], update)).deltas).toEqual(new Map([['a', tooMuch]]));
  });

  it.each([
    ['costs as much', false, [used('a', 2n, 0n, 10n)]],
    ['costs less', false, [used('a', 1n, 1n, 9n)]],
    ['holds as much', false, [held('b', 1n)]],
    ['costs more a second', true, [used('a', 3n, 1n, 9n)]],
    ['begins earlier', true, [used('a', 1n, -1n, 9n)]],
    ['ends later', true, [used('a', 1n, 1n, 11n)]],
    ['holds more', true, [held('b', 2n)]],
    ['holds what the other uses', true, [held('a', 1n)]],
    ['uses what the other holds', true, [used('b', 1n, 0n, 1n)]],
    ['takes from one more account', true, [used('a', 1n, 1n, 9n), held('c', 1n)]],
  ])(
    'without counts in the request, a lease with others that %s stays possible: %s',
    (_, isPossible, claims) => {
      const other = { ...taken(claims), demand: 'two hosts' };
      const shown = [used('a', 2n, 0n, 10n), held('b', 1n)];
      const { alternatives } = calculateCharge(input(shown, { recorded: [other], countsAreSeen: false }));
      expect(alternatives).toHaveLength(isPossible ? 2 : 1);
    },
  );

  it('without counts in the request, a lease with others that ends later stays possible, even if it costs nothing', () => {
    const other = { ...taken([]), demand: 'two hosts', end: 11n };
    const possible = (recorded: Alternative) =>
      calculateCharge(input([], { recorded: [recorded], countsAreSeen: false })).alternatives;
    expect(possible(other)).toHaveLength(2);
    expect(possible({ ...other, demand: SHAPE.demand }), 'it has no other counts').toHaveLength(1);
  });

  describe('a new lease with the id of one that is recorded', () => {
    const earlier = taken([{ kind: 'usage', account: 'a', perSecond: 2n, from: 0n, until: 10n }]);
    const asked = (perSecond: bigint, limit: bigint, recorded: readonly Alternative[] = [earlier]) =>
      calculateCharge(
        input([], {
          now: 4n,
          staysOpen: true,
          recorded,
          balances: new Map([['a', 20n]]),
          wanted: [{ ...claimed(by('F', [used('a', perSecond, 4n, 10n, limit)])), start: 4n }],
        }),
      );

    it('pays for what the earlier one has used, too, or leaves the earlier one charged', () => {
      expect(asked(1n, 20n)).toMatchObject({ refusal: undefined, deltas: new Map() });
      const { deltas, alternatives } = asked(3n, 26n);
      expect(deltas).toEqual(new Map([['a', 6n]]));
      expect(alternatives).toHaveLength(2);
      expect(alternatives[0].claims).toContainEqual({ kind: 'spent', account: 'a', amount: 8n });
      // When Blazar shows the new one, what the earlier one has used is not given back; the earlier one would not pay for it.
      expect(refundOf(alternatives, 5n, 4n)).toEqual(new Map([['a', 15n]]));
      expect(refundOf(alternatives, 5n, 0n)).toEqual(new Map([['a', 16n]]));
      // The same once more changes nothing.
      expect(asked(3n, 26n, alternatives).alternatives).toHaveLength(2);
    });

    it('is refused where both together are too much', () => {
      expect(asked(3n, 25n).refusal).toBeDefined();
    });
  });

  it('also refuses a state that it may have on the way', () => {
    const wanted: [Claimed, Claimed] = [
      claimed(by('F', [used('a', 4n, 0n, 1n, 20n)])),
      claimed(by('F', [used('a', 4n, 0n, 10n, 20n)])),
    ];
    const current = claimed(by('F', [used('a', 1n, 0n, 10n, 20n)]));
    const { refusal } = calculateCharge(input([], { wanted, current, isUpdate: true }));
    expect(refusal?.message).toBe('asked 30, left 10, taken 0, update');
  });

  it.each([
    ['a claim', [held('a', MAX_AMOUNT + 1n)], new Map()],
    ['a rate for a time', [used('a', 10n ** 12n, 0n, 10n ** 12n)], new Map()],
    ['a balance', [held('a', 1n)], new Map([['a', MAX_AMOUNT]])],
  ])('refuses %s that a database cannot hold, by the filter that claims it', (_, claims, balances) => {
    const wanted: [Claimed] = [claimed(by('Fine', [held('b', 1n)]), by('Large', claims))];
    const { refusal, isTooMuch } = calculateCharge(input([], { wanted, balances }));
    expect([refusal?.filter, isTooMuch]).toEqual(['Large', true]);
    const tried: [Claimed] = [claimed(by('Fine', [held('b', 1n)]), by('Large', claims, true))];
    const result = calculateCharge(input([], { wanted: tried, balances }));
    expect(result.refusal).toBeUndefined();
    expect(result.warnings.map(({ filter }) => filter)).toEqual(['Large']);
    expect(result.deltas).toEqual(new Map([['b', 1n]]));
  });
});
