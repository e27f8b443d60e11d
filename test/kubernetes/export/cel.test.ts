import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  and,
  type Cel,
  choose,
  constant,
  dataLiteral,
  equals,
  FALSE,
  isOneOf,
  literal,
  not,
  or,
  TRUE,
} from '../../../src/kubernetes/export/cel.ts';
import { ANY_CHARACTER } from '../../support/characters.ts';
import { evaluateCel } from './admission-policy-evaluator.ts';

const HOSTILE = [
  "'",
  '"',
  '\\',
  "\\'",
  "' || true || '",
  '\n',
  '\u2028',
  '\0',
  '__proto__',
  '$(x)',
  '\u{1f600}',
  '',
  "'''",
  '\\u0041',
];

const texts = fc.oneof(fc.string({ unit: ANY_CHARACTER }), fc.constantFrom(...HOSTILE));

describe('CEL', () => {
  it('reads any text as that text, from printable ASCII on one line', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(literal(text)).toMatch(/^'[ -~]*'$/);
        expect(evaluateCel(literal(text), {})).toBe(text);
        expect(evaluateCel(equals('x', text).text, { x: text })).toBe(true);
        expect(evaluateCel(isOneOf('x', ['a', text, 'b']).text, { x: `${text}.` })).toBe(false);
      }),
      { numRuns: 300 },
    );
  });

  it('has no literal for half a letter, which no text in a cluster has', () => {
    expect(literal('a\ud83d')).toBe("'a\\ufffd'");
  });

  it('finds data equal to its literal, and to no other', () => {
    const data = fc.letrec((tie) => ({
      any: fc.oneof(texts, fc.integer(), fc.boolean(), tie('list'), tie('map')),
      list: fc.array(tie('any'), { maxLength: 3 }),
      map: fc.dictionary(texts, tie('any'), { maxKeys: 3, noNullPrototype: true }),
    })).any;
    fc.assert(
      fc.property(data, data, (one, other) => {
        const isEqual = (a: unknown, b: unknown) => evaluateCel(`${dataLiteral(a)} == ${dataLiteral(b)}`, {});
        expect(isEqual(one, structuredClone(one))).toBe(true);
        expect(isEqual([one, 'x'], [other, 'y'])).toBe(false);
      }),
      { numRuns: 100 },
    );
  });

  it('means the same when it is simplified', () => {
    const names = ['a', 'b', 'c'] as const;
    /** An expression, and what it means. */
    type Both = readonly [cel: Cel, of: (values: Readonly<Record<string, boolean>>) => boolean];
    const { any } = fc.letrec<{ any: Both }>((tie) => ({
      any: fc.oneof(
        { depthSize: 'medium' },
        fc.constantFrom<Both>([TRUE, () => true], [FALSE, () => false]),
        fc
          .constantFrom(...names)
          .map((name): Both => [{ text: name, rank: 0 }, (values) => values[name] === true]),
        fc
          .array(tie('any'), { maxLength: 3 })
          .map(
            (all): Both => [and(...all.map(([cel]) => cel)), (values) => all.every(([, of]) => of(values))],
          ),
        fc
          .array(tie('any'), { maxLength: 3 })
          .map((all): Both => [or(...all.map(([cel]) => cel)), (values) => all.some(([, of]) => of(values))]),
        tie('any').map(([cel, of]): Both => [not(cel), (values) => !of(values)]),
        fc
          .tuple(tie('any'), tie('any'), tie('any'))
          .map(
            ([[a, ofA], [b, ofB], [c, ofC]]): Both => [
              choose(a, b, c),
              (values) => (ofA(values) ? ofB(values) : ofC(values)),
            ],
          ),
      ),
    }));
    fc.assert(
      fc.property(
        any,
        fc.record({ a: fc.boolean(), b: fc.boolean(), c: fc.boolean() }),
        ([cel, of], values) => {
          expect(evaluateCel(cel.text, values)).toBe(of(values));
        },
      ),
      { numRuns: 300 },
    );
    expect(constant(true)).toBe(TRUE);
  });
});
