/** Calls of functions. */
import { Failure, placed } from './failure.ts';
import type { Run } from './frame.ts';
import type { CelFunction } from './function.ts';
import { TooManyStepsError } from './meter.ts';
import { failureOf } from './select.ts';
import { slotOfRun, valueIn } from './sharing.ts';
import { Optional, typeName } from './values.ts';

export interface Argument {
  readonly run: Run;
  /** What it is for every request. */
  readonly constant: { readonly value: unknown } | undefined;
}

/** Most calls have one argument, or constants behind the first one: these need no list of arguments, and no call for each. */
export function callRun({ run }: CelFunction, args: readonly Argument[], offset: number): Run {
  const nothing = new Failure('the function has no value', offset);
  const finished = (value: unknown) => (value === undefined ? nothing : placed(value, offset));
  const [first, ...others] = args;
  if (first === undefined || others.length > 2 || others.some(({ constant }) => constant === undefined)) {
    return (frame) => {
      try {
        const values = args.map((arg) => arg.run(frame));
        return values.find((value) => value instanceof Failure) ?? finished(run(frame, ...values));
      } catch (thrown) {
        return failed(thrown, offset);
      }
    };
  }
  const { run: receiver } = first;
  const slot = slotOfRun(receiver);
  const [second, third] = others.map(({ constant }) => constant?.value);
  switch (others.length) {
    case 0:
      return (frame) => {
        try {
          const value = valueIn(frame, receiver, slot);
          return value instanceof Failure ? value : finished(run(frame, value));
        } catch (thrown) {
          return failed(thrown, offset);
        }
      };
    case 1:
      return (frame) => {
        try {
          const value = valueIn(frame, receiver, slot);
          return value instanceof Failure ? value : finished(run(frame, value, second));
        } catch (thrown) {
          return failed(thrown, offset);
        }
      };
    default:
      return (frame) => {
        try {
          const value = valueIn(frame, receiver, slot);
          return value instanceof Failure ? value : finished(run(frame, value, second, third));
        } catch (thrown) {
          return failed(thrown, offset);
        }
      };
  }
}

function failed(thrown: unknown, offset: number): Failure {
  if (thrown instanceof TooManyStepsError) {
    throw thrown;
  }
  return failureOf(thrown).at(offset);
}

/** `orValue`, or `or` if not `isPlain`. The alternative is not evaluated if there is a value. */
export function alternativeRun(isPlain: boolean, value: Run, alternative: Run, offset: number): Run {
  return (frame) => {
    const one = value(frame);
    if (one instanceof Failure) {
      return one;
    }
    if (!(one instanceof Optional)) {
      return new Failure(`expected an optional value, got ${typeName(one)}`, offset);
    }
    return one.value === undefined ? alternative(frame) : isPlain ? one.value : one;
  };
}
