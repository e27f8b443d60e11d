/** What a second worker adds: two workers on two cores, beside one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Run, Scale, Trial } from './harness/suite.ts';
import { saturate } from './load.ts';
import { CAPTURED_SECONDS } from './requests.ts';

const COMMAND = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));
const REQUESTS = 20_000;
const ROUNDS = 3;
/** The kernel counts processor time in hundredths of a second. */
const TICK = 1e7;

const ONE = 'one worker';
const TWO = 'two workers';
const cost = (subject: string) => `${subject}, processor time of all processes`;
const answered = (subject: string) => `${subject}, as answered here`;

/** The built command, as an operator runs it. */
class Serving {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(child: ChildProcess, url: string, folder: string) {
    this.#child = child;
    this.url = url;
    this.#folder = folder;
  }

  static async start(workers: number): Promise<Serving> {
    const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-bench-'));
    const conf = join(folder, 'blazar.conf');
    writeFileSync(
      conf,
      `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = ${CAPTURED_SECONDS}\n[service]\nport = 0\nworkers = ${workers}\ndecision_log = ${join(folder, 'decisions.jsonl')}\n`,
    );
    const child = spawn(process.execPath, [COMMAND, 'serve', '--config-file', conf], {
      stdio: ['ignore', 'pipe', 2],
    });
    let said = '';
    for await (const text of child.stdout?.setEncoding('utf8') ?? []) {
      said += text;
      const [, url] = /^Listening on (\S+)\n/m.exec(said) ?? [];
      if (url !== undefined) {
        return new Serving(child, url, folder);
      }
    }
    throw new Error(`serve has ended: ${said}`);
  }

  /** Processor nanoseconds of each process so far: the primary, or the only one, first. */
  processors(): number[] {
    const { pid = 0 } = this.#child;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return [pid, ...children.map(Number)].map(processorOf);
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function processorOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // Behind the name, which may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK;
}

async function measure({ quick, requests = quick ? 4000 : REQUESTS }: Scale): Promise<Run> {
  const services = new Map<string, Serving>();
  const run = new Map<string, number>();
  const add = (name: string, value: number) => run.set(name, (run.get(name) ?? 0) + value);
  const rounds = quick ? 1 : ROUNDS;
  try {
    for (const [name, workers] of [
      [ONE, 1],
      [TWO, 2],
    ] as const) {
      const serving = await Serving.start(workers);
      services.set(name, serving);
      await saturate(serving.url, quick ? 1000 : REQUESTS);
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, serving] of services) {
        const before = serving.processors();
        const milliseconds = await saturate(serving.url, requests);
        const used = serving.processors().map((now, index) => Math.max(TICK, now - (before[index] ?? 0)));
        const all = used.reduce((sum, one) => sum + one);
        // What it takes on two cores that nobody else uses: half of the work, but no less than the busiest process has.
        const alone = name === ONE ? all : Math.max(all / 2, ...used);
        add(name, alone / requests / rounds);
        add(cost(name), all / requests / rounds);
        add(answered(name), (milliseconds * 1e6) / requests / rounds);
      }
    }
  } finally {
    for (const serving of services.values()) {
      await serving.stop();
    }
  }
  return run;
}

export const trial: Trial = {
  name: 'workers',
  measure,
  comparisons: [
    { name: 'two on two cores', measured: TWO, comparedWith: ONE, of: 'rate', target: { atLeast: 1.7 } },
    { name: 'processor time of a request', measured: cost(TWO), comparedWith: cost(ONE), of: 'time' },
    {
      name: 'two, as answered beside the callers',
      measured: answered(TWO),
      comparedWith: answered(ONE),
      of: 'rate',
    },
  ],
  notes: [
    'POST /check-create with MaxLeaseDurationFilter and decision log, to the built command serve, with [service] workers = 1 and 2 in turns; the callers are those of the topic service, in this process.',
    'The callers take a core of their own, so on two cores two workers cannot show what they do. Their cost is taken out by not counting it: the rate of one worker is requests in a second of processor time of its process; the rate of two workers on two cores is requests in half a second of the processor time of all three processes (primary and workers), or in a second of that of the busiest one, whichever is less. So a primary that costs, or work that is divided unevenly, counts against it.',
    'What is left out: two cores that share a cache or a memory bus. "As answered beside the callers" is the plain rate, on whatever cores there are.',
  ],
};
