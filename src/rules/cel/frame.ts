/** What the evaluation of expressions for one request needs. */
import { Meter } from './meter.ts';

/** The variables of a request, by their names in the environment. */
export type Activation = object;

/** What numbers the parts that expressions have in common. */
export interface Numbering {
  readonly count: number;
}

/** One request. All rules for it are evaluated in the same frame, so that what they have in common is evaluated once. */
export class Frame {
  readonly activation: Activation;
  readonly meter: Meter;
  /** The values of loop variables, by the number of the variable. */
  readonly slots: unknown[] = [];
  /** The values of parts that expressions have in common, by their number; `undefined` = not evaluated yet. */
  shared: unknown[] = [];
  #numbering: Numbering | undefined;

  constructor(activation: Activation, meter: Meter = new Meter()) {
    this.activation = activation;
    this.meter = meter;
  }

  /** To be called before each expression: the numbers of another environment stand for other parts. */
  shareBy(numbering: Numbering): void {
    if (this.#numbering !== numbering) {
      this.#numbering = numbering;
      this.shared = new Array(numbering.count);
    }
  }
}

/** A part of an expression, ready to run: returns its value, or a `Failure`. */
export type Run = (frame: Frame) => unknown;
