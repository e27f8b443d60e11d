/** `ledger reconcile`: compares the ledger with the leases that Blazar has, and corrects it. */
import { Command } from 'commander';
import { createLogger } from '../../base/logger.ts';
import type { Reconciled } from '../../ledger/reconciliation/change-lease.ts';
import { UsageError } from '../output.ts';
import { Progress } from '../progress.ts';
import { addSourceFlags, formatFlag, parseDuration, repeatable } from '../sources.ts';
import { type LedgerAccess, NO_DEADLINE, systemUser, withLedger } from './access.ts';
import type { LeaseList } from './lease-list.ts';
import { announce, printReconciled, type ReconcileFlags, resume } from './reconciled.ts';

const MORE_HELP = `
Two forms:
  reconcile --blazar   if the account in [keystone] may list the leases of all projects: complete and current.
  reconcile <file>     if this machine cannot reach Blazar, or for a list of an earlier time. It cannot tell what happened
                       since: see --older-than.`;

const TEN_YEARS = 315_360_000;

export function reconcileCommand(): Command {
  return addSourceFlags(
    new Command('reconcile').description(
      'Compare the ledger with the leases in Blazar: release those that do not exist, record those that are unknown, correct those that differ, and print each.',
    ),
  )
    .argument(
      '[file]',
      "The output of openstack reservation lease list -f json, or a response of Blazar's API; - is standard input.",
    )
    .option('--blazar', 'Ask Blazar itself, with the account in [keystone], instead of reading a file.')
    .option('--project <id>', "The list has only this project's leases; repeatable.", repeatable)
    .option('--region <name>', 'The region of the list. Default: the only one in the ledger.')
    .option(
      '--older-than <duration>',
      'Leave leases as they are that were recorded or ended within this time, since they may be newer than the list: 90s, 30m, 24h, 7d. Default: 1h; with --blazar, reconcile_grace.',
      (text: string) => parseDuration('--older-than', text, TEN_YEARS),
    )
    .option('--dry-run', 'Print what would change, and write nothing.')
    .option('--empty', 'Accept an empty list, and release every lease.')
    .option(
      '--resume',
      'If the ledger has gone back, grant leases again even though the list is incomplete, or other regions are not reconciled.',
    )
    .option('--reason <text>', 'Why, for the entries.')
    .addOption(formatFlag('table', 'json'))
    .addHelpText('after', MORE_HELP)
    .action(reconcile);
}

/** In seconds. */
const OLDER_THAN = 3600;

async function reconcile(file: string | undefined, flags: ReconcileFlags): Promise<void> {
  if (flags.blazar === true) {
    if (file !== undefined) {
      throw new UsageError('expected a file or --blazar, not both');
    }
    const { reconcileWithBlazar } = await import('./reconcile-blazar.ts');
    await reconcileWithBlazar(flags);
    return;
  }
  if (file === undefined) {
    throw new UsageError('expected a file with a list of leases, or --blazar');
  }
  await withLedger(flags, async (access) => {
    const { readLeaseList } = await import('./lease-list.ts');
    const list = await readLeaseList(file, access.ledger.now());
    if (list.length === 0 && flags.empty !== true) {
      throw new UsageError('the list is empty: with --empty, every lease of the ledger is released');
    }
    const { UsageEnforcement } = await import('../../enforcement/enforcement.ts');
    const logger = createLogger('warn');
    const enforcement = await UsageEnforcement.fromConfiguration(access.configuration, { logger });
    const done: Reconciled[] = [];
    let isOver = false;
    try {
      const { reconcileList: reconciled } = await import('../../ledger/reconciliation/reconcile.ts');
      const options = {
        region: await regionOf(access, list, flags),
        projectIds: flags.project === undefined ? undefined : new Set(flags.project),
        olderThan: BigInt(flags.olderThan ?? OLDER_THAN),
        isDryRun: flags.dryRun ?? false,
        claimants: enforcement.claimants,
        exemptProjects: await enforcement.exemptProjectIds(),
        who: systemUser(),
        reason: flags.reason ?? null,
      };
      const progress = new Progress('leases');
      const seen = (leases: number, all: number) => {
        progress.total = all;
        return progress.show(leases);
      };
      try {
        for await (const one of reconciled(access.ledger, list.leases, options, NO_DEADLINE, seen)) {
          done.push(one);
        }
      } finally {
        progress.end();
      }
      isOver = true;
      await resume(access, done, flags);
    } finally {
      await enforcement.close();
      await announce(access, done, flags);
      // Also when the ledger failed half way: what was done before stays done.
      if (isOver || done.length > 0) {
        await printReconciled(done, flags);
      }
    }
  });
}

/** A list covers one region: leases of other regions are not released. */
async function regionOf(
  { ledger }: LedgerAccess,
  { leases }: LeaseList,
  { region }: ReconcileFlags,
): Promise<string> {
  if (region !== undefined) {
    return region;
  }
  const { knownRegions } = await import('../../ledger/reconciliation/regions.ts');
  const regions = await knownRegions(ledger, NO_DEADLINE);
  const [first, second] = regions;
  if (second !== undefined) {
    const names = regions.map((name) => JSON.stringify(name)).join(', ');
    throw new UsageError(
      `the ledger has leases of the regions ${names}: pass --region with that of the list`,
    );
  }
  if (first === undefined && leases.some(({ projectId, reservations }) => projectId && reservations)) {
    throw new UsageError(
      "the ledger knows no region yet: pass --region with that of the list, as in Blazar's os_region_name",
    );
  }
  return first ?? '';
}
