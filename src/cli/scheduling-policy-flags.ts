/** The flags of the `scheduling-policy` commands, as commander hands them over. */
import type { MergeStrategy } from '../kubernetes/merge-strategy.ts';

/** Of the commands that ask what applies to somebody. */
export interface AccountFlags {
  readonly namespace?: string;
  readonly serviceAccount?: string;
}

export interface CheckFlags extends AccountFlags {
  readonly policies?: readonly string[];
  readonly configFile?: readonly string[];
  readonly mergeStrategy?: MergeStrategy;
  readonly defaultPriorityClass?: string;
  readonly format: 'diff' | 'json';
}

export interface MergeFlags extends AccountFlags {
  readonly policies: readonly string[];
  readonly mergeStrategy: MergeStrategy;
  readonly user?: string;
  readonly group?: readonly string[];
  readonly format: 'table' | 'json';
}
