import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MergeError } from '../../../../src/config/merge.ts';
import { effectiveValueOf } from '../../../../src/skypilot/config/effective/effective-value.ts';
import {
  type LeafSource,
  NOTHING,
  taskOverrides,
  tracedConfig,
} from '../../../../src/skypilot/config/effective/traced.ts';
import { mergeSources } from '../../../../src/skypilot/config/layers.ts';
import { type Mapping, valueAt } from '../../../../src/yaml/tree.ts';
import { type SkypilotQuestion, skypilotQuestion } from '../../../support/skypilot-questions.ts';

/** The configuration as one source, in which every path is its own origin. */
function traced(tree: Mapping, level: 'server' | 'task') {
  const originOf = (path: readonly (string | number)[]) =>
    ({ kind: 'file', file: `${level} ${path.join('.')}`, line: 1 }) as const;
  return tracedConfig(mergeSources([{ level, tree, originOf }]), level === 'task' ? 'task' : 'configuration');
}

function answers({ config, task, key, region, zone, workspace }: SkypilotQuestion) {
  const place = { workspace, region: region ?? undefined, zone: zone ?? undefined };
  const [base, own] = [traced(config, 'server'), task === null ? undefined : traced(task, 'task')];
  const overrides = taskOverrides<LeafSource>(own, NOTHING);
  const bare = (value: unknown) => (value === undefined ? NOTHING : { value, leaves: [] });
  return {
    trees: { configuration: base.value, task: overrides.value },
    withLeaves: () => effectiveValueOf({ ...place, config: base, task: overrides }, key),
    without: () => effectiveValueOf({ ...place, config: bare(base.value), task: bare(overrides.value) }, key),
  };
}

function scalarsOf(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(scalarsOf) : [value];
}

const attempt = <Result>(ask: () => Result): Result | 'cannot be merged' => {
  try {
    return ask();
  } catch (thrown) {
    if (thrown instanceof MergeError) {
      return 'cannot be merged';
    }
    throw thrown;
  }
};

describe('the origins of an effective value', () => {
  it('change nothing in the value, and name where each leaf was written', () => {
    let found = 0;
    fc.assert(
      fc.property(skypilotQuestion, (question) => {
        const { trees, withLeaves, without } = answers(question);
        const [own, bare] = [attempt(withLeaves), attempt(without)];
        if (own === 'cannot be merged' || bare === 'cannot be merged') {
          expect(own).toBe(bare);
          return;
        }
        expect(own.value).toEqual(bare.value);
        for (const { path, value, source, beats } of own.leaves) {
          found += 1;
          expect(valueAt(own.value, path)).toEqual(value);
          const written = valueAt(trees[source.where], source.key);
          // A list from one source is one leaf, also where its items were joined.
          const isList = Array.isArray(written) || Array.isArray(value);
          expect(isList ? scalarsOf(written) : [written]).toEqual(
            expect.arrayContaining(isList ? scalarsOf(value) : [value]),
          );
          expect(beats).not.toContain(source);
          for (const beaten of beats) {
            expect(valueAt(trees[beaten.where], beaten.key)).not.toBeUndefined();
          }
        }
        const isSet = own.value !== undefined;
        expect(own.leaves.length > 0).toBe(isSet);
        expect(own.lookedAt.some(({ state }) => state === 'taken')).toBe(isSet);
      }),
      { numRuns: 150 },
    );
    expect(found).toBeGreaterThan(50);
  });
});
