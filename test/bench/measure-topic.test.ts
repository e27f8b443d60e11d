import { describe, expect, it } from 'vitest';
import { PeerMissing } from '../../bench/harness/peer-missing.ts';
import type { Trial } from '../../bench/harness/suite.ts';
import { measureTopic } from '../../bench/measure-topic.ts';

function trialThat(measure: Trial['measure'], once = false): Trial {
  const comparison = { name: 'row', measured: 'ours', comparedWith: 'theirs', of: 'time' } as const;
  return { name: 'topic', file: import.meta.url, measure, once, comparisons: [comparison], notes: [] };
}

const measured = async () => new Map(Object.entries({ ours: 20, theirs: 10 }));
const scale = { quick: true, runs: 3 };

describe('measureTopic', () => {
  it('measures as often as it is told, and says so before each run', async () => {
    const runs: string[] = [];
    const outcome = await measureTopic(trialThat(measured), scale, (run, of) => runs.push(`${run} of ${of}`));
    expect(outcome).toMatchObject({ kind: 'measured', runs: 3, results: [{ suite: 'topic', ratio: 2 }] });
    expect(runs).toEqual(['1 of 3', '2 of 3', '3 of 3']);
  });

  it('measures once what varies little', async () => {
    expect(await measureTopic(trialThat(measured, true), scale, () => {})).toMatchObject({ runs: 1 });
  });

  it('tells a missing peer from a failure', async () => {
    const rejecting = (error: Error) => trialThat(() => Promise.reject(error));
    const missing = await measureTopic(rejecting(new PeerMissing('no pgbench')), scale, () => {});
    expect(missing).toEqual({ kind: 'peer missing', why: 'no pgbench' });
    const failed = await measureTopic(rejecting(new Error('broken')), scale, () => {});
    expect(failed).toEqual({ kind: 'failed', thrown: new Error('broken') });
  });
});
