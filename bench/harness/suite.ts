/** Something to measure, ready to run. Has its own process. */
export interface Subject {
  /** Number of operations in one call of `batch`, enough for the clock. */
  readonly operations: number;
  /** Returns `Timed` if it does more than the operations. */
  batch(): unknown;
  /** Processor nanoseconds so far of a separate process that does the work: see `processorOf`. */
  processor?(): Promise<number>;
  close?(): unknown;
}

/** The result of a batch that measures its own time. */
export interface Timed {
  readonly milliseconds: number;
}

/** The name of a subject's processor time, next to its elapsed time. */
export function processorOf(subject: string): string {
  return `${subject}, processor`;
}

/** The name of a measurement with the package of another commit: see `--against`. */
export function atReference(measured: string): string {
  return `${measured}, at the reference`;
}

/** The results of one run, by subject or another name that comparisons use. Times are in nanoseconds. */
export type Run = ReadonlyMap<string, number>;

export type Target = { readonly atMost: number } | { readonly atLeast: number };

/** Compares two subjects of a suite, or a measurement with its limit. */
export interface Comparison {
  readonly name: string;
  readonly measured: string;
  readonly comparedWith: string;
  /** What the ratio divides: time per operation, operations per second, bytes, or counts. */
  readonly of: 'time' | 'rate' | 'memory' | 'count';
  /** Absent: the row is informational. */
  readonly target?: Target;
  /** The ratio is a point of a picture. */
  readonly growth?: Growth | undefined;
}

/** Growth of a cost: the ratio of the cost at `size` to that at `from`, on a line of a picture. */
export interface Growth {
  /** The name of the picture: see `bench/performance/pictures.ts`. */
  readonly picture: string;
  readonly line: string;
  readonly from: number;
  readonly size: number;
}

interface Matter {
  readonly name: string;
  /** The `import.meta.url` of its file. Other processes import it. */
  readonly file: string;
  readonly comparisons: readonly Comparison[];
  /** The method, and the limits of the result. */
  readonly notes: readonly string[];
}

/**
 * A group of subjects that take turns. Export it as `suite`, because the processes of its subjects import it by that
 * name.
 */
export interface Suite extends Matter {
  /** Set-up is not timed. It must also verify that the subject does the measured work, and throw if not. */
  readonly subjects: Readonly<Record<string, () => Subject | Promise<Subject>>>;
  /** Number of turns of each subject within one run, after one warm-up turn. */
  readonly rounds: number;
  /** Minimum duration of a turn; 0 is one batch. */
  readonly turnMilliseconds: number;
  /** Subjects load different code of the same name, so each needs its own process. Default: no. */
  readonly apart?: boolean;
}

/** The scope of a trial. */
export interface Scale {
  /** Runs the minimum that shows it works. */
  readonly quick: boolean;
  /** Number of requests; each trial has its own default. */
  readonly requests?: number | undefined;
}

/** A measurement without turns: whether something holds, over time or against a limit. Export it as `trial`. */
export interface Trial extends Matter {
  /** Slow with little variation, so it runs once, whatever the number of runs. */
  readonly once?: boolean;
  measure(scale: Scale): Promise<Run>;
  /** Called after the last run, even if it failed. */
  close?(): Promise<void>;
}
