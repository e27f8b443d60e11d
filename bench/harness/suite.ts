/** Something whose speed is measured, ready to go. Lives in a process of its own. */
export interface Subject {
  /** How many operations one call of `batch` does: enough for a clock to see. */
  readonly operations: number;
  batch(): unknown;
  close?(): unknown;
}

export type Target = { readonly atMost: number } | { readonly atLeast: number };

/** Two subjects of a suite, compared. */
export interface Comparison {
  readonly name: string;
  readonly measured: string;
  readonly comparedWith: string;
  /** What the ratio divides: times an operation takes, or operations a second. */
  readonly of: 'time' | 'rate';
  /** Absent: the row is for information. */
  readonly target?: Target;
}

/** One measured matter. Its file exports it as `suite`, since the processes of its subjects import it by that name. */
export interface Suite {
  readonly name: string;
  /** The `import.meta.url` of its file. */
  readonly file: string;
  /** Set-up is not timed. It also proves that the subject does what it is measured for, and throws if not. */
  readonly subjects: Readonly<Record<string, () => Subject | Promise<Subject>>>;
  readonly comparisons: readonly Comparison[];
  /** How often, within one run, the subjects take turns; after one turn each that is not counted. */
  readonly rounds: number;
  /** How long a turn lasts at least; 0 is one batch. */
  readonly turnMilliseconds: number;
  /** What is done, how, and what the numbers can't say. */
  readonly notes: readonly string[];
}
