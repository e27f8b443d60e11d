import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatResourceProperties, parseResourceProperties } from '../../src/index.ts';
import type { PropertyRequirement } from '../../src/lease/resource-properties.ts';
import { ANY_CHARACTER } from '../support/characters.ts';

/**
 * How Blazar reads a text: a model of its `plugins_utils.convert_requirements`, and of the lookup of hosts with the
 * result, where each `key op value` is split at its first two spaces.
 */
function asBlazarReads(requirements: unknown): [key: string, op: string, value: string][] {
  return requirements === '' ? [] : converted(requirements).map(splitTwice);
}

function converted(requirements: unknown): string[] {
  const list: unknown = typeof requirements === 'string' ? JSON.parse(requirements) : requirements;
  if (isComparison(list)) {
    const [op, name, value] = list;
    return [`${name.slice(1)} ${op === '=' ? '==' : op} ${value}`];
  }
  if (
    Array.isArray(list) &&
    list.length > 1 &&
    list[0] === 'and' &&
    list.slice(1).every((one) => converted(one).length > 0)
  ) {
    return list.slice(1).map((one) => String(converted(one)[0]));
  }
  if (Array.isArray(list) && list.length === 0) {
    return [];
  }
  throw new Error('MalformedRequirements');
}

function isComparison(list: unknown): list is [string, string, string] {
  if (!Array.isArray(list) || list.length !== 3) {
    return false;
  }
  const [op, name, value] = list as unknown[];
  return (
    typeof op === 'string' &&
    typeof name === 'string' &&
    typeof value === 'string' &&
    ['=', '==', '!=', '>=', '<=', '>', '<'].includes(op) &&
    name.length > 1 &&
    name.startsWith('$') &&
    value.length > 0
  );
}

/** `text.split(' ', 2)` of Python. */
function splitTwice(text: string): [string, string, string] {
  const [key = '', op = ''] = text.split(' ', 2);
  return [key, op, text.slice(key.length + op.length + 2)];
}

const triples = (requirements: readonly PropertyRequirement[]) =>
  requirements.map(({ name, operator, value }) => [name, operator, value]);

/** Random values for each position, more often valid than invalid. */
const operator = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom('=', '==', '!=', '>=', '<=', '>', '<') },
  fc.constantFrom('and', 'or', 'not', '===', '', '$gpu', 1, null),
);
const text = fc.oneof(
  fc.constantFrom(
    ...['gpu', 'True', ' ', ' x', 'a b', 'x ', '\t', '\n', '$', '"', '\\', 'é', '\u00a0', '\ud800', '0'],
  ),
  fc.string({ maxLength: 6, unit: ANY_CHARACTER }),
);
const name = fc.oneof({ weight: 3, arbitrary: text.map((one) => `$${one}`) }, text, fc.constant(null));
const value = fc.oneof({ weight: 9, arbitrary: text }, fc.constantFrom('', null, true, 1, []));
/** Valid except for unusual characters. */
const plain = fc.tuple(
  fc.constantFrom('=', '==', '!=', '>=', '<=', '>', '<'),
  text.filter((one) => /^\S+$/.test(one)).map((one) => `$${one}`),
  text.filter((one) => one !== ''),
);
const comparison = fc.oneof(
  { weight: 9, arbitrary: plain as fc.Arbitrary<unknown> },
  { weight: 9, arbitrary: fc.tuple(operator, name, value) as fc.Arbitrary<unknown> },
  fc.array(fc.oneof(operator, name), { maxLength: 4 }),
  fc.constantFrom('["==","$gpu","True"]', [], null, {}, ''),
);
const conjunction = (members: fc.Arbitrary<unknown>) =>
  fc
    .tuple(
      fc.oneof({ weight: 9, arbitrary: fc.constant('and') }, fc.constantFrom('or', 'not', null)),
      fc.array(members, { maxLength: 3 }),
    )
    .map(([word, all]): unknown => [word, ...all]);
const expression = fc.oneof(
  comparison,
  conjunction(comparison),
  conjunction(fc.oneof(comparison, conjunction(comparison))),
  fc.jsonValue(),
);
const written = fc.oneof(
  expression,
  expression.map((one) => JSON.stringify(one)),
  expression.map((one) => JSON.stringify(one, null, 2)),
  fc.tuple(expression, fc.nat()).map(([one, length]) => {
    const whole = JSON.stringify(one);
    return whole.slice(0, length % (whole.length + 1));
  }),
);

function outcome<Result>(read: () => Result): { readonly demands: Result } | undefined {
  try {
    return { demands: read() };
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Error);
    return undefined;
  }
}

describe('parseResourceProperties', () => {
  it('reads every text that it accepts exactly as Blazar does', () => {
    let accepted = 0;
    fc.assert(
      fc.property(written, (one) => {
        const ours = outcome(() => triples(parseResourceProperties(one)));
        if (ours !== undefined && one !== null) {
          accepted += ours.demands.length > 0 ? 1 : 0;
          expect(ours.demands).toEqual(asBlazarReads(one));
        }
      }),
      { numRuns: 1500 },
    );
    expect(accepted).toBeGreaterThan(150);
  });

  it('accepts every text that Blazar reads as written: no spaces in names, and at most one "and"', () => {
    const all = fc.oneof(
      plain as fc.Arbitrary<unknown>,
      fc.array(plain, { minLength: 1, maxLength: 4 }).map((some): unknown => ['and', ...some]),
      fc.constant([]),
    );
    fc.assert(
      fc.property(all, (one) => {
        const read = JSON.stringify(one);
        expect(triples(parseResourceProperties(read))).toEqual(asBlazarReads(read));
        expect(parseResourceProperties(one)).toEqual(parseResourceProperties(read));
      }),
      { numRuns: 400 },
    );
  });

  it('is compared with the actual behaviour of Blazar', () => {
    expect(asBlazarReads('["=", "$gpu", "True"]')).toEqual([['gpu', '==', 'True']]);
    // Blazar reads only the first comparison of the inner "and", and splits a name at its space: we accept neither.
    const inner = '["and", ["and", ["==", "$a", "1"], ["==", "$b", "2"]]]';
    expect(asBlazarReads(inner)).toEqual([['a', '==', '1']]);
    expect(() => parseResourceProperties(inner)).toThrow('expected no "and" there');
    expect(asBlazarReads('["==", "$a b", "1"]')).toEqual([['a', 'b', '== 1']]);
    expect(() => parseResourceProperties('["==", "$a b", "1"]')).toThrow('without blanks');
  });

  it.for([undefined, null, '', [], '[]', ' [ ] '])('reads no properties in %j', (nothing) => {
    expect(parseResourceProperties(nothing)).toEqual([]);
  });

  it.for([0, false, true, {}, 'gpu', '{}', '0', 'null', '[', '["==","$gpu","True"', ' '])(
    'refuses %j, since it is no list',
    (wrong) => {
      expect(() => parseResourceProperties(wrong)).toThrow(
        'expected a list in JSON such as ["==", "$gpu", "True"]',
      );
    },
  );

  it('keeps the spaces of a value', () => {
    expect(parseResourceProperties('["==", "$gpu", " A 100 "]')).toEqual([
      { name: 'gpu', operator: '==', value: ' A 100 ' },
    ]);
  });

  it('survives a list that is nested a hundred thousand times', () => {
    const deep = `${'["and",'.repeat(100_000)}["==","$a","b"]${']'.repeat(100_000)}`;
    expect(() => parseResourceProperties(deep)).toThrow(/^expected /);
  });
});

describe('formatResourceProperties', () => {
  it('writes properties that we and Blazar read back unchanged', () => {
    fc.assert(
      fc.property(written, (one) => {
        const read = outcome(() => parseResourceProperties(one));
        if (read !== undefined) {
          const again = formatResourceProperties(read.demands);
          expect(parseResourceProperties(again)).toEqual(read.demands);
          expect(asBlazarReads(again)).toEqual(triples(read.demands));
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('writes no, one and several properties', () => {
    const gpu = { name: 'gpu', operator: '==', value: 'True' } as const;
    expect(formatResourceProperties([])).toBe('[]');
    expect(formatResourceProperties([gpu])).toBe('["==","$gpu","True"]');
    expect(formatResourceProperties([gpu, { ...gpu, operator: '>=', name: 'x' }])).toBe(
      '["and",["==","$gpu","True"],[">=","$x","True"]]',
    );
  });
});
