/** `ledger compact` and `ledger restore`: folds old leases into totals, and restores them. */
import type { Command } from 'commander';
import type { FoldedLease, FoldHeader } from '../../ledger/folding/folded-lease.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { ExitCode, onOneLine, printJson, UsageError, warn } from '../common/output.ts';
import { Progress } from '../common/progress.ts';
import { type FormatFlags, formatFlag, sourceCommand } from '../common/sources.ts';
import { type LedgerAccess, NO_DEADLINE, withLedger } from './access.ts';

interface CompactFlags extends FormatFlags {
  readonly before: string;
  readonly export?: string;
  readonly dryRun?: boolean;
}

interface RestoreFlags extends FormatFlags {
  readonly from: string;
}

export function compactCommand(): Command {
  return sourceCommand(
    'compact',
    'Fold leases that ended before a date into totals: they are written to a file, and their rows and entries are removed. Balances and budgets stay the same.',
  )
    .requiredOption(
      '--before <date>',
      'Only leases that ended before this date and whose end date is before it; ISO 8601, UTC without an offset. At least a day ago.',
    )
    .option(
      '--export <file>',
      'The file that keeps the leases, for ledger restore; compressed if its name ends in .gz. It must not exist.',
    )
    .option('--dry-run', 'Only print how many leases would be folded.')
    .addOption(formatFlag('table', 'json'))
    .action(compact);
}

export function restoreCommand(): Command {
  return sourceCommand(
    'restore',
    'Put leases back that ledger compact has folded, exactly as they were. Exit code: 1 = some could not be.',
  )
    .requiredOption('--from <file>', 'The file that ledger compact has written.')
    .addOption(formatFlag('table', 'json'))
    .action(restore);
}

const DAY = 86_400_000_000n;

async function compact(flags: CompactFlags): Promise<void> {
  const { toInstant, formatInstant } = await import('../../lease/dates.ts');
  const until = toInstant(flags.before);
  if (until === undefined) {
    throw new UsageError(`--before: expected a date in ISO 8601, got ${JSON.stringify(flags.before)}`);
  }
  if (flags.dryRun !== true && flags.export === undefined) {
    throw new UsageError('--export: expected the name of a file that keeps the leases, or --dry-run');
  }
  await withLedger(flags, async ({ ledger, connection }) => {
    if (until > ledger.now() - DAY) {
      throw new UsageError('--before: expected a date that is at least a day ago');
    }
    const { foldLeases } = await import('../../ledger/folding/fold.ts');
    const { FoldedFile } = await import('./folded-file.ts');
    await requireRights({ ledger, connection });
    const file =
      flags.dryRun === true || flags.export === undefined
        ? undefined
        : new FoldedFile(flags.export, { ledger: await ledgerId(ledger), until });
    const progress = new Progress('leases');
    try {
      const keep = file && ((leases: readonly FoldedLease[]) => file.keep(leases));
      const seen = (leases: number) => progress.show(leases);
      const folded = await foldLeases(ledger, { until, keep }, NO_DEADLINE, seen);
      progress.end();
      if (flags.format === 'json') {
        printJson({ ...folded, before: formatInstant(until), dry_run: flags.dryRun === true });
        return;
      }
      const { leases, entries, projects } = folded;
      const what = `leases ${leases}, entries ${entries}, projects ${projects}`;
      process.stdout.write(
        `${flags.dryRun === true ? 'Would fold' : 'Folded'} what ended before ${formatInstant(until)}: ${what}\n`,
      );
    } finally {
      progress.end();
      await file?.close();
    }
  });
}

/** Leases per transaction when restoring. */
const PIECE = 100;

async function restore(flags: RestoreFlags): Promise<void> {
  const { formatInstant } = await import('../../lease/dates.ts');
  const { readFoldedFile } = await import('./folded-file.ts');
  const { restoreLeases } = await import('../../ledger/folding/fold.ts');
  const { foldedAt } = await import('../../ledger/folding/totals.ts');
  const read = readFoldedFile(flags.from, () =>
    warn(`${flags.from}: the end of the file is missing: its last line is cut off`),
  );
  const { value: header } = await read.next();
  if (header === undefined || !('until' in header)) {
    throw new UsageError(`${flags.from}: expected a file that ledger compact has written; it has no line`);
  }
  await withLedger(flags, async ({ ledger, connection }) => {
    await requireRights({ ledger, connection });
    if ((await ledgerId(ledger)) !== header.ledger) {
      throw new UsageError(`${flags.from}: its leases are of another ledger`);
    }
    const progress = new Progress('leases');
    const sum = { restored: 0, there: 0 };
    const left: FoldedLease[] = [];
    let unknown = 0;
    try {
      for await (const { projectId, leases } of pieces(read)) {
        const done = await restoreLeases(ledger, { projectId, until: header.until }, leases, NO_DEADLINE);
        sum.restored += done.restored;
        sum.there += done.there;
        left.push(...done.left);
        unknown += done.isUnknown ? leases.length - done.there - done.left.length : 0;
        await progress.show(sum.restored + sum.there);
      }
    } finally {
      progress.end();
    }
    const still = await foldedAt(ledger, header.until, NO_DEADLINE);
    if (left.length > 0 || unknown > 0) {
      process.exitCode = ExitCode.rejected;
    }
    if (flags.format === 'json') {
      printJson({ ...sum, left: left.map(({ lease }) => lease.lease_id), unknown, still_folded: still });
      return;
    }
    process.stdout.write(`Restored leases ${sum.restored}, there already ${sum.there}\n`);
    for (const { lease } of left) {
      const id = onOneLine(lease.lease_id ?? `#${lease.id}`);
      process.stdout.write(`Not restored: ${id} was recorded again since\n`);
    }
    if (unknown > 0) {
      process.stdout.write(`Not restored: the ledger has not folded ${unknown} leases of the file\n`);
    }
    if (still > 0n) {
      const before = formatInstant(header.until);
      process.stdout.write(`Still folded before ${before}, in another file: leases ${still}\n`);
    }
  });
}

/** Consecutive leases of one project. */
async function* pieces(
  read: AsyncGenerator<FoldHeader | FoldedLease>,
): AsyncGenerator<{ projectId: string; leases: FoldedLease[] }> {
  let leases: FoldedLease[] = [];
  let projectId = '';
  for await (const one of read) {
    if (!('lease' in one)) {
      continue;
    }
    if (leases.length >= PIECE || (leases.length > 0 && one.lease.project_id !== projectId)) {
      yield { projectId, leases };
      leases = [];
    }
    projectId = one.lease.project_id;
    leases.push(one);
  }
  if (leases.length > 0) {
    yield { projectId, leases };
  }
}

async function ledgerId(ledger: Ledger): Promise<string> {
  const { rows } = await import('../../ledger/storage/database.ts');
  const query = ledger.database.queries.selectFrom('ledger').select('id').compile();
  return (await ledger.read('read', () => rows(query), NO_DEADLINE))[0]?.id ?? '';
}

async function requireRights({
  ledger,
  connection,
}: Pick<LedgerAccess, 'ledger' | 'connection'>): Promise<void> {
  if (connection.dialect === 'postgresql') {
    const { missingRights, NEEDED_FOR_FOLDING } = await import('../../ledger/storage/rights.ts');
    const missing = await missingRights(ledger.database, NEEDED_FOR_FOLDING);
    if (missing !== undefined) {
      throw new UsageError(missing);
    }
  }
}
