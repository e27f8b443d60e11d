import type { Metric, Registry } from 'prom-client';

/** Durations with the same labels. */
export interface Durations {
  /** Counts one, in seconds. */
  observe(seconds: number): void;
}

interface Counted {
  readonly labels: Readonly<Record<string, string>>;
  /** By bucket; the last is for what is longer than all of them. */
  readonly counts: number[];
  sum: number;
}

/**
 * A histogram for what happens with every request: its labels are looked up once. That of prom-client checks, sorts and joins them for each
 * value, which costs as much as writing the decision to the log.
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
    // prom-client asks a metric for its name and `get` alone, and names the types of its own.
    registry.registerMetric(this as unknown as Metric);
  }

  /** Call it once for the same labels. */
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

  /** For the registry: a metric as prom-client describes it. */
  async get(): Promise<object> {
    return {
      name: this.name,
      help: this.#help,
      type: 'histogram',
      values: this.#counted.flatMap((counted) => this.#valuesOf(counted)),
      aggregator: 'sum',
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
