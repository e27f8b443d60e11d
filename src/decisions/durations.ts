/** What is between two of these factors apart is one duration: a quantile is off by at most a hundredth. */
const FACTOR = 1.02;
/** The log knows no shorter ones. */
const SHORTEST_MS = 0.001;

/** In milliseconds. Quantiles are within one percent, the longest is exact. */
export interface DurationQuantiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/**
 * Durations, kept as counts by order of magnitude: some thousand numbers, however many there were. Source: DDSketch
 * (Masson, Rim, Lee 2019).
 */
export class Durations {
  readonly #counts = new Map<number, number>();
  #count = 0;
  #max = 0;

  add(milliseconds: number): void {
    const magnitude = Math.ceil(Math.log(Math.max(milliseconds, SHORTEST_MS)) / Math.log(FACTOR));
    this.#counts.set(magnitude, (this.#counts.get(magnitude) ?? 0) + 1);
    this.#count += 1;
    this.#max = Math.max(this.#max, milliseconds);
  }

  quantiles(): DurationQuantiles {
    const magnitudes = [...this.#counts].sort(([one], [other]) => one - other);
    const quantile = (part: number) => {
      let seen = 0;
      for (const [magnitude, count] of magnitudes) {
        seen += count;
        if (seen >= part * this.#count) {
          return Math.min((2 * FACTOR ** magnitude) / (FACTOR + 1), this.#max);
        }
      }
      return this.#max;
    };
    return { p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99), max: this.#max };
  }
}
