/** Metrics of requests and decisions: number, deciding filter, duration. */
import type { Counter, Metric, Registry } from 'prom-client';
import type { DecisionRecord, FilterRecord } from '../../decisions/record.ts';
import type { Instruments } from './instruments.ts';

type Outcome = DecisionRecord['outcome'];

/** Labels of an operation are looked up without building a key: every request counts several. */
interface OperationCounts {
  readonly durations: Durations;
  /** By deciding filter and outcome. */
  readonly decisions: Map<string, Map<Outcome, { count: number }>>;
  /** Durations of filters, by filter and outcome. */
  readonly filters: Map<string, Map<FilterRecord['outcome'], Durations>>;
}

export class RequestMetrics {
  /** By path and status, since the metrics were last read. */
  readonly #answers = new Map<string, Map<number, number>>();
  readonly #requests: Counter<'path' | 'status'>;

  constructor(make: Instruments) {
    this.#requests = make.counter(
      'http_requests_total',
      'Requests, by path and response status.',
      ['path', 'status'],
      () => this.#sumUp(),
    );
  }

  /** `path`: a path of the service, or `other`: clients must not choose labels. */
  answered(path: string, status: number): void {
    const counts = valueAt(this.#answers, path, () => new Map<number, number>());
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }

  #sumUp(): void {
    for (const [path, counts] of this.#answers) {
      for (const [status, count] of counts) {
        this.#requests.inc({ path, status }, count);
      }
    }
    this.#answers.clear();
  }
}

export class DecisionMetrics {
  readonly #operations = new Map<DecisionRecord['operation'], OperationCounts>();
  readonly #decisions: Counter<'operation' | 'filter' | 'outcome'>;
  readonly #launches: Counter<'operation' | 'filter' | 'outcome'>;
  readonly #auditRefusals: Counter<'operation' | 'filter' | 'outcome'>;
  readonly #ruleRefusals: Counter<'operation' | 'rule' | 'mode' | 'outcome'>;
  readonly #decisionSeconds: QuickHistogram<'operation'>;
  readonly #filterSeconds: QuickHistogram<'operation' | 'filter' | 'outcome'>;

  /** `buckets`: in seconds. */
  constructor(make: Instruments, buckets: readonly number[]) {
    const { registry, prefix } = make;
    const byOutcome = ['operation', 'filter', 'outcome'] as const;
    this.#decisions = make.counter(
      'decisions_total',
      'Decisions, by outcome and the filter that decided.',
      byOutcome,
      () => this.#sumUp(),
    );
    this.#launches = make.counter(
      'skypilot_launches_total',
      'Launches of SkyPilot, each counted once, by the decision that refused or allowed it.',
      byOutcome,
    );
    this.#auditRefusals = make.counter(
      'audit_refusals_total',
      'Leases and pods that each filter or policy in audit mode would have refused: it rejected them, or failed.',
      byOutcome,
    );
    this.#ruleRefusals = make.counter(
      'rule_refusals_total',
      'Leases, pods and tasks that a rule of rules_path refuses, or would refuse in audit mode: it rejects them, or fails.',
      ['operation', 'rule', 'mode', 'outcome'],
    );
    this.#decisionSeconds = new QuickHistogram(
      registry,
      `${prefix}decision_duration_seconds`,
      'Duration of decisions, including the time in the queue.',
      buckets,
    );
    this.#filterSeconds = new QuickHistogram(
      registry,
      `${prefix}filter_duration_seconds`,
      'Duration of each filter, by outcome; audited filters too.',
      buckets,
    );
    this.#launches.inc({ operation: 'skypilot.launch', filter: '', outcome: 'allowed' }, 0);
  }

  decided(record: DecisionRecord): void {
    const { operation, filter, outcome, filters, duration_ms, launch } = record;
    const counts = valueAt(this.#operations, operation, () => ({
      durations: this.#decisionSeconds.labelled({ operation }),
      decisions: new Map(),
      filters: new Map(),
    }));
    const byOutcome = valueAt(counts.decisions, filter ?? '', () => new Map<Outcome, { count: number }>());
    valueAt(byOutcome, outcome, () => ({ count: 0 })).count += 1;
    counts.durations.observe(duration_ms / 1000);
    if (launch === true) {
      this.#launches.inc({ operation, filter: filter ?? '', outcome });
    }
    for (const one of filters) {
      const took = valueAt(counts.filters, one.filter, () => new Map<FilterRecord['outcome'], Durations>());
      valueAt(took, one.outcome, () =>
        this.#filterSeconds.labelled({ operation, filter: one.filter, outcome: one.outcome }),
      ).observe(one.duration_ms / 1000);
      if (one.audit && operation !== 'end' && (one.outcome === 'rejected' || one.outcome === 'failed')) {
        this.#auditRefusals.inc({ operation, filter: one.filter, outcome: one.outcome });
      }
      if (one.rules !== undefined) {
        this.#countRules(operation, one);
      }
    }
  }

  #countRules(operation: DecisionRecord['operation'], { rules = [], audit: isAudited }: FilterRecord): void {
    for (const { rule, outcome, audit } of rules) {
      this.#ruleRefusals.inc({ operation, rule, mode: audit || isAudited ? 'audit' : 'enforce', outcome });
    }
  }

  /** Adds decisions since the last read to the counters of prom-client. */
  #sumUp(): void {
    for (const [operation, { decisions }] of this.#operations) {
      for (const [filter, byOutcome] of decisions) {
        for (const [outcome, counted] of byOutcome) {
          this.#decisions.inc({ operation, filter, outcome }, counted.count);
          counted.count = 0;
        }
      }
    }
  }
}

/** The value of a key, created on first use. */
function valueAt<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

interface Durations {
  /** Counts one duration, in seconds. */
  observe(seconds: number): void;
}

interface Counted {
  readonly labels: Readonly<Record<string, string>>;
  /** By bucket; the last one has everything longer. */
  readonly counts: number[];
  sum: number;
}

/**
 * A histogram for what every request counts: its labels are looked up once. prom-client's checks, sorts and
 * joins them for each value, which costs as much as writing the decision to the log.
 */
export class QuickHistogram<Label extends string> {
  readonly name: string;
  readonly #help: string;
  readonly #buckets: readonly number[];
  readonly #counted: Counted[] = [];

  /** `buckets`: upper bounds, in seconds, ascending. */
  constructor(registry: Registry, name: string, help: string, buckets: readonly number[]) {
    this.name = name;
    this.#help = help;
    this.#buckets = buckets;
    // prom-client uses only the name and `get` of a metric, but its types require its own classes.
    registry.registerMetric(this as unknown as Metric);
  }

  /** Call it once per set of labels. */
  labelled(labels: Readonly<Record<Label, string>>): Durations {
    const buckets = this.#buckets;
    const counted: Counted = { labels, counts: new Array<number>(buckets.length + 1).fill(0), sum: 0 };
    this.#counted.push(counted);
    const { counts } = counted;
    return {
      observe(seconds) {
        let bucket = 0;
        while (bucket < buckets.length && seconds > (buckets[bucket] as number)) {
          bucket += 1;
        }
        counts[bucket] = (counts[bucket] as number) + 1;
        counted.sum += seconds;
      },
    };
  }

  /** For the registry, in the format of prom-client. */
  async get(): Promise<object> {
    return {
      name: this.name,
      help: this.#help,
      type: 'histogram',
      values: this.#counted.flatMap((counted) => this.#valuesOf(counted)),
    };
  }

  #valuesOf({ labels, counts, sum }: Counted): object[] {
    let total = 0;
    const buckets = counts.map((count, bucket) => {
      total += count;
      const le = this.#buckets[bucket] ?? '+Inf';
      return { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: total };
    });
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels: { ...labels }, value: sum },
      { metricName: `${this.name}_count`, labels: { ...labels }, value: total },
    ];
  }
}
