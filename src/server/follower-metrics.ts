/** What the rounds that compare the ledger with Blazar count. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Reconciled } from '../ledger/reconcile-lease.ts';

/**
 * `complete`: Blazar and the ledger agree now. `doubtful`: nothing, or not everything, was released. `failed`: nothing was compared.
 * `elsewhere`: another process has done it.
 */
export type RoundOutcome = 'complete' | 'doubtful' | 'failed' | 'elsewhere';
export type ChangeKind = Exclude<Reconciled['outcome'], 'left'>;

const PREFIX = 'blazar_enforcement_blazar_';
/** In seconds. */
const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600];
const OUTCOMES: readonly RoundOutcome[] = ['complete', 'doubtful', 'failed', 'elsewhere'];
const KINDS: readonly ChangeKind[] = ['released', 'recorded', 'corrected', 'identified'];

export class FollowerMetrics {
  readonly #rounds: Counter;
  readonly #seconds: Histogram;
  readonly #changes: Counter;
  readonly #leases: Gauge;
  readonly #age: Gauge;
  /** When the last complete round ended, in milliseconds of the epoch; `undefined` = Blazar is not followed. */
  #since: number | undefined;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#rounds = new Counter({
      name: `${PREFIX}rounds_total`,
      help: 'Comparisons of the ledger with Blazar, by outcome.',
      labelNames: ['outcome'],
      registers,
    });
    this.#seconds = new Histogram({
      name: `${PREFIX}round_duration_seconds`,
      help: 'Duration of comparisons of the ledger with Blazar, reading its answers included.',
      buckets: BUCKETS,
      registers,
    });
    this.#changes = new Counter({
      name: `${PREFIX}changes_total`,
      help: 'Leases of the ledger that a comparison with Blazar has changed.',
      labelNames: ['kind'],
      registers,
    });
    this.#leases = new Gauge({
      name: `${PREFIX}leases`,
      help: 'Leases that Blazar listed in the last comparison, in whatever state.',
      registers,
    });
    const age = () => this.#since;
    this.#age = new Gauge({
      name: `${PREFIX}last_round_age_seconds`,
      help: 'Time since the last complete comparison of the ledger with Blazar, by any replica. Absent if Blazar is not followed.',
      registers,
      collect() {
        const since = age();
        if (since === undefined) {
          this.remove();
        } else {
          this.set(Math.max(0, (Date.now() - since) / 1000));
        }
      },
    });
    this.#leases.remove();
    this.#age.remove();
    for (const outcome of OUTCOMES) {
      this.#rounds.inc({ outcome }, 0);
    }
    for (const kind of KINDS) {
      this.#changes.inc({ kind }, 0);
    }
  }

  /** Blazar is followed from now on, or not any more. */
  following(isActive: boolean): void {
    this.#since = isActive ? (this.#since ?? Date.now()) : undefined;
  }

  round(outcome: RoundOutcome, seconds: number): void {
    this.#rounds.inc({ outcome });
    if (outcome !== 'elsewhere') {
      this.#seconds.observe(seconds);
    }
  }

  /** `at`: in milliseconds of the epoch. */
  completed(at: number): void {
    this.#since = Math.max(this.#since ?? 0, at);
  }

  changed(kind: ChangeKind): void {
    this.#changes.inc({ kind });
  }

  listed(leases: number): void {
    this.#leases.set(leases);
  }
}
