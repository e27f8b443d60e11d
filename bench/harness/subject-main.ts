/** The process of one subject: `subject-main.js SUITE-FILE SUBJECT`. Measures when asked, and ends with its parent. */
import { Bench } from 'tinybench';
import type { Subject, Suite } from './suite.ts';

/** What the parent asks for: a turn. */
export interface TurnRequest {
  readonly milliseconds: number;
}

/** `nanoseconds` of one operation, the median over the batches of a turn; absent when the subject is ready. */
export interface SubjectMessage {
  readonly nanoseconds?: number;
}

const [file = '', name = ''] = process.argv.slice(2);

async function takeTurn(subject: Subject, milliseconds: number): Promise<number> {
  const bench = new Bench({ time: milliseconds, iterations: 1, warmup: false, throws: true });
  const timed = async () => {
    const started = performance.now();
    await subject.batch();
    const elapsed = performance.now() - started;
    return { overriddenDuration: elapsed / subject.operations, overriddenIterationCost: elapsed };
  };
  bench.add(name, timed, { async: true });
  const [task] = await bench.run();
  if (task?.result.state !== 'completed') {
    throw new Error(`${name}: the turn ended as ${task?.result.state}`);
  }
  return task.result.latency.p50 * 1e6;
}

function tellParent(message: SubjectMessage): void {
  process.send?.(message);
}

const { suite } = (await import(file)) as { suite: Suite };
const subject = await suite.subjects[name]?.();
if (subject === undefined) {
  throw new Error(`${file} has no subject ${name}`);
}
process.on('message', async ({ milliseconds }: TurnRequest) => {
  tellParent({ nanoseconds: await takeTurn(subject, milliseconds) });
});
process.on('disconnect', async () => {
  await subject.close?.();
  process.exit();
});
tellParent({});
