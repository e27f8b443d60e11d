import { Progress } from '../../src/cli/common/progress.ts';
import { median } from './results.ts';
import { SubjectProcess } from './subject-process.ts';
import { atReference, processorOf, type Run, type Suite } from './suite.ts';

/** The amount of measurement; the suite has defaults. */
export interface Pace {
  readonly rounds: number;
  readonly turnMilliseconds: number;
  /** Whether an uncounted turn of each subject comes first. Default: yes. */
  readonly warmsUp?: boolean;
}

/** One batch of each subject, all in one process. */
export const QUICK: Pace = { rounds: 1, turnMilliseconds: 0, warmsUp: false };

/** Subjects that are also measured in another copy of the bench, each after the same one of this copy. */
export interface Beside {
  /** The URL of the other copy's folder. */
  readonly bench: string;
  readonly subjects: ReadonlySet<string>;
  /** Called if a subject cannot be measured there. It is skipped. */
  failed(subject: string, thrown: unknown): void;
}

/**
 * Measures all subjects of a suite once, each in a fresh process, in turns (A, B, C, A, B, C, …), so that
 * other load on the machine affects all of them equally. With `beside`, both of the same name are
 * consecutive.
 */
export async function runOnce(suite: Suite, pace: Pace = suite, beside?: Beside): Promise<Run> {
  const names = Object.keys(suite.subjects);
  const isShared = pace === QUICK && beside === undefined && suite.apart !== true;
  const together = isShared ? await SubjectProcess.startTogether(suite) : [];
  const started = isShared
    ? []
    : await startedInTurn(names, (name) => SubjectProcess.start(suite.file, name));
  const subjects = isShared
    ? together
    : started.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const others = await startedBeside(suite, beside);
  const running = () => [...subjects, ...others.values()];
  const first = pace.warmsUp === false ? 1 : 0;
  const progress = new Progress('turns', (pace.rounds + 1 - first) * running().length);
  try {
    for (const start of started) {
      if (start.status === 'rejected') {
        throw start.reason;
      }
    }
    const turns = new Map<string, number[]>();
    let done = 0;
    const takeTurn = async (subject: SubjectProcess, round: number, named = (name: string) => name) => {
      progress.show(done);
      done += 1;
      const { nanoseconds, processorNanoseconds } = await subject.takeTurn(pace.turnMilliseconds);
      const times = [
        [subject.name, nanoseconds],
        [processorOf(subject.name), processorNanoseconds],
      ] as const;
      for (const [name, time] of times) {
        if (round > 0 && time !== undefined) {
          turns.set(named(name), [...(turns.get(named(name)) ?? []), time]);
        }
      }
    };
    const takeOtherTurn = async (name: string, round: number) => {
      const other = others.get(name);
      try {
        await (other && takeTurn(other, round, atReference));
      } catch (thrown) {
        others.delete(name);
        turns.delete(atReference(name));
        turns.delete(atReference(processorOf(name)));
        beside?.failed(name, thrown);
      }
    };
    for (let round = first; round <= pace.rounds; round += 1) {
      for (const subject of subjects) {
        // Alternates, because the second one finds warm memory.
        const isFirst = round % 2 === 0;
        await (isFirst ? takeTurn(subject, round) : takeOtherTurn(subject.name, round));
        await (isFirst ? takeOtherTurn(subject.name, round) : takeTurn(subject, round));
      }
    }
    return new Map([...turns].map(([name, times]) => [name, median(times)]));
  } finally {
    progress.end();
    await Promise.all(running().map((subject) => subject.stop()));
  }
}

/** Limits concurrent starts: loading filters or policies has a time limit. */
const STARTED_AT_ONCE = 2;

async function startedInTurn<Started>(
  names: readonly string[],
  start: (name: string) => Promise<Started>,
): Promise<PromiseSettledResult<Started>[]> {
  const started: PromiseSettledResult<Started>[] = [];
  for (let next = 0; next < names.length; next += STARTED_AT_ONCE) {
    const some = names.slice(next, next + STARTED_AT_ONCE);
    started.push(...(await Promise.allSettled(some.map(start))));
  }
  return started;
}

async function startedBeside(suite: Suite, beside: Beside | undefined): Promise<Map<string, SubjectProcess>> {
  const started = new Map<string, SubjectProcess>();
  if (beside !== undefined) {
    const { bench, subjects, failed } = beside;
    const start = async (name: string) => {
      try {
        started.set(name, await SubjectProcess.startIn(bench, suite.file, name));
      } catch (thrown) {
        failed(name, thrown);
      }
    };
    await startedInTurn([...subjects], start);
  }
  return started;
}
