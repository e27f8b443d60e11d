/** What `ledger reconcile` is told, and what it tells, wherever the list comes from. */

import { errorText } from '../../base/errors.ts';
import { sectionOf } from '../../enforcement/configuration.ts';
import { formatInstant } from '../../lease/dates.ts';
import type { Reconciled } from '../../ledger/reconciliation/change-lease.ts';
import { notificationsSection } from '../../notifications/options.ts';
import { onOneLine, printJson, printTable } from '../output.ts';
import type { SourceFlags } from '../sources.ts';
import { type LedgerAccess, NO_DEADLINE, systemUser } from './access.ts';

export interface ReconcileFlags extends SourceFlags {
  readonly format: 'table' | 'json';
  readonly project?: readonly string[];
  readonly region?: string;
  readonly olderThan?: number;
  readonly blazar?: boolean;
  readonly dryRun?: boolean;
  readonly empty?: boolean;
  readonly resume?: boolean;
  readonly reason?: string;
}

/** A complete list makes a suspended ledger grant again. After an incomplete one only `--resume` does. */
export async function resume(
  { ledger }: Pick<LedgerAccess, 'ledger'>,
  done: readonly Reconciled[],
  { dryRun, project, resume: isForced }: ReconcileFlags,
): Promise<void> {
  if (dryRun) {
    return;
  }
  const { knownRegions } = await import('../../ledger/reconciliation/regions.ts');
  const isWhole =
    project === undefined &&
    (await knownRegions(ledger, NO_DEADLINE)).length < 2 &&
    !done.some(({ outcome, row }) => outcome === 'left' && row === null);
  const reason = await ledger.suspension(NO_DEADLINE);
  if (isWhole || isForced) {
    await ledger.resume(NO_DEADLINE);
    if (reason !== undefined) {
      process.stderr.write('warning: the ledger had gone back; it grants leases again\n');
    }
  } else if (reason !== undefined) {
    process.stderr.write(
      'warning: the ledger has gone back and grants no lease, since the list was incomplete; --resume makes it grant leases again\n',
    );
  }
}

/** Tells the receiver in `[notifications]`, if there is one. A ledger that cannot keep the event is a warning: the work is done. */
export async function announce(
  { ledger, configuration }: Pick<LedgerAccess, 'ledger' | 'configuration'>,
  done: readonly Reconciled[],
  { dryRun, reason = null }: { readonly dryRun?: boolean | undefined; readonly reason?: string | null },
): Promise<void> {
  const options = sectionOf(configuration, notificationsSection);
  if (dryRun || options.webhook_url === undefined) {
    return;
  }
  const { announceCorrections } = await import('../../notifications/notifications.ts');
  const { Corrections } = await import('../../notifications/corrections.ts');
  const corrections = new Corrections();
  for (const one of done) {
    corrections.add(one);
  }
  const comparison = { who: systemUser(), reason, at: new Date(), corrections };
  const why = await announceCorrections(ledger, options, comparison).then(
    (isWritten) => (isWritten ? undefined : 'too many events are not delivered'),
    errorText,
  );
  if (why !== undefined) {
    process.stderr.write(`warning: ${onOneLine(`the corrections are not announced: ${why}`)}\n`);
  }
}

export async function printReconciled(done: readonly Reconciled[], flags: ReconcileFlags): Promise<void> {
  if (flags.format === 'json') {
    printJson({
      dry_run: flags.dryRun ?? false,
      leases: done.map(({ outcome, row, leaseId, projectId, userId, name, start, end, note }) => ({
        outcome,
        row,
        lease_id: leaseId,
        project_id: projectId,
        user_id: userId,
        name,
        start: formatInstant(start),
        end: formatInstant(end),
        note,
      })),
    });
    return;
  }
  if (done.length === 0) {
    process.stdout.write('The ledger and the list agree.\n');
    return;
  }
  await printTable(
    ['WHAT', 'ROW', 'LEASE', 'PROJECT', 'USER', 'NAME', 'START', 'END', 'NOTE'],
    done.map(({ outcome, row, leaseId, projectId, userId, name, start, end, note }) => [
      outcome,
      row === null ? '' : `#${row}`,
      leaseId ?? '',
      projectId ?? '',
      userId ?? '',
      name,
      formatInstant(start),
      formatInstant(end),
      note ?? '',
    ]),
  );
  if (flags.dryRun) {
    process.stdout.write('Nothing was written: --dry-run.\n');
  }
}
