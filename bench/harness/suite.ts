/** Something whose speed is measured, ready to go. Lives in a process of its own. */
export interface Subject {
  /** How many operations one call of `batch` does: enough for a clock to see. */
  readonly operations: number;
  /** May say how long the operations took, where not all that it does is one: `Timed`. */
  batch(): unknown;
  /** Nanoseconds of processor time that another process has used so far, where it does the work: see `processorOf`. */
  processor?(): Promise<number>;
  close?(): unknown;
}

/** What a batch that times itself resolves to. */
export interface Timed {
  readonly milliseconds: number;
}

/** The name under which the processor time of a subject's operations stands, beside the time that they took. */
export function processorOf(subject: string): string {
  return `${subject}, processor`;
}

/** What was measured once: by subject, or by what else the comparisons name. Times are in nanoseconds. */
export type Run = ReadonlyMap<string, number>;

export type Target = { readonly atMost: number } | { readonly atLeast: number };

/** Two subjects of a suite, compared, or something measured and its bound. */
export interface Comparison {
  readonly name: string;
  readonly measured: string;
  readonly comparedWith: string;
  /** What the ratio divides: times an operation takes, operations a second, bytes, or how many there were. */
  readonly of: 'time' | 'rate' | 'memory' | 'count';
  /** Absent: the row is for information. */
  readonly target?: Target;
}

interface Matter {
  readonly name: string;
  readonly comparisons: readonly Comparison[];
  /** What is done, how, and what the numbers can't say. */
  readonly notes: readonly string[];
}

/** Subjects that take turns. Its file exports it as `suite`, since the processes of its subjects import it by that name. */
export interface Suite extends Matter {
  /** The `import.meta.url` of its file. */
  readonly file: string;
  /** Set-up is not timed. It also proves that the subject does what it is measured for, and throws if not. */
  readonly subjects: Readonly<Record<string, () => Subject | Promise<Subject>>>;
  /** How often, within one run, the subjects take turns; after one turn each that is not counted. */
  readonly rounds: number;
  /** How long a turn lasts at least; 0 is one batch. */
  readonly turnMilliseconds: number;
}

/** How much a trial does. */
export interface Scale {
  /** As little as shows that it runs. */
  readonly quick: boolean;
  /** So many requests, where it is about many; the trial says it where nothing is given. */
  readonly requests?: number | undefined;
}

/** What is not a matter of turns: whether something holds, over time or against a bound. */
export interface Trial extends Matter {
  /** It takes so long, and depends so little on chance, that it is made once, however many runs are asked for. */
  readonly once?: boolean;
  measure(scale: Scale): Promise<Run>;
}
