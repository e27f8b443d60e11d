/** Reconciles the ledger with Blazar, in rounds. */

import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import type { UsageEnforcement } from '../../enforcement/enforcement.ts';
import { Corrections } from '../../enforcement/notifications/events.ts';
import { formatInstant } from '../../lease/dates.ts';
import type { Reconciled } from '../../ledger/reconciliation/change-lease.ts';
import type { ReconciliationResult } from '../../ledger/reconciliation/leader-lease.ts';
import { RowAges } from '../../ledger/reconciliation/reconcile.ts';
import { blazarSection, keystoneSection } from '../../openstack/options.ts';
import type { FollowerMetrics } from '../metrics/reconciliation-metrics.ts';
import type { Followed } from './follow-blazar.ts';
import { type Held, Reconciler, type ReconciliationTerms } from './reconciliation.ts';

interface Followable extends Held {
  readonly configuration: Configuration;
  readonly enforcement: UsageEnforcement;
}

const NOT_ENDED = 'Blazar has not ended this lease at its end: it stays in use';
const NOT_CREATED =
  'Blazar has begun to create this lease, and does not finish: nobody can use its hosts until its end';

export class Follower extends Reconciler<Followable, FollowerMetrics> {
  protected readonly lines = {
    done: 'compared the ledger with Blazar',
    doubtful: 'no lease of the ledger is released: the list of Blazar is in doubt',
    failed: 'the ledger could not be compared with Blazar',
  };
  readonly #known = new RowAges();
  /** The leases of the round that could not be compared, and the first error. */
  #failures = { count: 0, error: '' };
  #complained = '';
  /** Ids of the leases of the last round that were warned of. */
  #warned: ReadonlySet<string> = new Set();

  protected intervalOf({ configuration, enforcement }: Followable): number | undefined {
    const { reconcile_interval: interval } = sectionOf(configuration, blazarSection);
    const { keystone, ledger, claimants } = enforcement;
    const isActive = interval > 0 && keystone !== undefined && ledger !== undefined && claimants.length > 0;
    return isActive ? interval : undefined;
  }

  protected async round({
    generation,
    ...terms
  }: ReconciliationTerms<Followable>): Promise<ReconciliationResult | undefined> {
    const { configuration, enforcement } = generation;
    const { keystone, ledger: chain, claimants } = enforcement;
    if (keystone === undefined || chain === undefined) {
      return undefined;
    }
    this.#failures = { count: 0, error: '' };
    const corrections = new Corrections();
    const who = 'blazar-enforcement';
    try {
      const { follow } = await import('./follow-blazar.ts');
      const { endpoint, reconcile_grace: grace } = sectionOf(configuration, blazarSection);
      const { region_name: region } = sectionOf(configuration, keystoneSection);
      const exemptProjects = await enforcement.exemptProjectIds();
      const followed = await chain.read((ledger) =>
        follow({
          ledger,
          keystone,
          endpoint,
          region,
          claimants,
          grace,
          exemptProjects,
          isDryRun: false,
          who,
          reason: null,
          known: this.#known,
          ...terms,
          report: (one) => {
            corrections.add(one);
            this.#report(one);
          },
        }),
      );
      if (followed.kind === 'done') {
        this.#complain();
        this.#warn(followed);
      }
      return followed;
    } finally {
      // Also if the round failed halfway: earlier corrections stay.
      await enforcement.notifications?.corrected({ who, reason: null, at: new Date(), corrections });
    }
  }

  #report(one: Reconciled): void {
    const { outcome, row, leaseId, projectId, userId, note } = one;
    if (one.isFailure === true) {
      const { count, error } = this.#failures;
      this.#failures = { count: count + 1, error: error || (note ?? '') };
    }
    if (outcome === 'left') {
      return;
    }
    this.metrics.changed(outcome);
    this.logger.info(
      { outcome, lease_id: leaseId, row: String(row), project_id: projectId, user_id: userId, reason: note },
      'the ledger was corrected to match Blazar',
    );
  }

  /** Users can make leases that Blazar cannot end, or not create, and it can fail: they keep their hosts. */
  #warn({ overdue, stuck }: Extract<Followed, { kind: 'done' }>): void {
    const found = [
      ...overdue.map((one) => ({ ...one, end: one.due, message: NOT_ENDED })),
      ...stuck.map((one) => ({ ...one, message: NOT_CREATED })),
    ];
    for (const { id, projectId, end, message } of found.filter((one) => !this.#warned.has(one.id))) {
      this.logger.warn({ lease_id: id, project_id: projectId, end: formatInstant(end) }, message);
    }
    this.#warned = new Set(found.map(({ id }) => id));
    this.metrics.overdue(overdue.length);
  }

  /** Logs each error once: such leases stay as they are, and are retried in every round. */
  #complain(): void {
    const { count, error } = this.#failures;
    if (count > 0 && error !== this.#complained) {
      this.logger.error(
        { leases: count, error },
        'leases stay as they were: they could not be compared with Blazar',
      );
    }
    this.#complained = error;
  }
}
