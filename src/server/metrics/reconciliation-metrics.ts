/** Metrics of reconciliation rounds. */
import type { Counter, Gauge, Histogram } from 'prom-client';
import type { Reconciled } from '../../ledger/reconciliation/change-lease.ts';
import type { Settlement } from '../../ledger/reconciliation/settle-cluster.ts';
import type { Instruments } from './instruments.ts';

/**
 * `complete`: ledger and other system agree now. `doubtful`: not everything was released. `failed`: nothing
 * was compared. `elsewhere`: another process has done it.
 */
type ReconciliationOutcome = 'complete' | 'doubtful' | 'failed' | 'elsewhere';

interface ReconciliationMetricsOptions<Kind extends string> {
  readonly peer: 'Blazar' | 'SkyPilot';
  readonly kinds: readonly Kind[];
  /** What the other system lists: the end of the metric's name, and its help. */
  readonly listed: { readonly name: string; readonly help: string };
  /** The condition without rounds: completes "Absent if …". */
  readonly absent: string;
}

/** In seconds. */
const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600];
const OUTCOMES: readonly ReconciliationOutcome[] = ['complete', 'doubtful', 'failed', 'elsewhere'];

export class ReconciliationMetrics<Kind extends string> {
  readonly #rounds: Counter;
  readonly #seconds: Histogram;
  readonly #changes: Counter;
  readonly #listed: Gauge;
  /** The end of the last complete round, by `performance.now()`; `undefined` = no rounds. */
  #since: number | undefined;

  constructor(all: Instruments, { peer, kinds, listed, absent }: ReconciliationMetricsOptions<Kind>) {
    const make = all.of(`${peer.toLowerCase()}_`);
    this.#rounds = make.counter<string>(
      'rounds_total',
      `Reconciliations of the ledger with ${peer}, by outcome.`,
      { outcome: OUTCOMES },
    );
    this.#seconds = make.histogram(
      'round_duration_seconds',
      `Duration of reconciliations of the ledger with ${peer}, reading its answers included.`,
      [],
      BUCKETS,
    );
    this.#changes = make.counter<string>(
      'changes_total',
      `Leases of the ledger that a reconciliation with ${peer} has changed.`,
      { kind: kinds },
    );
    this.#listed = make.gauge(listed.name, listed.help);
    this.#listed.remove();
    make.reading(
      'last_round_age_seconds',
      `Time since the last complete reconciliation of the ledger with ${peer}, by any replica. Absent if ${absent}.`,
      () => (this.#since === undefined ? undefined : Math.max(0, (performance.now() - this.#since) / 1000)),
    );
  }

  following(isActive: boolean): void {
    this.#since = isActive ? (this.#since ?? performance.now()) : undefined;
    if (!isActive) {
      this.#listed.remove();
    }
  }

  round(outcome: ReconciliationOutcome, seconds: number): void {
    this.#rounds.inc({ outcome });
    if (outcome !== 'elsewhere') {
      this.#seconds.observe(seconds);
    }
  }

  /** `age`: seconds since it ended. Ignored after rounds have stopped. */
  completed(age: number): void {
    if (this.#since !== undefined) {
      this.#since = Math.max(this.#since, performance.now() - age * 1000);
    }
  }

  changed(kind: Kind): void {
    this.#changes.inc({ kind });
  }

  listed(count: number): void {
    if (this.#since !== undefined) {
      this.#listed.set(count);
    }
  }
}

type ChangeKind = Exclude<Reconciled['outcome'], 'left'>;

export class FollowerMetrics extends ReconciliationMetrics<ChangeKind> {
  readonly #overdue: Gauge;

  constructor(make: Instruments) {
    super(make, {
      peer: 'Blazar',
      kinds: ['released', 'recorded', 'corrected', 'identified'],
      listed: {
        name: 'leases',
        help: 'Leases that Blazar listed at the last reconciliation, in any state.',
      },
      absent: 'Blazar is not followed',
    });
    this.#overdue = make
      .of('blazar_')
      .gauge(
        'overdue_leases',
        'Leases in use five minutes after their end, which Blazar has not ended, at the last reconciliation by this replica.',
      );
  }

  override following(isActive: boolean): void {
    super.following(isActive);
    if (!isActive) {
      this.#overdue.set(0);
    }
  }

  overdue(count: number): void {
    this.#overdue.set(count);
  }
}

/**
 * `undecided`: no policy decided about the cluster. `autostop-off`: autostop was switched off after the
 * launch. `exceeded`: the cluster is up beyond a limit. `unreadable`: the cluster could not be compared.
 */
type SkypilotAlert = 'undecided' | 'autostop-off' | 'exceeded' | 'unreadable';

const ALERTS: readonly SkypilotAlert[] = ['undecided', 'autostop-off', 'exceeded', 'unreadable'];

export class SkypilotMetrics extends ReconciliationMetrics<Settlement['outcome']> {
  readonly #alerts: Counter;

  constructor(make: Instruments) {
    super(make, {
      peer: 'SkyPilot',
      kinds: ['recorded', 'continued', 'corrected', 'ended', 'released'],
      listed: {
        name: 'clusters',
        help: 'Clusters that SkyPilot listed at the last reconciliation, with those that ended within a day.',
      },
      absent: 'SkyPilot is not asked',
    });
    this.#alerts = make.counter<string>(
      'skypilot_alerts_total',
      'What a reconciliation with SkyPilot has found that no policy decided, by kind.',
      { kind: ALERTS },
    );
  }

  alert(kind: SkypilotAlert): void {
    this.#alerts.inc({ kind });
  }
}
