/** `ledger reconcile --blazar`: one round of the comparison that the service makes again and again. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { errorText, LedgerUnavailableError } from '../../base/errors.ts';
import { createLogger } from '../../base/logger.ts';
import { sectionOf } from '../../enforcement/configuration.ts';
import type { Reconciled } from '../../ledger/reconciliation/change-lease.ts';
import { type Followed, follow } from '../../openstack/follow.ts';
import { blazarSection, keystoneSection } from '../../openstack/options.ts';
import { ExitCode, onOneLine, UsageError } from '../output.ts';
import { Progress } from '../progress.ts';
import { systemUser, withLedger } from './access.ts';
import { announce, printReconciled, type ReconcileFlags, resume } from './reconciled.ts';

/** A process that is gone is waited for as long, in milliseconds. */
const PATIENCE = 40_000;

export async function reconcileWithBlazar(flags: ReconcileFlags): Promise<void> {
  for (const name of ['project', 'empty'] as const) {
    if (flags[name] !== undefined) {
      throw new UsageError(`--${name} is for a list in a file: with --blazar the list is of all projects`);
    }
  }
  await withLedger(flags, async ({ ledger, configuration }) => {
    const { UsageEnforcement } = await import('../../enforcement/enforcement.ts');
    const logger = createLogger('warn');
    const enforcement = await UsageEnforcement.fromConfiguration(configuration, { logger });
    const done: Reconciled[] = [];
    let followed: Followed | undefined;
    try {
      const { keystone, claimants } = enforcement;
      if (keystone === undefined) {
        throw new UsageError('--blazar needs the account for Blazar in [keystone], which has no auth_url');
      }
      if (claimants.length === 0) {
        throw new UsageError('no enabled filter uses the ledger: there is nothing to compare with Blazar');
      }
      const { endpoint, reconcile_grace: grace } = sectionOf(configuration, blazarSection);
      const { region_name } = sectionOf(configuration, keystoneSection);
      const exemptProjects = await enforcement.exemptProjectIds();
      const progress = new Progress('corrected leases');
      const round = () =>
        follow({
          ...{ ledger, keystone, endpoint, claimants },
          region: flags.region ?? region_name,
          exemptProjects,
          grace: flags.olderThan ?? grace,
          isDryRun: flags.dryRun ?? false,
          holder: `${hostname()}/${process.pid}/${randomUUID()}`,
          every: 0,
          who: systemUser(),
          reason: flags.reason ?? null,
          signal: undefined,
          report: (one) => {
            done.push(one);
            progress.show(done.length);
          },
        }).finally(() => progress.end());
      const late = performance.now() + PATIENCE;
      followed = await round();
      while (followed.kind === 'held' && performance.now() < late) {
        await pause(500);
        followed = await round();
      }
      if (followed.kind === 'done') {
        const isWhole = followed.doubts.length === 0;
        await resume({ ledger }, isWhole ? done : [...done, ...UNKNOWN], flags);
      }
    } catch (thrown) {
      if (thrown instanceof UsageError || thrown instanceof LedgerUnavailableError) {
        throw thrown;
      }
      failed(errorText(thrown));
    } finally {
      await enforcement.close();
      await announce({ ledger, configuration }, done, flags);
      // Also when it failed half way: what was done before stays done.
      if (followed?.kind === 'done' || done.length > 0) {
        await printReconciled(done, flags);
      }
    }
    if (followed?.kind === 'held') {
      failed(`another process compares the ledger with Blazar: ${followed.holder}`);
    }
    for (const doubt of followed?.kind === 'done' ? followed.doubts : []) {
      failed(`leases that are not in the list were not released: ${doubt}`);
    }
  });
}

/** A lease that is not recorded: the list is not complete. */
const UNKNOWN: readonly Reconciled[] = [
  {
    outcome: 'left',
    row: null,
    leaseId: null,
    projectId: null,
    userId: null,
    name: '',
    start: 0n,
    end: 0n,
    note: null,
  },
];

function failed(why: string): void {
  process.stderr.write(`error: ${onOneLine(why)}\n`);
  process.exitCode = ExitCode.failed;
}
