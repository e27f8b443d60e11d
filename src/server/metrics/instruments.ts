/** Creates the metrics of a registry. */
import { Counter, Gauge, Histogram, type LabelValues, type Registry } from 'prom-client';

/** Label names; or label names with their values, for metrics that are shown from the start. */
type Labels<Label extends string> = readonly Label[] | Readonly<Record<Label, readonly string[]>>;

export class Instruments {
  readonly registry: Registry;
  readonly prefix: string;

  constructor(registry: Registry, prefix = 'blazar_enforcement_') {
    this.registry = registry;
    this.prefix = prefix;
  }

  /** Instruments whose names have this after the prefix. */
  of(part: string): Instruments {
    return new Instruments(this.registry, this.prefix + part);
  }

  /** `collect` adds what was not counted yet, when the metrics are read. */
  counter<Label extends string = never>(
    name: string,
    help: string,
    labels: Labels<Label> = [],
    collect?: (counter: Counter<Label>) => void,
  ): Counter<Label> {
    const counter: Counter<Label> = new Counter({
      ...this.#described(name, help, labels),
      ...(collect && { collect: () => collect(counter) }),
    });
    const known = (Array.isArray(labels) ? {} : labels) as Readonly<Record<string, readonly string[]>>;
    for (const [label, values] of Object.entries(known)) {
      for (const value of values) {
        counter.inc({ [label]: value } as LabelValues<Label>, 0);
      }
    }
    return counter;
  }

  /** `collect` sets it when the metrics are read. */
  gauge<Label extends string = never>(
    name: string,
    help: string,
    labelNames: readonly Label[] = [],
    collect?: (gauge: Gauge<Label>) => void,
  ): Gauge<Label> {
    const gauge: Gauge<Label> = new Gauge({
      ...this.#described(name, help, labelNames),
      ...(collect && { collect: () => collect(gauge) }),
    });
    return gauge;
  }

  /** A gauge that is read with the metrics; absent while `read` returns `undefined`. */
  reading(name: string, help: string, read: () => number | undefined): Gauge {
    return this.gauge(name, help, [], (gauge) => setOrRemove(gauge, read()));
  }

  /** `buckets` are in seconds. */
  histogram<Label extends string = never>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    buckets: readonly number[],
  ): Histogram<Label> {
    return new Histogram({ ...this.#described(name, help, labelNames), buckets: [...buckets] });
  }

  #described<Label extends string>(name: string, help: string, labels: Labels<Label>) {
    const labelNames = (Array.isArray(labels) ? labels : Object.keys(labels)) as Label[];
    return { name: this.prefix + name, help, labelNames, registers: [this.registry] };
  }
}

/** `undefined` = absent. */
export function setOrRemove(gauge: Gauge, value: number | undefined): void {
  gauge.remove();
  if (value !== undefined) {
    gauge.set(value);
  }
}
