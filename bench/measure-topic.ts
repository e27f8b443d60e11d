import { PeerMissing } from './harness/peer-missing.ts';
import { compare, type Result } from './harness/results.ts';
import { QUICK, runOnce } from './harness/run.ts';
import type { Run, Scale, Suite, Trial } from './harness/suite.ts';

/** What came of a topic. A failure is an error of the topic, or of the machine. */
export type TopicOutcome =
  | {
      readonly kind: 'measured';
      readonly results: readonly Result[];
      readonly runs: number;
      readonly seconds: number;
    }
  | { readonly kind: 'peer missing'; readonly why: string }
  | { readonly kind: 'failed'; readonly thrown: unknown };

/** Never rejects: the other topics are to be measured all the same. `onRun` is called before each run, with its number from 1. */
export async function measureTopic(
  matter: Suite | Trial,
  scale: Scale & { readonly runs: number },
  onRun: (run: number, of: number) => void,
): Promise<TopicOutcome> {
  const times = runsOf(matter, scale.runs);
  const started = performance.now();
  const measured: Run[] = [];
  try {
    for (let run = 1; run <= times; run += 1) {
      onRun(run, times);
      measured.push(await measureOnce(matter, scale));
    }
    const results = matter.comparisons.map((comparison) => compare(matter.name, comparison, measured));
    return { kind: 'measured', results, runs: times, seconds: (performance.now() - started) / 1000 };
  } catch (thrown) {
    return thrown instanceof PeerMissing
      ? { kind: 'peer missing', why: thrown.message }
      : { kind: 'failed', thrown };
  } finally {
    if ('close' in matter) {
      await matter.close?.();
    }
  }
}

/** How often it is really measured, if `runs` are asked for. */
export function runsOf(matter: Suite | Trial, runs: number): number {
  return 'once' in matter && matter.once ? 1 : runs;
}

function measureOnce(matter: Suite | Trial, scale: Scale): Promise<Run> {
  return 'measure' in matter ? matter.measure(scale) : runOnce(matter, scale.quick ? QUICK : matter);
}
