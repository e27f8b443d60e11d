import type { Frame } from './frame.ts';

/** A part of an expression, ready to run: returns its value, or a `Failure`. */
export type Run = (frame: Frame) => unknown;
