/** The evaluation of expressions for one request: its frame, its steps, and its failures. */

/** The variables of a request, by their names in the environment. */
export type Activation = object;

/** Numbers the parts that expressions have in common. */
export interface Numbering {
  readonly count: number;
}

/** One request. All rules for it are evaluated in the same frame, so that common parts are evaluated once. */
export class Frame {
  readonly activation: Activation;
  readonly meter: Meter;
  /** The values of loop variables, by the number of the variable. */
  readonly slots: unknown[] = [];
  /** The values of common parts, by number; `undefined` = not evaluated yet. */
  shared: unknown[] = [];
  #numbering: Numbering | undefined;

  constructor(activation: Activation, meter: Meter = new Meter()) {
    this.activation = activation;
    this.meter = meter;
  }

  /** Call it before each expression: numbers of another environment refer to other parts. */
  shareBy(numbering: Numbering): void {
    if (this.#numbering !== numbering) {
      this.#numbering = numbering;
      this.shared = new Array(numbering.count);
    }
  }
}

/** A part of an expression, ready to run: returns its value, or a `Failure`. */
export type Run = (frame: Frame) => unknown;

/**
 * Maximum number of steps of all rules together for one request. A step is the evaluation of one part of an
 * expression, or as much work: 15 to 60 nanoseconds on a machine of 2020.
 */
export const MAX_STEPS = 2_000_000;

/** The rules exceed the maximum number of steps for a request. Expressions cannot catch it. */
export class TooManyStepsError extends Error {
  override readonly name = 'TooManyStepsError';

  constructor() {
    super(`the rules take more than ${MAX_STEPS} steps for this request`);
  }
}

/** Counts the steps of one request. */
export class Meter {
  readonly #limit: number;
  #left: number;

  constructor(limit = MAX_STEPS) {
    this.#limit = limit;
    this.#left = limit;
  }

  get spent(): number {
    return this.#limit - this.#left;
  }

  /** @throws TooManyStepsError if fewer steps are left */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) {
      throw new TooManyStepsError();
    }
  }
}

/**
 * The result of a part without a value: a missing attribute, an overflow. Not an exception: `||`, `&&`,
 * `exists` and `all` may ignore it, and a loop over thousands of allocations may produce as many.
 */
export class Failure {
  readonly reason: string;
  readonly cause: unknown;
  /** The first character of the part; `undefined` until the part is known. */
  readonly offset: number | undefined;

  constructor(reason: string, offset?: number, cause?: unknown) {
    this.reason = reason;
    this.offset = offset;
    this.cause = cause;
  }

  /** The failure with the offset of the part, unless a part of that part has failed. */
  at(offset: number): Failure {
    return this.offset === undefined ? new Failure(this.reason, offset, this.cause) : this;
  }

  /** The exception for the whole expression. */
  error(): EvaluationError {
    return new EvaluationError(this.reason, this.offset ?? 0, this.cause);
  }
}

/** A value, or the failure of the part at an offset. */
export function placed(value: unknown, offset: number): unknown {
  return value instanceof Failure ? value.at(offset) : value;
}

/** A part of the request is invalid. Rules that read it refuse the request; the message, a sentence, is for its user. */
export class InvalidPartError extends Error {
  override readonly name = 'InvalidPartError';
}

/** The expression has no value for this request. Rules that throw it refuse the request. */
export class EvaluationError extends Error {
  override readonly name: string = 'EvaluationError';
  /** The first character of the part that failed, from 0. */
  readonly offset: number;

  constructor(reason: string, offset: number, cause?: unknown) {
    super(reason, { cause });
    this.offset = offset;
  }
}
