import { EvaluationError } from '../cel/failure.ts';

/** Nobody knows it of pods that a controller will create. */
export class NotYetKnownError extends Error {
  override readonly name = 'NotYetKnownError';
}

/** Whether a rule has no value for the pods of a workload because of what is known only of the pods themselves. */
export function isNotYetKnown(cause: unknown): boolean {
  return cause instanceof EvaluationError && cause.cause instanceof NotYetKnownError;
}
