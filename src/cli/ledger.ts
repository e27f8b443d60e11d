/** `ledger`: creates the tables, prints their content, and checks them. */

import { once } from 'node:events';
import { Command, Option } from 'commander';
import { budgetUnit } from '../enforcement/configuration.ts';
import { type CommandNames, commandNames, typedId } from './common/command-names.ts';
import { addEndpointFlags, type EndpointFlags, localOrRemote } from './common/endpoint.ts';
import {
  ExitCode,
  jsonLine,
  onOneLine,
  printFacts,
  printItems,
  printJson,
  printRows,
  printTable,
  UsageError,
  warn,
} from './common/output.ts';
import { Progress } from './common/progress.ts';
import {
  type FormatFlags,
  formatFlag,
  type SourceFlags,
  sourceCommand,
  wholeNumber,
} from './common/sources.ts';
import { configuredLedger, NO_DEADLINE, reportingFailures, withLedger } from './ledger/access.ts';
import { compactCommand, restoreCommand } from './ledger/compact.ts';
import type { LeaseSelection, ListedLeases } from './ledger/listed-leases.ts';
import {
  amountText,
  entryObject,
  leaseColumns,
  leaseObject,
  recordObject,
  takenObject,
} from './ledger/output.ts';
import { reconcileCommand } from './ledger/reconcile.ts';

interface ListFlags extends FormatFlags, EndpointFlags, LeaseSelection {}

interface ExportFlags extends SourceFlags {
  readonly project?: string;
}

/** Rows are held in memory. */
const MAX_LIMIT = 100_000;

export function ledgerCommand(): Command {
  const command = new Command('ledger')
    .description('Manage the ledger: the recorded leases, and what they take from shared limits.')
    .addCommand(upgradeCommand())
    .addCommand(
      addEndpointFlags(sourceCommand('list', 'Print leases, newest first.'))
        .option('--project <id>', "Only this project's leases.")
        .option('--user <id>', "Only this user's leases.")
        .addOption(new Option('--state <state>', 'Only leases in this state.').choices(['open', 'ended']))
        .option('--limit <number>', 'Maximum number of leases.', wholeNumber('--limit', 1, MAX_LIMIT), 100)
        .addOption(formatFlag('table', 'json'))
        .action(list),
    )
    .addCommand(
      sourceCommand(
        'show',
        'Print a lease: what it takes, and all its entries, with who made them, when and why.',
      )
        .argument('<lease>', "Blazar's id of the lease, or its row in the ledger, such as #12.")
        .addOption(formatFlag('table', 'json'))
        .action(show),
    )
    .addCommand(
      sourceCommand(
        'export',
        'Print all leases, entries, budgets and budget changes, and the totals of folded leases, as JSON lines, as of one moment.',
      )
        .option('--project <id>', 'Only what belongs to this project.')
        .action(exportAll),
    )
    .addCommand(
      sourceCommand(
        'verify',
        'Compare balances with their entries and with the open leases, and budgets with their changes. Exit code: 0 = they agree, 1 = they differ.',
      )
        .addOption(formatFlag('table', 'json'))
        .action(verify),
    )
    .addCommand(reconcileCommand())
    .addCommand(compactCommand())
    .addCommand(restoreCommand());
  for (const one of command.commands.filter((other) => other.name() !== 'list')) {
    one.addOption(new Option('--endpoint <url>').hideHelp().argParser(refuseEndpoint));
  }
  return command;
}

function refuseEndpoint(): never {
  throw new UsageError(
    '--endpoint: only ledger list asks a service; this needs the database: run it with the configuration of the service',
  );
}

async function list(flags: ListFlags): Promise<void> {
  const { localLeases, remoteLeases } = await import('./ledger/listed-leases.ts');
  await localOrRemote(
    flags,
    () => withLedger(flags, async (access) => printLeases(await localLeases(access, flags), flags)),
    async (client) => printLeases(await remoteLeases(client, flags), flags),
  );
}

async function printLeases({ leases, names, missing }: ListedLeases, { format }: FormatFlags): Promise<void> {
  if (missing !== undefined) {
    warn(missing);
  }
  await printItems(leases, format, (lease) => leaseObject(lease, names), leaseColumns(names));
}

async function show(key: string, flags: FormatFlags): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    const { leaseDetails } = await import('../ledger/reports/reports.ts');
    const row = /^#(\d{1,18})$/.exec(key)?.[1];
    const found = await leaseDetails(ledger, row === undefined ? key : BigInt(row), NO_DEADLINE);
    if (found.length === 0) {
      const { foldedText } = await import('./ledger/listed-leases.ts');
      const folded = await foldedText(ledger, undefined);
      const hint = folded === undefined ? '' : `; ${folded}`;
      throw new UsageError(`the ledger has no lease ${key}; ledger list prints its leases${hint}`);
    }
    const names = await commandNames(
      configuration,
      found.map(({ lease }) => lease),
    );
    if (flags.format === 'json') {
      printJson(
        found.map(({ lease, entries }) => ({
          ...leaseObject(lease, names),
          ...takenObject(lease),
          entries: entries.map(entryObject),
        })),
      );
      return;
    }
    for (const details of found) {
      await printDetails(details, budgetUnit(configuration), names);
    }
  });
}

type LeaseDetails = import('../ledger/reports/reports.ts').LeaseDetails;
type RecordedClaim = import('../ledger/accounting/recorded-claim.ts').RecordedClaim;

async function printDetails(
  { lease, entries }: LeaseDetails,
  unit: string,
  names: CommandNames,
): Promise<void> {
  await printFacts(['LEASE', `#${lease.row}`], leaseObject(lease, names));
  process.stdout.write('\n');
  const { charge } = await import('../ledger/accounting/recorded-claim.ts');
  const { isBudgetAccount } = await import('../ledger/reports/reports.ts');
  const { formatInstant, secondText } = await import('../lease/dates.ts');
  const claimRow = (claim: RecordedClaim) => [
    claim.account,
    amountText(charge(claim), claim.kind !== 'held', unit),
    claim.kind === 'usage' ? secondText(claim.from) : '',
    claim.kind === 'usage' ? secondText(claim.until) : '',
  ];
  await printTable(['CLAIM', 'AMOUNT', 'FROM', 'UNTIL'], lease.claims.map(claimRow));
  if (lease.unconfirmed.length > 0) {
    process.stdout.write('\n');
    await printTable(
      ['UNCONFIRMED', 'CLAIM', 'AMOUNT', 'FROM', 'UNTIL'],
      lease.unconfirmed.flatMap((claims, index) =>
        claims.map((claim) => [String(index + 1), ...claimRow(claim)]),
      ),
    );
  }
  process.stdout.write('\n');
  await printRows(entries, {
    AT: ({ at }) => formatInstant(at),
    OPERATION: ({ operation }) => operation,
    ACCOUNT: ({ account }) => account,
    CHANGE: ({ account, delta }) => amountText(delta, isBudgetAccount(account), unit),
    WHO: ({ who }) => who,
    REQUEST: ({ request_id }) => request_id,
    REASON: ({ reason }) => reason,
  });
}

async function exportAll(flags: ExportFlags): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    const { exportLedger } = await import('../ledger/reports/reports.ts');
    const projectId = flags.project && (await typedId(configuration, 'project', flags.project));
    const hand = async (record: Parameters<typeof recordObject>[0]) => {
      if (!process.stdout.write(jsonLine(recordObject(record)))) {
        await once(process.stdout, 'drain');
      }
    };
    await exportLedger(ledger, projectId, hand, NO_DEADLINE);
    const { foldedText } = await import('./ledger/listed-leases.ts');
    const missing = await foldedText(ledger, projectId || undefined);
    if (missing !== undefined) {
      warn(missing);
    }
  });
}

async function verify(flags: FormatFlags): Promise<void> {
  await withLedger(flags, async ({ ledger }) => {
    const { verifyLedger } = await import('../ledger/reports/verify.ts');
    const progress = new Progress('leases');
    const { differences, compared } = await verifyLedger(ledger, NO_DEADLINE, (leases, all) => {
      progress.total = all;
      return progress.show(leases);
    }).finally(() => progress.end());
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
      await printRows(differences, {
        PROJECT: ({ projectId }) => projectId,
        WHAT: ({ kind }) => kind,
        SUBJECT: ({ subject }) => subject,
        'SHOULD BE': ({ expected }) => expected,
        IS: ({ found }) => found,
      });
    }
    const { accounts, entries, leases, budgets } = compared;
    process.stdout.write(
      `${differences.length === 0 ? 'The ledger is consistent' : `${differences.length} differences`}: balances ${accounts}, entries ${entries}, leases ${leases}, budgets ${budgets}\n`,
    );
  });
}

function upgradeCommand(): Command {
  return sourceCommand(
    'upgrade',
    'Create the tables of [ledger] connection, or update them. Needs no enabled filter. Tables made by a newer version are refused, and stay as they are.',
  ).action(upgrade);
}

async function upgrade(flags: SourceFlags): Promise<void> {
  const configured = await configuredLedger(flags);
  const { connection, options } = configured;
  await reportingFailures(configured, async () => {
    const { upgradeLedger } = await import('../ledger/open.ts');
    const { describeConnection } = await import('../ledger/storage/connection.ts');
    const applied = await upgradeLedger(options);
    const result = applied.length === 0 ? 'is up to date' : `applied ${applied.join(', ')}`;
    process.stdout.write(`${onOneLine(`${describeConnection(connection)}: ${result}`)}\n`);
  });
}
