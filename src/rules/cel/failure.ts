/** Why an expression has no value for a request. */

/**
 * The result of a part that has no value: a missing attribute, an overflow. A value and not an exception: `||`, `&&`, `exists` and `all`
 * may do without it, and a loop over thousands of allocations may produce as many.
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

  /** The failure of the part at an offset, unless a part of that part has failed. */
  at(offset: number): Failure {
    return this.offset === undefined ? new Failure(this.reason, offset, this.cause) : this;
  }

  /** What the whole expression throws. */
  error(): EvaluationError {
    return new EvaluationError(this.reason, this.offset ?? 0, this.cause);
  }
}

/** A value, or the failure of the part at an offset. */
export function placed(value: unknown, offset: number): unknown {
  return value instanceof Failure ? value.at(offset) : value;
}

/** The expression has no value for this request. Rules that throw it refuse. */
export class EvaluationError extends Error {
  override readonly name: string = 'EvaluationError';
  /** The first character of the part that failed, from 0. */
  readonly offset: number;

  constructor(reason: string, offset: number, cause?: unknown) {
    super(reason, { cause });
    this.offset = offset;
  }
}
