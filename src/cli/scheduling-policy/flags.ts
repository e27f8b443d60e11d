/** The flags of the `scheduling-policy` commands, as parsed by commander. */
import type { MergeStrategy } from '../../kubernetes/policies/merge.ts';

/** Selects an account. */
export interface AccountFlags {
  readonly namespace?: string;
  readonly serviceAccount?: string;
}

/** Selects the cluster to ask. */
export interface ClusterFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
}

/** How pods are judged. */
export interface JudgeFlags {
  readonly configFile?: readonly string[];
  readonly mergeStrategy?: MergeStrategy;
  readonly defaultPriorityClass?: string;
}

export interface CheckFlags extends AccountFlags, ClusterFlags, JudgeFlags {
  readonly policies?: readonly string[];
  readonly cluster?: boolean;
  readonly format: 'diff' | 'json';
}

export interface MergeFlags extends AccountFlags, ClusterFlags {
  readonly policies?: readonly string[];
  readonly cluster?: boolean;
  readonly mergeStrategy: MergeStrategy;
  readonly user?: string;
  readonly group?: readonly string[];
  readonly format: 'table' | 'json';
}

export interface WhoCanFlags extends AccountFlags, ClusterFlags {
  readonly user?: string;
  readonly group?: readonly string[];
  readonly format: 'table' | 'json';
}

export interface ScanFlags extends ClusterFlags, JudgeFlags {
  readonly namespace?: readonly string[];
  readonly allNamespaces?: boolean;
  readonly selector?: string;
  readonly exemptNamespace?: readonly string[];
  readonly workloads?: boolean;
  readonly format: 'table' | 'json' | 'junit';
}

export interface ExportFlags extends ClusterFlags, JudgeFlags {
  readonly policies?: readonly string[];
  readonly cluster?: boolean;
  /** Prefix of the names of all objects. */
  readonly name: string;
  readonly exemptNamespace?: readonly string[];
  readonly warnOnly?: boolean;
  readonly strict?: boolean;
  readonly format: 'vap';
}
