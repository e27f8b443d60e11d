/** The metrics of the service, for Prometheus. docs/reference/metrics.md explains the use of each. */

import { STATUS_CODES } from 'node:http';
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { DecisionLogObserver } from '../../decisions/log.ts';
import type { DecisionQueueObserver } from '../../decisions/store/queue.ts';
import type { BreakerState, HttpObserver } from '../../http/contract.ts';
import type { StatusObserver } from '../../kubernetes/cluster/status/conditions.ts';
import type { OutboxCounts } from '../../ledger/outbox/reports.ts';
import { IDENTITY_KINDS } from '../../openstack/identity-records.ts';
import type { NamesObserver } from '../../openstack/names.ts';
import { VALIDATION } from '../../skypilot/config/config-validation.ts';
import type { AuthenticationObserver } from '../authentication/keystone-authenticators.ts';
import { BudgetMetrics, type BudgetUse } from './budget-metrics.ts';
import { Cached } from './cached.ts';
import { Instruments } from './instruments.ts';
import { type FollowedSource, KubernetesMetrics, kubernetesStatusMetrics } from './kubernetes-metrics.ts';
import { decisionStoreMetrics, ledgerMetrics } from './ledger-metrics.ts';
import { FollowerMetrics, SkypilotMetrics } from './reconciliation-metrics.ts';
import { DecisionMetrics, RequestMetrics } from './request-metrics.ts';

/** In seconds, up to more than the maximum deadline, 3600. */
const BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 600, 3600, 7200,
];
/** How long a text is cached for all readers, in milliseconds. Prometheus reads less often. */
const KEPT_MS = 1000;

const UNCAUGHT_KINDS = ['rejection', 'exception'] as const;
export type UncaughtKind = (typeof UNCAUGHT_KINDS)[number];

export interface Gauges {
  underWay(): number;
  queued(): number;
  generation(): number;
  configurationIsValid(): boolean;
  /** The use of budgets; `undefined` = there is no ledger, or it does not answer. */
  budgets?(): Promise<BudgetUse | undefined>;
  tokens?: TokenSizes;
  decisionsWaiting?(): number;
  /** `undefined` = no filter has messages to deliver, or the ledger does not answer. */
  outbox?(): Promise<OutboxCounts | undefined>;
  /** `undefined` = scheduling policies do not come from a cluster. */
  cluster?(): FollowedSource | undefined;
  /** Whether this replica writes the status of scheduling policies; `undefined` = none does. */
  writesStatus?(): boolean | undefined;
  /** How many kinds of webhook configurations the cluster lacks; `undefined` = not known. */
  missingWebhooks?(): number | undefined;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #make = new Instruments(this.#registry);
  readonly #gauges: Gauges;
  readonly #text: Cached<[], Buffer>;
  readonly #budgets = new BudgetMetrics(this.#make);
  readonly requests = new RequestMetrics(this.#make);
  readonly #reloads = this.#make.counter(
    'reloads_total',
    'Reloads of the configuration: applied, or refused because of mistakes.',
    { outcome: ['applied', 'refused'] },
  );
  readonly decisions = new DecisionMetrics(this.#make, BUCKETS);
  readonly calls = callMetrics(this.#make);
  readonly ledger = ledgerMetrics(this.#make, BUCKETS);
  readonly follower = new FollowerMetrics(this.#make);
  readonly skypilot = new SkypilotMetrics(this.#make);
  readonly tokens: AuthenticationObserver;
  readonly decisionStore: DecisionQueueObserver;
  readonly kubernetes: KubernetesMetrics;
  readonly kubernetesStatus: StatusObserver;
  readonly decisionLog = decisionLogMetrics(this.#make);
  readonly names = nameMetrics(this.#make);
  readonly overloadRefusals = this.#make.counter(
    'overload_refusals_total',
    'Requests that were refused with 503, because the queue was full or they waited too long.',
  );
  readonly credentialReloads = this.#make.counter(
    'credential_reloads_total',
    'Changes of token and certificate files: applied, or refused because of mistakes.',
    { outcome: ['applied', 'refused'] },
  );
  /** In seconds since 1970; `undefined` = http. */
  certificateExpiry: number | undefined;
  readonly uncaughtErrors = this.#make.counter(
    'uncaught_errors_total',
    'Uncaught errors: unhandled promise rejections and exceptions.',
    { kind: UNCAUGHT_KINDS },
  );
  /** `filter`: a policy, or `config_validation` for a request. */
  readonly skypilotMismatches = this.#make.counter(
    'skypilot_mismatches_total',
    "Requests of SkyPilot, and answers of policies, that do not match SkyPilot's schema.",
    { filter: [VALIDATION] },
  );

  /** `now`: monotonic, in milliseconds. */
  constructor(gauges: Gauges, now?: () => number) {
    const make = this.#make;
    this.#gauges = gauges;
    this.#text = new Cached(KEPT_MS, async () => Buffer.from(await this.#written()), now);
    this.tokens = tokenMetrics(make, gauges.tokens);
    this.decisionStore = decisionStoreMetrics(make, gauges.decisionsWaiting);
    this.kubernetes = new KubernetesMetrics(make.of('kubernetes_'), () => gauges.cluster?.());
    this.kubernetesStatus = kubernetesStatusMetrics(make.of('kubernetes_'), () => gauges.writesStatus?.());
    make.reading(
      'kubernetes_webhooks_missing',
      'What is missing in the webhook configurations of the cluster, or changed so that API servers ask about less than installed_webhooks say: pods may not be judged. Absent without that option.',
      () => gauges.missingWebhooks?.(),
    );
    make.reading(
      'certificate_expiry_timestamp_seconds',
      'When the certificate in use expires, in seconds since 1970. Absent with http.',
      () => this.certificateExpiry,
    );
    make.reading('decisions_under_way', 'Decisions in progress.', gauges.underWay);
    make.reading(
      'decisions_queued',
      'Decisions in the queue, because max_concurrent are in progress.',
      gauges.queued,
    );
    make.reading(
      'generation',
      'Number of the current configuration: 1 at the start, plus 1 for each reload.',
      gauges.generation,
    );
    make.reading(
      'configuration_valid',
      'Whether the configuration that was last read is in use: 1, or 0 if it had mistakes.',
      () => Number(gauges.configurationIsValid()),
    );
    collectDefaultMetrics({ register: this.#registry });
  }

  reloaded(outcome: 'applied' | 'refused'): void {
    this.#reloads.inc({ outcome });
    if (outcome === 'applied') {
      this.calls.reloaded();
      this.ledger.reloaded();
    }
  }

  /**
   * The text for Prometheus, up to a second old, and its content type. Single budgets are only included with
   * `budgets`: they contain ids of projects and users.
   */
  async exposition({ budgets }: { budgets: boolean }): Promise<{ text: Buffer; contentType: string }> {
    const { contentType } = this.#registry;
    const text = await this.#text.read();
    return { contentType, text: budgets ? Buffer.concat([text, await this.#budgets.ofEach()]) : text };
  }

  async #written(): Promise<string> {
    const { budgets, outbox } = this.#gauges;
    await Promise.all([
      budgets?.().then((use) => this.#budgets.set(use)),
      outbox?.().then((counts) => this.ledger.showOutbox(counts)),
    ]);
    return this.#registry.metrics();
  }
}

function decisionLogMetrics(make: Instruments): DecisionLogObserver {
  const dropped = make.counter(
    'decision_log_dropped_total',
    'Decisions that are missing from the decision log, because it could not be written fast enough.',
  );
  const errors = make.counter(
    'decision_log_errors_total',
    'Failed writes to the decision log; they are tried again.',
  );
  return { dropped: (count) => dropped.inc(count), failed: () => errors.inc() };
}

function nameMetrics(make: Instruments): NamesObserver {
  const missing = make.counter(
    'names_unresolved_total',
    'Names of projects, users and domains that Keystone did not return for a request. Limits by name and tag did not apply.',
    ['kind', 'reason'],
  );
  for (const kind of IDENTITY_KINDS) {
    missing.inc({ kind, reason: 'unavailable' }, 0);
  }
  return { nameMissing: (kind, reason) => missing.inc({ kind, reason }) };
}

const BREAKER_STATES: Readonly<Record<BreakerState, number>> = { closed: 0, 'half-open': 1, open: 2 };

function callMetrics(make: Instruments): HttpObserver & { reloaded(): void } {
  const durations = make.histogram(
    'external_call_duration_seconds',
    'Duration of calls to other services, by response status or kind of failure.',
    ['origin', 'outcome'],
    BUCKETS,
  );
  const breakers = make.gauge(
    'external_breaker_state',
    'State of the circuit breaker of another service: 0 closed (calls pass), 1 half-open (one is tried), 2 open (no calls).',
    ['origin'],
  );
  return {
    called: (origin, outcome, seconds) => {
      // The called service must not choose labels.
      const known = typeof outcome === 'string' || outcome in STATUS_CODES ? outcome : 'other';
      durations.observe({ origin, outcome: known }, seconds);
    },
    breakerChanged: (origin, state) => breakers.set({ origin }, BREAKER_STATES[state]),
    // New filters have their own breakers, and nothing would ever reset the old ones.
    reloaded: () => breakers.reset(),
  };
}

type TokenSizes = () => {
  readonly valid: number;
  readonly unknown: number;
  readonly underWay: number;
};

/** Shown from the start. */
const ANSWERS = [
  ...['cache', 'keystone', 'outage'].flatMap((from) => [`allowed ${from}`, `forbidden ${from}`]),
  ...['cache', 'keystone', 'form'].map((from) => `invalid ${from}`),
  ...['busy', 'outage'].map((from) => `unavailable ${from}`),
];

function tokenMetrics(make: Instruments, sizes: TokenSizes | undefined): AuthenticationObserver {
  /** Added up here until the metrics are read: `inc` would cost as much per request as finding its token. */
  const answers = new Map(ANSWERS.map((answer) => [answer, 0]));
  const validations = make.counter(
    'keystone_validations_total',
    'Tokens that Keystone was asked about: valid, invalid, or failed (no usable answer).',
    { outcome: ['valid', 'invalid', 'failed'] },
  );
  make.counter(
    'keystone_token_requests_total',
    'Requests with a token of Keystone: allowed, forbidden (no role), invalid, unavailable; and what that rests on.',
    ['outcome', 'from'],
    (counter) => {
      for (const [answer, count] of answers) {
        const [outcome = '', from = ''] = answer.split(' ');
        counter.inc({ outcome, from }, count);
      }
      answers.clear();
    },
  );
  make.gauge(
    'keystone_tokens_known',
    'Tokens in memory: valid ones, and ones that Keystone does not know.',
    ['kind'],
    (gauge) => {
      const { valid = 0, unknown = 0 } = sizes?.() ?? {};
      gauge.set({ kind: 'valid' }, valid);
      gauge.set({ kind: 'unknown' }, unknown);
    },
  );
  make.reading(
    'keystone_validations_under_way',
    'Tokens that Keystone is being asked about, or that wait in the queue.',
    () => sizes?.().underWay ?? 0,
  );
  return {
    tokenValidated: (outcome) => validations.inc({ outcome }),
    countToken: (outcome, from) => {
      const answer = `${outcome} ${from}`;
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    },
  };
}
