/** How the bench takes turns, warms up, and counts: the measurements are those of the subject alone. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { runOnce as RunOnce } from '../../bench/harness/run.ts';
import type { Suite } from '../../bench/harness/suite.ts';

// The built one: the processes of the subjects don't read TypeScript.
const BUILT = new URL('../../dist/bench/harness/run.js', import.meta.url).href;
const { runOnce } = (await import(/* @vite-ignore */ BUILT)) as { runOnce: typeof RunOnce };

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-bench-test-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** A suite whose subjects write down what is done to them, as `NAME EVENT PROCESS`. */
function suiteOf(subjects: Record<string, string>): { suite: Suite; events: () => string[][] } {
  const log = join(folder, 'events');
  const file = join(folder, 'suite.mjs');
  writeFileSync(log, '');
  writeFileSync(
    file,
    `import { appendFileSync } from 'node:fs';
     const note = (name, event) => appendFileSync(${JSON.stringify(log)}, [name, event, process.pid].join(' ') + '\\n');
     export const suite = { subjects: {
       ${Object.entries(subjects).map(([name, source]) => `${JSON.stringify(name)}: () => { const name = ${JSON.stringify(name)}; ${source} }`)}
     } };`,
  );
  return {
    suite: {
      name: 'made up',
      file: pathToFileURL(file).href,
      subjects: Object.fromEntries(Object.keys(subjects).map((name) => [name, () => neverHere()])),
      comparisons: [],
      rounds: 2,
      turnMilliseconds: 0,
      notes: [],
    },
    events: () =>
      readFileSync(log, 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.split(' ')),
  };
}

function neverHere(): never {
  throw new Error('subjects are set up in their own processes');
}

const NOTING = `return { operations: 4, batch: () => note(name, 'batch'), close: () => note(name, 'close') };`;

describe('runOnce', () => {
  it('runs the subjects in turns, after one warm-up turn each', async () => {
    const { suite, events } = suiteOf({ a: NOTING, b: NOTING });
    await runOnce(suite);
    const turns = events().filter(([, event]) => event === 'batch');
    expect(turns.map(([name]) => name).join('')).toBe('ababab');
  });

  it('runs every subject in its own process, and closes it', async () => {
    const { suite, events } = suiteOf({ a: NOTING, b: NOTING });
    await runOnce(suite);
    const processes = new Map(events().map(([name, , pid]) => [name, pid]));
    expect(new Set([...processes.values(), String(process.pid)]).size).toBe(3);
    expect(
      events()
        .filter(([, event]) => event === 'close')
        .map(([name]) => name)
        .sort(),
    ).toEqual(['a', 'b']);
  });

  it('divides the time of a batch by its operations', async () => {
    const sleeping = (operations: number) =>
      `return { operations: ${operations}, batch: () => new Promise((done) => setTimeout(done, 50)) };`;
    const { suite } = suiteOf({ one: sleeping(1), million: sleeping(1_000_000) });
    const run = await runOnce(suite);
    expect(run.get('million')).toBeLessThan((run.get('one') ?? 0) / 1000);
  });

  it('divides the usage of another process by all operations of a turn', async () => {
    const { suite } = suiteOf({
      server: `let used = 0; return { operations: 4, batch() { used += 400; }, processor: async () => used };`,
      alone: NOTING,
    });
    const run = await runOnce(suite);
    expect(run.get('server, processor')).toBe(100);
    expect([...run.keys()].sort()).toEqual(['alone', 'server', 'server, processor']);
  });

  it('fails with the name of a subject that cannot be set up, and leaves no process behind', async () => {
    const { suite, events } = suiteOf({ good: NOTING, bad: 'process.exit(3);' });
    await expect(runOnce(suite)).rejects.toThrow('bad: its process ended with 3');
    expect(events().map(([name, event]) => `${name} ${event}`)).toEqual(['good close']);
  });
});
