import { PeerMissing } from './harness/peer-missing.ts';
import { compare, type Result } from './harness/results.ts';
import { QUICK, runOnce } from './harness/run.ts';
import type { Run, Scale, Suite, Trial } from './harness/suite.ts';
import type { ReferenceTopic } from './reference/reference-topic.ts';

/** The outcome of a topic. A failure is an error of the topic, or of the machine. */
export type TopicOutcome =
  | {
      readonly kind: 'measured';
      readonly results: readonly Result[];
      readonly runs: number;
      readonly seconds: number;
    }
  | { readonly kind: 'peer missing'; readonly why: string }
  | { readonly kind: 'failed'; readonly thrown: unknown };

/** Never rejects, so that other topics are measured. `onRun` is called before each run, from 1 on. */
export async function measureTopic(
  matter: Suite | Trial,
  scale: Scale & { readonly runs: number },
  onRun: (run: number, of: number) => void,
  reference?: ReferenceTopic,
): Promise<TopicOutcome> {
  const times = runsOf(matter, scale.runs);
  const started = performance.now();
  const measured: Run[] = [];
  try {
    for (let run = 1; run <= times; run += 1) {
      onRun(run, times);
      const isFirst = run % 2 === 1;
      measured.push(await measureOnce(matter, scale, reference, isFirst));
    }
    const results = matter.comparisons.map((comparison) => {
      const beside = reference?.compared(comparison, measured);
      return { ...compare(matter.name, comparison, measured), ...(beside && { reference: beside }) };
    });
    return { kind: 'measured', results, runs: times, seconds: (performance.now() - started) / 1000 };
  } catch (thrown) {
    return thrown instanceof PeerMissing
      ? { kind: 'peer missing', why: thrown.message }
      : { kind: 'failed', thrown };
  } finally {
    await reference?.close();
    if ('close' in matter) {
      await matter.close?.();
    }
  }
}

/** The actual number of runs, if `runs` are requested. */
export function runsOf(matter: Suite | Trial, runs: number): number {
  return 'once' in matter && matter.once ? 1 : runs;
}

/** Adds the reference's results under other names. `isFirst`: measures a trial before the reference's. */
async function measureOnce(
  matter: Suite | Trial,
  scale: Scale,
  reference: ReferenceTopic | undefined,
  isFirst: boolean,
): Promise<Run> {
  if (!('measure' in matter)) {
    const run = await runOnce(matter, scale.quick ? QUICK : matter, reference?.beside(matter));
    return (await reference?.addByOwnBench(run)) ?? run;
  }
  if (reference === undefined) {
    return matter.measure(scale);
  }
  const measures = [() => matter.measure(scale), () => reference.measureTrial(matter)];
  const run = new Map<string, number>();
  for (const measure of isFirst ? measures : measures.reverse()) {
    for (const [name, value] of await measure()) {
      run.set(name, value);
    }
  }
  return reference.addByOwnBench(run);
}
