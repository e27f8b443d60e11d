import { median } from './results.ts';
import { SubjectProcess } from './subject-process.ts';
import type { Suite } from './suite.ts';

/** Nanoseconds of one operation, by subject. */
export type Run = ReadonlyMap<string, number>;

/** How much is measured; the suite says it where nothing is given. */
export interface Pace {
  readonly rounds: number;
  readonly turnMilliseconds: number;
}

/**
 * Measures all subjects of a suite once, each in a fresh process, in turns (A, B, C, A, B, C, …), so that what else the
 * machine does meets all of them alike.
 */
export async function runOnce(suite: Suite, pace: Pace = suite): Promise<Run> {
  const started = await Promise.allSettled(
    Object.keys(suite.subjects).map((name) => SubjectProcess.start(suite, name)),
  );
  const subjects = started.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  try {
    for (const start of started) {
      if (start.status === 'rejected') {
        throw start.reason;
      }
    }
    const turns = new Map<string, number[]>(subjects.map(({ name }) => [name, []]));
    for (let round = 0; round <= pace.rounds; round += 1) {
      for (const subject of subjects) {
        const nanoseconds = await subject.takeTurn(pace.turnMilliseconds);
        if (round > 0) {
          turns.get(subject.name)?.push(nanoseconds);
        }
      }
    }
    return new Map([...turns].map(([name, times]) => [name, median(times)]));
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()));
  }
}
