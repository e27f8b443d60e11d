/** The flags of the `scheduling-policy` commands, as parsed by commander. */
import type { MergeStrategy } from '../kubernetes/merge.ts';

/** Selects an account. */
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
