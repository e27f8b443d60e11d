import { Progress } from '../../src/cli/common/progress.ts';
import { median } from './results.ts';
import { SubjectProcess } from './subject-process.ts';
import { processorOf, type Run, type Suite } from './suite.ts';

/** The amount of measurement; the suite has defaults. */
export interface Pace {
  readonly rounds: number;
  readonly turnMilliseconds: number;
  /** Whether a turn of each subject comes first that does not count. Default: yes. */
  readonly warmsUp?: boolean;
}

/** One batch of each. */
export const QUICK: Pace = { rounds: 1, turnMilliseconds: 0, warmsUp: false };

/**
 * Measures all subjects of a suite once, each in a fresh process, in turns (A, B, C, A, B, C, …), so that other load
 * on the machine affects all of them equally.
 */
export async function runOnce(suite: Suite, pace: Pace = suite): Promise<Run> {
  const started = await Promise.allSettled(
    Object.keys(suite.subjects).map((name) => SubjectProcess.start(suite, name)),
  );
  const subjects = started.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const first = pace.warmsUp === false ? 1 : 0;
  const progress = new Progress('turns', (pace.rounds + 1 - first) * subjects.length);
  try {
    for (const start of started) {
      if (start.status === 'rejected') {
        throw start.reason;
      }
    }
    const turns = new Map<string, number[]>();
    const note = (name: string, nanoseconds: number | undefined) => {
      if (nanoseconds !== undefined) {
        turns.set(name, [...(turns.get(name) ?? []), nanoseconds]);
      }
    };
    let done = 0;
    for (let round = first; round <= pace.rounds; round += 1) {
      for (const subject of subjects) {
        progress.show(done);
        done += 1;
        const { nanoseconds, processorNanoseconds } = await subject.takeTurn(pace.turnMilliseconds);
        if (round > 0) {
          note(subject.name, nanoseconds);
          note(processorOf(subject.name), processorNanoseconds);
        }
      }
    }
    return new Map([...turns].map(([name, times]) => [name, median(times)]));
  } finally {
    progress.end();
    await Promise.all(subjects.map((subject) => subject.stop()));
  }
}
