import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { visibleJson } from '../../src/base/visible-text.ts';
import {
  type DecisionRecord,
  decisionRecordSchema,
  OPERATIONS,
  recordJson,
  SIDES,
} from '../../src/decisions/record.ts';
import { ANY_CHARACTER } from '../support/characters.ts';

const HOSTILE = [
  ...['', '"', '\\', '\u2028', '\u202e', '\u007f', '\u0000', '\ud800', '😀', '</script>', '\n', 'é'],
];
const text = fc.oneof(
  fc.string({ unit: ANY_CHARACTER }),
  fc.constantFrom(...HOSTILE),
  fc.string({ unit: fc.constantFrom(...HOSTILE) }),
);
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const orNull = fc.option(text);
const number = fc.oneof(fc.double(), fc.constantFrom(0, -0, 1e21, 1e-7, 0.001));
const shape = decisionRecordSchema.shape;
const filter = shape.filters.element.shape;

const filters = fc.record({
  filter: text,
  outcome: fc.constantFrom(...filter.outcome.options),
  audit: fc.boolean(),
  message: orNull,
  duration_ms: number,
  rules: maybe(
    fc.array(fc.record({ rule: text, outcome: fc.constantFrom('rejected', 'failed'), audit: fc.boolean() })),
  ),
  changes: maybe(fc.array(fc.record({ path: text, before: orNull, after: orNull }))),
  changes_left_out: maybe(fc.nat()),
});

const records = fc.record({
  time: fc
    .date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true })
    .map((date) => date.toISOString()),
  request_id: text,
  operation: fc.constantFrom(...OPERATIONS),
  side: maybe(fc.constantFrom(...SIDES)),
  launch: maybe(fc.boolean()),
  project_id: orNull,
  user_id: orNull,
  project_name: maybe(orNull),
  project_domain: maybe(orNull),
  user_name: maybe(orNull),
  user_domain: maybe(orNull),
  lease_id: orNull,
  lease_name: orNull,
  allowed: fc.boolean(),
  outcome: fc.constantFrom(...shape.outcome.options),
  filter: orNull,
  message: orNull,
  failed: fc.boolean(),
  warnings: fc.array(text, { maxLength: 3 }),
  filters: fc.array(filters, { maxLength: 3 }),
  generation: fc.nat(),
  duration_ms: number,
  trace_id: maybe(text),
}) satisfies fc.Arbitrary<DecisionRecord>;

describe('a record as a line of the log', () => {
  it('is what JSON.stringify makes of it, with nothing invisible, whatever its texts hold', () => {
    fc.assert(
      fc.property(records, (record) => {
        expect(recordJson(record)).toBe(visibleJson(JSON.stringify(record)));
      }),
    );
  });

  it('has every field that a record may have', () => {
    const [sample] = fc.sample(
      records.map((record) => ({ ...record, filters: [] })),
      1,
    );
    expect(Object.keys(sample ?? {})).toEqual(Object.keys(shape));
    expect(Object.keys(fc.sample(filters, 1)[0] ?? {})).toEqual(Object.keys(filter));
  });
});
