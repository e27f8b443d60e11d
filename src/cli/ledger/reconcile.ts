/** `ledger reconcile`: compares the ledger with Blazar's leases, and corrects it. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import { errorText, LedgerUnavailableError } from '../../base/errors.ts';
import { createLogger } from '../../base/logger.ts';
import type { UsageEnforcement } from '../../enforcement/enforcement.ts';
import { formatInstant } from '../../lease/dates.ts';
import type { Reconciled } from '../../ledger/reconciliation/change-lease.ts';
import type { Followed } from '../../server/followers/follow-blazar.ts';
import { fail, flagNamed, printJson, printRows, UsageError, warn } from '../common/output.ts';
import { Progress } from '../common/progress.ts';
import { type FormatFlags, formatFlag, parseDuration, repeatable, sourceCommand } from '../common/sources.ts';
import { type LedgerAccess, NO_DEADLINE, systemUser, withLedger } from './access.ts';
import type { LeaseList } from './lease-list.ts';

interface ReconcileFlags extends FormatFlags {
  readonly project?: readonly string[];
  readonly region?: string;
  readonly olderThan?: number;
  readonly blazar?: boolean;
  readonly dryRun?: boolean;
  readonly empty?: boolean;
  readonly releaseAll?: boolean;
  readonly resume?: boolean;
  readonly reason?: string;
}

const MORE_HELP = `
Two forms:
  reconcile --blazar   if the account in [keystone] may list the leases of all projects: complete and current.
  reconcile <file>     if this machine cannot reach Blazar, or for a list of an earlier time. It cannot tell what happened
                       since: see --older-than.`;

const TEN_YEARS = 315_360_000;

export function reconcileCommand(): Command {
  return sourceCommand(
    'reconcile',
    'Compare the ledger with the leases in Blazar: release those that do not exist, record those that are unknown, correct those that differ, and print each.',
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
      '--release-all',
      'Accept a list that has no lease in common with the ledger, and release every lease.',
    )
    .option(
      '--resume',
      'If the ledger has gone back, grant leases again even though the list is incomplete, or other regions are not reconciled.',
    )
    .option('--reason <text>', 'The reason, for the entries.')
    .addOption(formatFlag('table', 'json'))
    .addHelpText('after', MORE_HELP)
    .action(reconcile);
}

/** In seconds. */
const OLDER_THAN = 3600;
/** How long to wait for the leader lease of a process that is gone, in milliseconds. */
const PATIENCE = 40_000;

/** The result of a comparison: `doubts` explain why not everything was released. */
type Compared =
  | Pick<Extract<Followed, { kind: 'done' }>, 'kind' | 'doubts'>
  | Exclude<Followed, { kind: 'done' }>;

interface Comparison extends LedgerAccess {
  readonly flags: ReconcileFlags;
  readonly enforcement: UsageEnforcement;
  readonly done: Reconciled[];
}

async function reconcile(file: string | undefined, flags: ReconcileFlags): Promise<void> {
  refuseContradictions(file, flags);
  await withLedger(flags, async (access) => {
    const list = file === undefined ? undefined : await readList(file, access, flags);
    const { UsageEnforcement: Enforcement } = await import('../../enforcement/enforcement.ts');
    const logger = createLogger('warn');
    const enforcement = await Enforcement.fromConfiguration(access.configuration, { logger });
    const done: Reconciled[] = [];
    const comparison = { ...access, flags, enforcement, done };
    let result: Compared | undefined;
    try {
      result = await (list === undefined ? withBlazar(comparison) : withList(comparison, list));
      if (result.kind === 'done') {
        await resume(comparison, result.doubts.length === 0);
      }
    } catch (thrown) {
      const isKnown = thrown instanceof UsageError || thrown instanceof LedgerUnavailableError;
      if (list !== undefined || isKnown) {
        throw thrown;
      }
      fail(errorText(thrown));
    } finally {
      await enforcement.close();
      await announce(access, done, flags);
      // Also after a failure: completed steps are kept.
      if (result?.kind === 'done' || done.length > 0) {
        await printReconciled(done, flags);
      }
    }
    if (result?.kind === 'held') {
      fail(`another process compares the ledger with Blazar: ${result.holder}`);
    }
    for (const doubt of result?.kind === 'done' ? result.doubts : []) {
      fail(`leases that are not in the list were not released: ${doubt}`);
    }
  });
}

function refuseContradictions(file: string | undefined, flags: ReconcileFlags): void {
  if (flags.blazar === true && file !== undefined) {
    throw new UsageError('expected a file or --blazar, not both');
  }
  const name = (['project', 'empty', 'releaseAll'] as const).find((one) => flags[one] !== undefined);
  if (flags.blazar === true && name !== undefined) {
    throw new UsageError(
      `${flagNamed(name)} is for a list in a file: with --blazar the list is of all projects`,
    );
  }
  if (flags.blazar !== true && file === undefined) {
    throw new UsageError('expected a file with a list of leases, or --blazar');
  }
}

async function readList(
  file: string,
  { ledger }: LedgerAccess,
  { empty }: ReconcileFlags,
): Promise<LeaseList> {
  const { readLeaseList } = await import('./lease-list.ts');
  const list = await readLeaseList(file, ledger.now());
  if (list.ids.size === 0 && empty !== true) {
    throw new UsageError('the list is empty: with --empty, every lease of the ledger is released');
  }
  return list;
}

async function withList(comparison: Comparison, list: LeaseList): Promise<Compared> {
  const { ledger, enforcement, flags, done } = comparison;
  const { reconcileList, UnrelatedListError } = await import('../../ledger/reconciliation/reconcile.ts');
  const options = {
    region: await regionOf(comparison, list, flags),
    projectIds: flags.project === undefined ? undefined : new Set(flags.project),
    olderThan: BigInt(flags.olderThan ?? OLDER_THAN),
    isDryRun: flags.dryRun ?? false,
    claimants: enforcement.claimants,
    exemptProjects: await enforcement.exemptProjectIds(),
    ids: flags.releaseAll || flags.empty ? undefined : list.ids,
    who: systemUser(),
    reason: flags.reason ?? null,
  };
  const progress = new Progress('leases');
  const seen = (leases: number, all: number) => {
    progress.total = all;
    return progress.show(leases);
  };
  try {
    for await (const one of reconcileList(ledger, list.leases, options, NO_DEADLINE, seen)) {
      done.push(one);
    }
  } catch (thrown) {
    if (thrown instanceof UnrelatedListError) {
      throw new UsageError(
        `${thrown.message}: it may be the list of another cloud or region. With --release-all, ${thrown.count} leases of the ledger are released`,
      );
    }
    throw thrown;
  } finally {
    progress.end();
  }
  return { kind: 'done', doubts: [] };
}

/** One round of the comparison that the service repeats. */
async function withBlazar({
  ledger,
  configuration,
  enforcement,
  flags,
  done,
}: Comparison): Promise<Followed> {
  const { sectionOf } = await import('../../enforcement/configuration.ts');
  const { follow } = await import('../../server/followers/follow-blazar.ts');
  const { blazarSection, keystoneSection } = await import('../../openstack/options.ts');
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
      ledger,
      keystone,
      endpoint,
      claimants,
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
  let followed = await round();
  while (followed.kind === 'held' && performance.now() < late) {
    await pause(500);
    followed = await round();
  }
  return followed;
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

/** Resumes a suspended ledger after a complete list. After an incomplete one, only `--resume` does. */
async function resume({ ledger, done, flags }: Comparison, isListed: boolean): Promise<void> {
  if (flags.dryRun) {
    return;
  }
  const { knownRegions } = await import('../../ledger/reconciliation/regions.ts');
  const isWhole =
    flags.project === undefined &&
    (await knownRegions(ledger, NO_DEADLINE)).length < 2 &&
    isListed &&
    !done.some(({ outcome, row }) => outcome === 'left' && row === null);
  const reason = await ledger.suspension(NO_DEADLINE);
  if (isWhole || flags.resume) {
    await ledger.resume(NO_DEADLINE);
    if (reason !== undefined) {
      warn('the ledger had gone back; it grants leases again');
    }
  } else if (reason !== undefined) {
    warn(
      'the ledger has gone back and grants no lease, since the list was incomplete; --resume makes it grant leases again',
    );
  }
}

/** Notifies the receiver in `[notifications]`, if any. A failure is a warning: the work is done. */
async function announce(
  { ledger, configuration }: Pick<LedgerAccess, 'ledger' | 'configuration'>,
  done: readonly Reconciled[],
  { dryRun, reason = null }: { readonly dryRun?: boolean | undefined; readonly reason?: string | null },
): Promise<void> {
  const { sectionOf } = await import('../../enforcement/configuration.ts');
  const { notificationsSection } = await import('../../enforcement/notifications/options.ts');
  const options = sectionOf(configuration, notificationsSection);
  if (dryRun || options.webhook_url === undefined) {
    return;
  }
  const { announceCorrections } = await import('../../enforcement/notifications/notifications.ts');
  const { Corrections } = await import('../../enforcement/notifications/events.ts');
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
    warn(`the corrections are not announced: ${why}`);
  }
}

async function printReconciled(done: readonly Reconciled[], flags: ReconcileFlags): Promise<void> {
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
  await printRows(done, {
    WHAT: ({ outcome }) => outcome,
    ROW: ({ row }) => row && `#${row}`,
    LEASE: ({ leaseId }) => leaseId,
    PROJECT: ({ projectId }) => projectId,
    USER: ({ userId }) => userId,
    NAME: ({ name }) => name,
    START: ({ start }) => formatInstant(start),
    END: ({ end }) => formatInstant(end),
    NOTE: ({ note }) => note,
  });
  if (flags.dryRun) {
    process.stdout.write('Nothing was written: --dry-run.\n');
  }
}
