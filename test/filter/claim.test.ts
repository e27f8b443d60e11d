import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  charge,
  formatClaims,
  notBefore,
  parseClaims,
  type RecordedClaim,
  refund,
} from '../../src/ledger/accounting/recorded-claim.ts';
import { ANY_CHARACTER } from '../support/characters.ts';

const text = fc.oneof(
  fc.string({ unit: ANY_CHARACTER }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('__proto__', '"', '\\', '\0', '\ud83e', '', 'a'.repeat(65_536)),
);
const figure = fc.bigInt({ min: 0n, max: 2n ** 80n });
const second = fc.bigInt({ min: -(2n ** 40n), max: 2n ** 40n });
const held = fc.record({ kind: fc.constant('held' as const), account: text, amount: figure });
const usage = fc
  .record({ account: text, perSecond: figure, from: second, length: fc.bigInt({ min: 0n, max: 2n ** 40n }) })
  .map(({ length, ...claim }) => ({ kind: 'usage' as const, ...claim, until: claim.from + length }));
const claim: fc.Arbitrary<RecordedClaim> = fc.oneof(held, usage);

describe('a usage claim', () => {
  it('charges its rate for each of its seconds', () => {
    expect(charge({ kind: 'usage', account: 'a', perSecond: 3n, from: 10n, until: 14n })).toBe(12n);
    expect(charge({ kind: 'usage', account: 'a', perSecond: 3n, from: 10n, until: 10n })).toBe(0n);
  });

  it('returns everything that is not used: both parts always add up to the charge', () => {
    fc.assert(
      fc.property(usage, second, (claim, now) => {
        const { perSecond, from, until } = claim;
        const ran = now <= from ? 0n : now >= until ? until - from : now - from;
        expect(refund(claim, now) + perSecond * ran).toBe(charge(claim));
        expect(refund(claim, now)).toBeGreaterThanOrEqual(0n);
      }),
    );
  });

  it('costs the same if it is split into parts', () => {
    fc.assert(
      fc.property(usage, fc.array(second), second, (claim, cuts, now) => {
        const inside = cuts.filter((cut) => cut > claim.from && cut < claim.until);
        const ends = [...inside, claim.until].sort((a, b) => (a < b ? -1 : 1));
        let from = claim.from;
        let charged = 0n;
        let returned = 0n;
        for (const until of ends) {
          charged += charge({ ...claim, from, until });
          returned += refund({ ...claim, from, until }, now);
          from = until;
        }
        expect([charged, returned]).toEqual([charge(claim), refund(claim, now)]);
      }),
    );
  });

  it('is cut at a second, and never lengthened', () => {
    fc.assert(
      fc.property(usage, second, (claim, now) => {
        const cut = notBefore(claim, now);
        expect(charge(cut)).toBe(refund(claim, now));
        expect(cut.until).toBe(claim.until);
        expect(cut.from >= claim.from && cut.from <= claim.until).toBe(true);
        expect(notBefore(cut, now)).toEqual(cut);
      }),
    );
  });
});

describe('a held claim', () => {
  it('is returned completely, whenever it ends', () => {
    fc.assert(
      fc.property(held, second, (claim, now) => {
        expect([charge(claim), refund(claim, now)]).toEqual([claim.amount, claim.amount]);
        expect(notBefore(claim, now)).toBe(claim);
      }),
    );
  });
});

describe('claims as text', () => {
  it('are read back unchanged, whatever the names of their accounts', () => {
    fc.assert(
      fc.property(fc.array(claim), (claims) => {
        expect(parseClaims(formatClaims(claims))).toEqual(claims);
      }),
    );
  });

  it('contain no floating-point numbers', () => {
    const amount = 2n ** 63n - 1n;
    expect(formatClaims([{ kind: 'held', account: 'a', amount }])).toBe('[["a","9223372036854775807"]]');
  });

  it.each([
    '',
    'null',
    '{}',
    '[1]',
    '[[1]]',
    '[["a",1]]',
    '[["a","1.5"]]',
    '[["a","x"]]',
    '[["a","1","2","z"]]',
  ])('are not read from %s', (written) => {
    expect(() => parseClaims(written)).toThrow(Error);
  });
});
