/**
 * The process of one subject: `subject-main.js SUITE-FILE SUBJECT`. Measures on request and exits with its
 * parent. Without a subject, it runs all of them: each is set up only for its turn.
 */
import { Bench } from 'tinybench';
import type { Subject, Suite, Timed } from './suite.ts';

/** A request of the parent for one turn. */
export interface TurnRequest {
  readonly name: string;
  readonly milliseconds: number;
}

/** The cost of one operation. */
export interface Turn {
  /** The median of all batches of the turn. */
  readonly nanoseconds: number;
  /** The mean processor time of the process that does the work, if it is a separate one. */
  readonly processorNanoseconds?: number;
}

/** `turn` is absent when the subject is ready. */
export interface SubjectMessage {
  readonly turn?: Turn;
}

const [file = '', only] = process.argv.slice(2);

async function takeTurn(subject: Subject, { name, milliseconds }: TurnRequest): Promise<Turn> {
  let operations = 0;
  const bench = new Bench({ time: milliseconds, iterations: 1, warmup: false, throws: true });
  const timed = async () => {
    const started = performance.now();
    const result = await subject.batch();
    const elapsed = isTimed(result) ? result.milliseconds : performance.now() - started;
    operations += subject.operations;
    return { overriddenDuration: elapsed / subject.operations, overriddenIterationCost: elapsed };
  };
  bench.add(name, timed, { async: true });
  const processorBefore = await subject.processor?.();
  const [task] = await bench.run();
  if (task?.result.state !== 'completed') {
    throw new Error(`${name}: the turn ended as ${task?.result.state}`);
  }
  const nanoseconds = task.result.latency.p50 * 1e6;
  const processorAfter = await subject.processor?.();
  return processorBefore === undefined || processorAfter === undefined
    ? { nanoseconds }
    : { nanoseconds, processorNanoseconds: (processorAfter - processorBefore) / operations };
}

function isTimed(result: unknown): result is Timed {
  return typeof result === 'object' && result !== null && 'milliseconds' in result;
}

function tellParent(message: SubjectMessage): void {
  process.send?.(message);
}

const { suite } = (await import(file)) as { suite: Suite };

async function setUp(name: string): Promise<Subject> {
  const subject = await suite.subjects[name]?.();
  if (subject === undefined) {
    throw new Error(`${file} has no subject ${name}`);
  }
  return subject;
}

const kept = only === undefined ? undefined : await setUp(only);
process.on('message', async (request: TurnRequest) => {
  const subject = kept ?? (await setUp(request.name));
  const turn = await takeTurn(subject, request);
  if (kept === undefined) {
    await subject.close?.();
  }
  tellParent({ turn });
});
process.on('disconnect', async () => {
  await kept?.close?.();
  process.exit();
});
tellParent({});
