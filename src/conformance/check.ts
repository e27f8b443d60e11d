import type { Leases } from './leases.ts';
import type { Operation } from './operations.ts';
import type { Exchange, Target } from './target.ts';

/** One promise of the protocol, and the test of it. */
export interface Check {
  /** In kebab-case; stays the same from release to release. */
  readonly id: string;
  /** What is proven when it passes, as a sentence in the present tense. */
  readonly title: string;
  /** What the protocol says. */
  readonly protocol: string;
  /** Where it says so. */
  readonly sources: readonly string[];
  /** It is skipped where the service has no such endpoint. */
  readonly needs: readonly Operation[];
  /** Sends requests and returns the findings; empty = passed. */
  run(run: Run): Promise<Verdict> | Verdict;
}

/** What checks work with. */
export interface Run {
  readonly target: Target;
  readonly leases: Leases;
  /** Bodies of a `check-create` that the author gives. */
  readonly allowLease: string | undefined;
  readonly denyLease: string | undefined;
  /** The body of a `check-update`, likewise. */
  readonly denyUpdate: string | undefined;
  /** The body of a `commit-create`, likewise. */
  readonly denyCommit: string | undefined;
  /** How many hosts a large lease has. */
  readonly largeLeaseHosts: number;
}

/** An unexpected answer. */
export interface Finding {
  readonly expected: string;
  readonly exchange: Exchange;
}

export type Verdict = readonly Finding[] | { readonly skipped: string };

/** How a check ended. */
export interface CheckResult {
  readonly check: Check;
  readonly result: 'passed' | 'failed' | 'skipped';
  /** Why it was skipped. */
  readonly reason: string | null;
  /** What is wrong; empty unless it failed. */
  readonly findings: readonly Finding[];
  /** All its exchanges, without the ends that are reported after it. */
  readonly exchanges: readonly Exchange[];
  readonly milliseconds: number;
}
