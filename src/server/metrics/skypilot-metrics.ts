/** What the rounds that compare the ledger with SkyPilot count. */
import { Counter, type Registry } from 'prom-client';
import type { Settlement } from '../../ledger/reconciliation/settle-cluster.ts';
import { RoundMetrics } from './round-metrics.ts';

/**
 * `undecided`: a cluster that no policy was asked about. `autostop-off`: autostop was switched off after the launch. `exceeded`: a cluster is up beyond a
 * limit. `unreadable`: a cluster could not be compared.
 */
export type SkypilotAlert = 'undecided' | 'autostop-off' | 'exceeded' | 'unreadable';

const ALERTS: readonly SkypilotAlert[] = ['undecided', 'autostop-off', 'exceeded', 'unreadable'];

export class SkypilotMetrics extends RoundMetrics<Settlement['outcome']> {
  readonly #alerts: Counter;

  constructor(registry: Registry) {
    super(registry, {
      peer: 'SkyPilot',
      kinds: ['recorded', 'continued', 'corrected', 'ended', 'released'],
      listed: {
        name: 'clusters',
        help: 'Clusters that SkyPilot listed in the last comparison, with those that are gone since a day.',
      },
      absent: 'SkyPilot is not asked',
    });
    this.#alerts = new Counter({
      name: 'blazar_enforcement_skypilot_alerts_total',
      help: 'What a comparison with SkyPilot has found that no policy decided, by kind.',
      labelNames: ['kind'],
      registers: [registry],
    });
    for (const kind of ALERTS) {
      this.#alerts.inc({ kind }, 0);
    }
  }

  alert(kind: SkypilotAlert): void {
    this.#alerts.inc({ kind });
  }
}
