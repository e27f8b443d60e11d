/** Measures a topic with the package of another commit, beside the package of this tree. */
import { z } from 'zod';
import { AskedProcess } from '../harness/asked-process.ts';
import { type BesideReference, besideReference } from '../harness/results.ts';
import type { Beside } from '../harness/run.ts';
import { inCopy } from '../harness/subject-process.ts';
import {
  atReference,
  type Comparison,
  processorOf,
  type Run,
  type Scale,
  type Suite,
  type Trial,
} from '../harness/suite.ts';
import type { TrialMessage } from '../harness/trial-main.ts';
import { peerOf } from '../performance/peer-versions.ts';
import type { Checkout } from './checkout.ts';
import { whyNotComparable } from './not-comparable.ts';

/** The required parts of another bench's report. */
const reportSchema = z.object({
  results: z.array(
    z.object({
      name: z.string(),
      measured: z.object({ value: z.number(), unit: z.string() }),
    }),
  ),
});
type ReportedRow = z.infer<typeof reportSchema>['results'][number];

const UNITS = { time: 'ns', rate: 'per second', memory: 'bytes', count: 'times' } as const;

export class ReferenceTopic {
  readonly #checkout: Checkout;
  readonly #matter: Suite | Trial;
  readonly #scale: Scale;
  readonly #tell: (text: string) => void;
  /** Comparisons without peers. */
  readonly #comparisons: readonly Comparison[];
  /** Reasons by subject; `''` is the whole topic. */
  readonly #failed = new Map<string, string>();
  /** The subjects measured by the commit's own bench. */
  readonly #byOwnBench = new Set<string>();
  #ownBenchFailed = false;
  #trial: AskedProcess | undefined;

  constructor(checkout: Checkout, matter: Suite | Trial, scale: Scale, tell: (text: string) => void) {
    this.#checkout = checkout;
    this.#matter = matter;
    this.#scale = scale;
    this.#tell = tell;
    this.#comparisons = matter.comparisons.filter(({ measured }) => peerOf(measured) === undefined);
  }

  /** For turns beside those of a suite. */
  beside(suite: Suite): Beside {
    const measured = new Set(this.#comparisons.map((comparison) => comparison.measured));
    const isMeasured = (name: string) => measured.has(name) || measured.has(processorOf(name));
    const subjects = Object.keys(suite.subjects).filter(
      (name) => isMeasured(name) && !this.#failed.has(name),
    );
    return {
      bench: this.#checkout.bench,
      subjects: new Set(subjects),
      failed: (name, thrown) => this.#fail(name, thrown),
    };
  }

  /** Measures a trial once. Empty if it cannot be measured. */
  async measureTrial(trial: Trial): Promise<Run> {
    if (this.#failed.has('')) {
      return new Map();
    }
    try {
      this.#trial ??= await AskedProcess.start(
        trial.name,
        new URL('harness/trial-main.js', this.#checkout.bench),
        [inCopy(this.#checkout.bench, trial.file)],
        { quiet: true },
      );
      const { run = [] } = (await this.#trial.ask(this.#scale)) as TrialMessage;
      return new Map(run.map(([name, value]) => [atReference(name), value]));
    } catch (thrown) {
      this.#fail('', thrown);
      return new Map();
    }
  }

  /** Adds missing results from the commit's own bench, if it has the same rows: imports may have moved. */
  async addByOwnBench(run: Run): Promise<Run> {
    const lacking = this.#comparisons.filter(({ measured }) => !run.has(atReference(measured)));
    const { ownBench } = this.#checkout;
    if (lacking.length === 0 || this.#ownBenchFailed || ownBench === undefined) {
      return run;
    }
    const rows = await this.#reportOf(ownBench);
    const added = new Map(run);
    for (const { name, measured, of } of lacking) {
      const row = rows.find((one) => one.name === name && one.measured.unit === UNITS[of]);
      if (row !== undefined && !added.has(atReference(measured))) {
        this.#byOwnBench.add(measured);
        const { value } = row.measured;
        added.set(atReference(measured), of === 'rate' ? 1e9 / value : value);
      }
    }
    return added;
  }

  /** `undefined` = a peer is measured. */
  compared(comparison: Comparison, runs: readonly Run[]): BesideReference | undefined {
    if (!this.#comparisons.includes(comparison)) {
      return undefined;
    }
    const compared = besideReference(comparison, runs);
    if (this.#byOwnBench.has(comparison.measured)) {
      return 'ratio' in compared ? { ...compared, ownBench: true } : compared;
    }
    const why = [...this.#failed].find(
      ([name]) => name === '' || name === comparison.measured || processorOf(name) === comparison.measured,
    )?.[1];
    return why === undefined ? compared : { notComparable: why };
  }

  async close(): Promise<void> {
    await this.#trial?.stop();
  }

  #fail(subject: string, thrown: unknown): void {
    const why = whyNotComparable(this.#checkout.folder, thrown);
    this.#failed.set(subject, why);
    const what = subject === '' ? this.#matter.name : `${this.#matter.name}: ${subject}`;
    const cause = thrown instanceof Error ? `${thrown.cause ?? thrown.message}`.trimEnd() : String(thrown);
    this.#tell(`NOT COMPARABLE: ${what}: ${why}${why.startsWith('no such') ? '' : `:\n${cause}`}`);
  }

  async #reportOf(main: string): Promise<readonly ReportedRow[]> {
    const { name } = this.#matter;
    const { quick, requests } = this.#scale;
    const flags = [
      '--only',
      name,
      '--runs',
      '1',
      '--format',
      'json',
      ...(quick ? ['--quick'] : []),
      ...(requests === undefined ? [] : ['--requests', String(requests)]),
    ];
    const { stdout } = await this.#checkout.run(process.execPath, [main, ...flags]);
    try {
      return reportSchema.parse(JSON.parse(stdout)).results;
    } catch {
      // The topic does not exist there, or also fails.
      this.#ownBenchFailed = true;
      return [];
    }
  }
}
