/** `ledger`: the tables, what stands in them, and whether they are right. */
import { once } from 'node:events';
import { Command, Option } from 'commander';
import { NO_DEADLINE, unitOf, wholeNumber, withLedger } from './ledger-access.ts';
import {
  amountText,
  claimObject,
  entryObject,
  LEASE_COLUMNS,
  leaseObject,
  leaseRow,
  recordObject,
} from './ledger-output.ts';
import { reconcileCommand } from './ledger-reconcile.ts';
import { upgradeCommand } from './ledger-upgrade.ts';
import { ExitCode, jsonLine, printJson, printTable, UsageError } from './output.ts';
import { addSourceFlags, formatFlag, type SourceFlags } from './sources.ts';

interface FormatFlags extends SourceFlags {
  readonly format: 'table' | 'json';
}

interface ListFlags extends FormatFlags {
  readonly project?: string;
  readonly user?: string;
  readonly state?: 'open' | 'ended';
  readonly limit: number;
}

interface ExportFlags extends SourceFlags {
  readonly project?: string;
}

/** They are held in memory. */
const MAX_LIMIT = 100_000;

export function ledgerCommand(): Command {
  return new Command('ledger')
    .description('Look after the ledger: which leases are recorded, and what they take.')
    .addCommand(upgradeCommand())
    .addCommand(
      addSourceFlags(new Command('list').description('Print leases, the newest first.'))
        .option('--project <id>', 'Those of a project.')
        .option('--user <id>', 'Those of a user.')
        .addOption(new Option('--state <state>', 'Those in a state.').choices(['open', 'ended']))
        .addOption(
          new Option('--limit <number>', 'So many at most.')
            .argParser(wholeNumber('--limit', 1, MAX_LIMIT))
            .default(100),
        )
        .addOption(formatFlag('table', 'json'))
        .action(list),
    )
    .addCommand(
      addSourceFlags(
        new Command('show').description('Print a lease, what it takes, and every entry: who, when, why.'),
      )
        .argument('<lease>', "Blazar's id of the lease, or its row in the ledger as #12.")
        .addOption(formatFlag('table', 'json'))
        .action(show),
    )
    .addCommand(
      addSourceFlags(
        new Command('export').description(
          'Print all leases, entries, budgets and their changes as JSON lines, of one moment.',
        ),
      )
        .option('--project <id>', 'Those of a project.')
        .action(exportAll),
    )
    .addCommand(
      addSourceFlags(
        new Command('verify').description(
          'Compare every balance with its entries, with the leases that are there, and budgets with their changes. Exit code: 0 they agree, 1 they do not.',
        ),
      )
        .addOption(formatFlag('table', 'json'))
        .action(verify),
    )
    .addCommand(reconcileCommand());
}

async function list(flags: ListFlags): Promise<void> {
  await withLedger(flags, async ({ ledger }) => {
    const { listLeases } = await import('../ledger/reports.ts');
    const { project: projectId, user: userId, state, limit } = flags;
    const leases = await listLeases(ledger, { projectId, userId, state, limit }, NO_DEADLINE);
    if (flags.format === 'json') {
      printJson(leases.map(leaseObject));
    } else {
      await printTable(LEASE_COLUMNS, leases.map(leaseRow));
    }
  });
}

async function show(key: string, flags: FormatFlags): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    const { leaseDetails } = await import('../ledger/reports.ts');
    const row = /^#(\d{1,18})$/.exec(key)?.[1];
    const found = await leaseDetails(ledger, row === undefined ? key : BigInt(row), NO_DEADLINE);
    if (found.length === 0) {
      throw new UsageError(`the ledger has no lease ${key}; ledger list prints those it has`);
    }
    if (flags.format === 'json') {
      printJson(
        found.map(({ lease, entries }) => ({
          ...leaseObject(lease),
          claims: lease.claims.map(claimObject),
          entries: entries.map(entryObject),
        })),
      );
      return;
    }
    for (const details of found) {
      await printDetails(details, unitOf(configuration));
    }
  });
}

type LeaseDetails = import('../ledger/reports.ts').LeaseDetails;

async function printDetails({ lease, entries }: LeaseDetails, unit: string): Promise<void> {
  const facts = Object.entries(leaseObject(lease)).map(([name, value]) => [name, String(value ?? '')]);
  await printTable(['LEASE', `#${lease.row}`], facts.slice(1));
  process.stdout.write('\n');
  const { charge } = await import('../ledger/recorded-claim.ts');
  const { isBudgetAccount } = await import('../ledger/reports.ts');
  const { secondText } = await import('./ledger-output.ts');
  const { formatInstant } = await import('../lease/dates.ts');
  await printTable(
    ['CLAIM', 'AMOUNT', 'FROM', 'UNTIL'],
    lease.claims.map((claim) => [
      claim.account,
      amountText(charge(claim), claim.kind === 'usage', unit),
      claim.kind === 'usage' ? secondText(claim.from) : '',
      claim.kind === 'usage' ? secondText(claim.until) : '',
    ]),
  );
  process.stdout.write('\n');
  await printTable(
    ['AT', 'OPERATION', 'ACCOUNT', 'CHANGE', 'WHO', 'REQUEST', 'REASON'],
    entries.map((entry) => [
      formatInstant(entry.at),
      entry.operation,
      entry.account,
      amountText(entry.delta, isBudgetAccount(entry.account), unit),
      entry.who,
      entry.request_id ?? '',
      entry.reason ?? '',
    ]),
  );
}

async function exportAll(flags: ExportFlags): Promise<void> {
  await withLedger(flags, async ({ ledger }) => {
    const { exportLedger } = await import('../ledger/reports.ts');
    const hand = async (record: Parameters<typeof recordObject>[0]) => {
      if (!process.stdout.write(jsonLine(recordObject(record)))) {
        await once(process.stdout, 'drain');
      }
    };
    await exportLedger(ledger, flags.project, hand, NO_DEADLINE);
  });
}

async function verify(flags: FormatFlags): Promise<void> {
  await withLedger(flags, async ({ ledger }) => {
    const { verifyLedger } = await import('../ledger/verify.ts');
    const { differences, compared } = await verifyLedger(ledger, NO_DEADLINE);
    if (differences.length > 0) {
      process.exitCode = ExitCode.rejected;
    }
    if (flags.format === 'json') {
      printJson({
        differences: differences.map(({ projectId: project_id, ...rest }) => ({ project_id, ...rest })),
        compared,
      });
      return;
    }
    if (differences.length > 0) {
      await printTable(
        ['PROJECT', 'WHAT', 'SUBJECT', 'SHOULD BE', 'IS'],
        differences.map(({ projectId, kind, subject, expected, found }) => [
          projectId,
          kind,
          subject,
          expected,
          found,
        ]),
      );
    }
    const { accounts, entries, leases, budgets } = compared;
    process.stdout.write(
      `${differences.length === 0 ? 'The books agree' : `${differences.length} differences`}: balances ${accounts}, entries ${entries}, leases ${leases}, budgets ${budgets}\n`,
    );
  });
}
