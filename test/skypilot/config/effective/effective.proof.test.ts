/** Effective values beside SkyPilot's own functions, for random configurations and questions. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MergeError } from '../../../../src/config/merge.ts';
import { effectiveValueOf } from '../../../../src/skypilot/config/effective/effective-value.ts';
import { NOTHING } from '../../../../src/skypilot/config/effective/traced.ts';
import { type SkypilotQuestion, skypilotQuestion } from '../../../support/skypilot-questions.ts';
import { askSkypilot, skypilotSource } from '../../../support/skypilot-source.ts';

const source = skypilotSource();
const RUNS = 4000;

function ours({ config, task, key, region, zone, workspace }: SkypilotQuestion): {
  value?: unknown;
  error?: string;
} {
  try {
    const { value } = effectiveValueOf(
      {
        config: { value: config, leaves: [] },
        task: task === null ? NOTHING : { value: task, leaves: [] },
        workspace,
        region: region ?? undefined,
        zone: zone ?? undefined,
      },
      key,
    );
    return value === undefined ? {} : { value };
  } catch (thrown) {
    if (thrown instanceof MergeError) {
      return { error: thrown.message };
    }
    throw thrown;
  }
}

describe.skipIf(source === undefined)('the effective value of a key', () => {
  it(`is that of SkyPilot for ${RUNS} random configurations`, () => {
    const questions = fc.sample(skypilotQuestion, RUNS);
    const theirs = askSkypilot<{ value?: unknown; error?: string }>(
      source ?? '',
      'skypilot-effective.py',
      questions,
    );
    expect(theirs).toHaveLength(RUNS);
    const different = questions.flatMap((asked, index) => {
      const own = ours(asked);
      const other = theirs[index] ?? {};
      const isSame =
        'error' in own || 'error' in other
          ? 'error' in own && 'error' in other
          : JSON.stringify(sorted(own.value)) === JSON.stringify(sorted(other.value));
      return isSame ? [] : [{ asked, own, other }];
    });
    // Otherwise it would compare nothing with nothing.
    expect(theirs.filter((answer) => 'value' in answer).length).toBeGreaterThan(RUNS / 2);
    expect(theirs.some((answer) => 'error' in answer)).toBe(true);
    expect(different.slice(0, 3)).toEqual([]);
  });
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(sorted);
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(
        Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, below]) => [name, sorted(below)]),
      )
    : value;
}
