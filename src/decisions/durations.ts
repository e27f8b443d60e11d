import { createHistogram } from 'node:perf_hooks';

/** In milliseconds. Quantiles are accurate to 0.1 percent, and the longest is exact. */
export interface DurationQuantiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Durations in memory that does not grow with their number: a histogram of whole microseconds, which is what the log holds. */
export class Durations {
  readonly #histogram = createHistogram({ highest: Number.MAX_SAFE_INTEGER, figures: 3 });
  #max = 0;

  add(milliseconds: number): void {
    const microseconds = Math.min(Math.round(milliseconds * 1000), Number.MAX_SAFE_INTEGER);
    this.#histogram.record(Math.max(microseconds, 1));
    this.#max = Math.max(this.#max, milliseconds);
  }

  quantiles(): DurationQuantiles {
    // The histogram names the upper end of a range of values, which may be above the longest.
    const quantile = (percent: number) => Math.min(this.#histogram.percentile(percent) / 1000, this.#max);
    return { p50: quantile(50), p90: quantile(90), p99: quantile(99), max: this.#max };
  }
}
