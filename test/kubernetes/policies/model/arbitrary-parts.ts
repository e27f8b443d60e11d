import fc from 'fast-check';
import type { Section } from '../documents/obvious-documents.ts';

/** What up to three policies and a pod say about one component. */
export interface Part {
  readonly policies: readonly {
    readonly required?: Section | undefined;
    readonly allowed?: Section | undefined;
    readonly default?: Section | undefined;
  }[];
  readonly pod: object;
}

interface Saying {
  readonly required: fc.Arbitrary<Section>;
  readonly allowed: fc.Arbitrary<Section>;
  readonly default: fc.Arbitrary<Section>;
  readonly pod: fc.Arbitrary<object>;
}

export function part({ required, allowed, default: defaults, pod }: Saying): fc.Arbitrary<Part> {
  const policy = fc.record({
    required: often(required, 1, 3),
    allowed: often(allowed, 2, 1),
    default: often(defaults, 1, 1),
  });
  return fc.record({ policies: fc.array(policy, { minLength: 3, maxLength: 3 }), pod });
}

/** Or nothing; how often, in shares. */
export function often<Value>(arbitrary: fc.Arbitrary<Value>, there: number, absent: number) {
  return fc.oneof(
    { arbitrary, weight: there },
    { arbitrary: fc.constant(undefined), weight: absent },
  ) as fc.Arbitrary<Value | undefined>;
}

export function from<const Value>(values: readonly Value[]): fc.Arbitrary<Value> {
  return fc.constantFrom(...values);
}

export function subset<const Value>(values: readonly Value[], minLength = 0): fc.Arbitrary<Value[]> {
  return fc.subarray([...values], { minLength });
}
