/** What the rounds that compare the ledger with Blazar count. */
import type { Registry } from 'prom-client';
import type { Reconciled } from '../../ledger/reconciliation/change-lease.ts';
import { RoundMetrics } from './round-metrics.ts';

type ChangeKind = Exclude<Reconciled['outcome'], 'left'>;

export class FollowerMetrics extends RoundMetrics<ChangeKind> {
  constructor(registry: Registry) {
    super(registry, {
      peer: 'Blazar',
      kinds: ['released', 'recorded', 'corrected', 'identified'],
      listed: {
        name: 'leases',
        help: 'Leases that Blazar listed in the last comparison, in whatever state.',
      },
      absent: 'Blazar is not followed',
    });
  }
}
