/** Metrics of scheduling policies, and of the cluster that they come from. */
import type { Counter, Histogram } from 'prom-client';
import type { DecidedAdmission } from '../../kubernetes/admission/pod-admission.ts';
import { RESTART_REASONS } from '../../kubernetes/cluster/api/contract.ts';
import type { WatchObserver } from '../../kubernetes/cluster/api/list-watch.ts';
import type { ReviewObserver } from '../../kubernetes/cluster/live/access-review.ts';
import type { LivePolicy, SourceHealth } from '../../kubernetes/cluster/live/contract.ts';
import type {
  EventOutcome,
  StatusObserver,
  StatusOutcome,
} from '../../kubernetes/cluster/status/conditions.ts';
import type { Reason } from '../../kubernetes/policies/rules/reason.ts';
import type { Instruments } from './instruments.ts';

export interface FollowedSource {
  readonly health: SourceHealth;
  /** How long it has been followed, in seconds. */
  readonly followedFor: number;
  readonly policies: Iterable<Pick<LivePolicy, 'mistake' | 'enforcedGeneration'>>;
}

/** In seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** Maximum number of policies with their own label: the first ones that refuse something. */
const MAX_POLICIES = 200;
/** Not a valid name of a policy. */
const OTHERS = '(others)';
/** Per review: a pod may have thousands of tolerations. */
const MAX_REASONS = 200;
const STATES = ['enforced', 'outdated', 'invalid'] as const;
const ANSWERS = ['cached', 'asked', 'failed'] as const;
const OUTCOMES = ['allowed', 'denied', 'failed'] as const;

export class KubernetesMetrics implements ReviewObserver {
  readonly #refusals: Counter;
  readonly #restarts: Counter;
  readonly #lists: Histogram;
  readonly #reviews: Histogram;
  readonly #answers: Counter;
  readonly #named = new Set<string>();
  /** Whether `#reviews` is initialized: `zero` resets its counts. */
  #isFollowing = false;

  /** `source`: `undefined` = policies come from files, or there are none. */
  constructor(make: Instruments, source: () => FollowedSource | undefined) {
    this.#refusals = make.counter<string>(
      'refusals_total',
      'Pods and bindings that a scheduling policy refuses, or would refuse in audit mode, by the part of the pod that does not fit.',
      ['policy', 'rule', 'mode'],
    );
    this.#restarts = make.counter<string>(
      'watch_restarts_total',
      'Watches of the API server that ended and were started again, by reason.',
      ['resource', 'reason'],
    );
    this.#lists = make.histogram<string>(
      'list_duration_seconds',
      'Duration of reading all objects of one kind from the API server.',
      ['resource'],
      BUCKETS,
    );
    this.#reviews = make.histogram<string>(
      'access_review_duration_seconds',
      'Duration of SubjectAccessReviews, by outcome; failed: no usable answer.',
      ['outcome'],
      BUCKETS,
    );
    this.#answers = make.counter<string>(
      'access_answers_total',
      'Questions which policies an account may use: answered from memory, by asking the API server, or not at all.',
      { how: ANSWERS },
    );
    make.gauge(
      'policies',
      'Scheduling policies of the cluster: enforced as they are, outdated (invalid, the last valid generation is enforced), or invalid (never valid). Absent with source = files.',
      ['state'],
      (gauge) => {
        gauge.reset();
        const followed = source();
        if (followed !== undefined && followed.health.state !== 'starting') {
          const counts = countsOf(followed.policies);
          for (const state of STATES) {
            gauge.set({ state }, counts[state]);
          }
        }
      },
    );
    make.reading(
      'source_age_seconds',
      'How old the policies of the cluster may be: 0 while they are followed; until they are read first, the time since the start. Absent with source = files.',
      () => {
        const followed = source();
        return followed && (followed.health.ageSeconds ?? followed.followedFor);
      },
    );
  }

  /** For the list and watch of one kind of object. */
  watching(resource: string): WatchObserver {
    // Starts at zero, so that the first restart is visible as an increase.
    for (const reason of RESTART_REASONS) {
      this.#restarts.inc({ resource, reason }, 0);
    }
    if (!this.#isFollowing) {
      this.#isFollowing = true;
      for (const outcome of OUTCOMES) {
        this.#reviews.zero({ outcome });
      }
    }
    return {
      listed: (seconds) => this.#lists.observe({ resource }, seconds),
      restarted: (reason) => this.#restarts.inc({ resource, reason }),
    };
  }

  reviewed(outcome: (typeof OUTCOMES)[number], seconds: number): void {
    this.#reviews.observe({ outcome }, seconds);
  }

  answered(how: (typeof ANSWERS)[number]): void {
    this.#answers.inc({ how });
  }

  /** Counts the policies that refuse a pod, each policy and part once. */
  judged({ reasons, tried }: Pick<DecidedAdmission, 'reasons' | 'tried'>): void {
    this.#refused(reasons, 'enforce');
    this.#refused(tried, 'audit');
  }

  #refused(reasons: readonly Reason[], mode: 'enforce' | 'audit'): void {
    if (reasons.length === 0) {
      return;
    }
    const seen = new Set<string>();
    for (const { field, policies } of reasons.slice(0, MAX_REASONS)) {
      const rule = ruleOf(field);
      for (const name of policies.length === 0 ? [''] : policies.slice(0, MAX_REASONS)) {
        const policy = this.#label(name);
        const key = `${rule} ${policy}`;
        if (!seen.has(key)) {
          seen.add(key);
          this.#refusals.inc({ policy, rule, mode });
        }
      }
    }
  }

  #label(policy: string): string {
    if (policy === '' || this.#named.has(policy)) {
      return policy;
    }
    if (this.#named.size >= MAX_POLICIES) {
      return OTHERS;
    }
    this.#named.add(policy);
    return policy;
  }
}

const RULES = new Set([
  'schedulerName',
  'priorityClassName',
  'nodeName',
  'nodeSelector',
  'tolerations',
  'affinity',
  'topologySpreadConstraints',
  'metadata',
]);

/** `tolerations[2]`, `nodeSelector disk`: only the first word, since users may choose the rest. */
function ruleOf(field: string): string {
  const part = /^[A-Za-z]*/.exec(field)?.[0] ?? '';
  return part === 'metadata' ? 'invalid' : RULES.has(part) ? part : 'other';
}

function countsOf(policies: FollowedSource['policies']): Record<(typeof STATES)[number], number> {
  const counts = { enforced: 0, outdated: 0, invalid: 0 };
  for (const { mistake, enforcedGeneration } of policies) {
    counts[mistake === undefined ? 'enforced' : enforcedGeneration === undefined ? 'invalid' : 'outdated'] +=
      1;
  }
  return counts;
}

const STATUS_OUTCOMES: readonly StatusOutcome[] = ['written', 'conflict', 'gone', 'refused', 'failed'];
const EVENT_OUTCOMES: readonly EventOutcome[] = ['sent', 'repeated', 'dropped', 'failed'];

/** `isLeader`: `undefined` = no replica with this configuration writes. */
export function kubernetesStatusMetrics(
  make: Instruments,
  isLeader: () => boolean | undefined,
): StatusObserver {
  const writes = make.counter(
    'status_writes_total',
    'Attempts of this process to write the status of a scheduling policy, by outcome.',
    { outcome: STATUS_OUTCOMES },
  );
  const events = make.counter(
    'events_total',
    'Events of Kubernetes about refused pods and invalid policies, by outcome.',
    { outcome: EVENT_OUTCOMES },
  );
  make.reading(
    'status_writer',
    'Whether this replica is the one that writes the status of scheduling policies: 1 or 0. Absent if none writes.',
    () => {
      const leads = isLeader();
      return leads === undefined ? undefined : Number(leads);
    },
  );
  return {
    statusWritten: (outcome) => writes.inc({ outcome }),
    event: (outcome) => events.inc({ outcome }),
  };
}
