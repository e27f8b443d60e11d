/** Functions that expressions may call. */
import type { Frame } from './frame.ts';
import { SCALAR, type Shape } from './shape.ts';

/** What a call may cost in addition to its arguments, and what it returns. */
export interface CallEstimate {
  readonly steps: number;
  readonly shape: Shape;
}

export interface CelFunction {
  /**
   * Returns a value, or a `Failure`. What it throws is a failure too. Spends the steps that the sizes of its arguments cause; never more
   * than `estimate` says. The receiver of a method is the first argument.
   */
  readonly run: (frame: Frame, ...args: unknown[]) => unknown;
  /** Default: a step, and a value without a size. `prepared`: what `prepare` has made of a constant. */
  readonly estimate?: (sizes: readonly Shape[], prepared: unknown) => CallEstimate;
  /** These arguments must be written as constants, because they are prepared when the rules are loaded. */
  readonly constants?: readonly number[];
  /** Throws for a constant that is not usable. Called when the rules are loaded. */
  readonly prepare?: (constant: unknown) => unknown;
  /** Why it does not take these constants; `undefined` for each argument that is none. Called when the rules are loaded. */
  readonly refuse?: (constants: readonly unknown[]) => string | undefined;
  /** Its answer depends on the ledger: it is asked again in the transaction that records the lease. */
  readonly readsLedger?: boolean;
}

export const CHEAP: CallEstimate = { steps: 1, shape: SCALAR };

/** The key of a function in a table: `size/1`, or `.size/1` for a method; its receiver is not counted. */
export function functionKey(name: string, parameters: number, isMethod: boolean): string {
  return `${isMethod ? '.' : ''}${name}/${parameters}`;
}
