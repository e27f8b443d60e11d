/** The metrics of all workers together, and of the primary. */
import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  type Metric,
  Registry,
} from 'prom-client';
import type { DecisionLogObserver } from '../../decisions/log.ts';

/** One metric as prom-client writes it as JSON. */
interface WrittenMetric {
  readonly name: string;
  readonly type: string;
  readonly aggregator: string;
}

const PREFIX = 'blazar_enforcement_';

/** What is the same for all workers, or known by one of them, must not be added up. Everything else is summed, as prom-client does. */
const TOGETHER: Readonly<Record<string, 'max' | 'min' | 'average'>> = {
  ...inEach('max', [
    ...['generation', 'external_breaker_state'],
    ...['ledger_clock_behind_seconds', 'ledger_budgets', 'budget_amount_hours', 'budget_taken_hours'],
    ...['budget_left_hours', 'budgets_omitted', 'outbox_waiting', 'outbox_oldest_seconds', 'outbox_dead'],
    ...['kubernetes_policies', 'kubernetes_source_age_seconds', 'kubernetes_status_writer'],
    ...['blazar_leases', 'skypilot_clusters'],
  ]),
  ...inEach('min', ['configuration_valid', 'ledger_available']),
  ...inEach('max', ['blazar_last_round_age_seconds', 'skypilot_last_round_age_seconds']),
  process_start_time_seconds: 'min',
  // Beside the limit of one process.
  process_open_fds: 'max',
  process_max_fds: 'min',
};

function inEach<How extends string>(how: How, names: readonly string[]): Record<string, How> {
  return Object.fromEntries(names.map((name) => [PREFIX + name, how]));
}

const ENDS = ['died', 'hung', 'not started'] as const;
export type EndKind = (typeof ENDS)[number];

export class WholeMetrics implements DecisionLogObserver {
  readonly #registry = new Registry();
  /** What each worker has said last. */
  readonly #last = new WeakMap<object, string>();
  /** Of workers that are gone: counters never go back. */
  #gone: WrittenMetric[] = [];
  readonly #dropped = this.#counter('decision_log_dropped_total', 'Decisions that are missing from the log.');
  readonly #failed = this.#counter('decision_log_errors_total', 'Failed writes to the decision log.');
  readonly #ended = this.#counter(
    'worker_ends_total',
    'Workers that ended without being told to: died, hung and were killed, or did not start.',
    ['reason'],
  );

  /** `running`: how many workers answer requests. */
  constructor(workers: number, running: () => number) {
    for (const reason of ENDS) {
      this.#ended.inc({ reason }, 0);
    }
    const registers = [this.#registry];
    const gauge = (name: string, help: string, read: () => number) =>
      new Gauge({
        ...{ name: PREFIX + name, help, registers },
        collect() {
          this.set(read());
        },
      });
    gauge('workers', 'Workers that the configuration asks for.', () => workers);
    gauge('workers_running', 'Workers that answer requests.', running);
    collectDefaultMetrics({ register: this.#registry });
  }

  dropped(count: number): void {
    this.#dropped.inc(count);
  }

  failed(): void {
    this.#failed.inc();
  }

  ended(reason: EndKind): void {
    this.#ended.inc({ reason });
  }

  /** `own`: what it says of itself; `undefined` = it does not answer, and what it said last counts. */
  heard(worker: object, own: string | undefined): void {
    if (own !== undefined) {
      this.#last.set(worker, own);
    }
  }

  /** What it has counted stays, as of when it was last asked. */
  async gone(worker: object): Promise<void> {
    const last = this.#last.get(worker);
    this.#last.delete(worker);
    if (last !== undefined) {
      const kept = readMetrics(last).filter(({ type }) => type === 'counter' || type === 'histogram');
      this.#gone = (await together([this.#gone, kept]).getMetricsAsJSON()) as unknown as WrittenMetric[];
    }
  }

  /** The text for Prometheus. */
  async text(workers: readonly object[]): Promise<string> {
    const all = workers.flatMap((worker) => {
      const last = this.#last.get(worker);
      return last === undefined ? [] : [readMetrics(last)];
    });
    const own = (await this.#registry.getMetricsAsJSON()) as unknown as WrittenMetric[];
    return together([...all, this.#gone, own]).metrics();
  }

  #counter(name: string, help: string, labelNames: string[] = []): Counter {
    return new Counter({ name: PREFIX + name, help, labelNames, registers: [this.#registry] });
  }
}

function readMetrics(json: string): WrittenMetric[] {
  return JSON.parse(json) as WrittenMetric[];
}

function together(parts: readonly (readonly WrittenMetric[])[]): Registry {
  const named = parts.map((part) =>
    part.map((metric) => ({ ...metric, aggregator: TOGETHER[metric.name] ?? metric.aggregator })),
  );
  return AggregatorRegistry.aggregate(named as unknown as Metric[]);
}
