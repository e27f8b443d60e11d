/** `budget import` and `budget export`, on the ledger: what they read and print. */
import { basename, extname } from 'node:path';
import { readTextFile, systemErrorText } from '../../config/read-file.ts';
import type { ReadFile } from '../../ledger/budgets/file.ts';
import type { ImportReport } from '../../ledger/budgets/plan.ts';
import { typedId } from '../command-names.ts';
import { type LedgerAccess, NO_DEADLINE } from '../ledger/access.ts';
import { ExitCode, onOneLine, printJson, printTable, UsageError } from '../output.ts';
import { Progress } from '../progress.ts';

export interface BudgetFile {
  readonly path: string;
  readonly text: string;
  readonly isJson: boolean;
}

/** As many as the service takes by default. */
const MAX_BYTES = 8_388_608;

/** A file is JSON if its name ends in `.json`. @throws UsageError */
export function openBudgetFile(path: string): BudgetFile {
  try {
    return { path, text: readTextFile(path, MAX_BYTES), isJson: extname(path).toLowerCase() === '.json' };
  } catch (thrown) {
    throw new UsageError(`${path}: ${systemErrorText(thrown)}`);
  }
}

export async function importLocally(
  { ledger, configuration }: LedgerAccess,
  { path, text, isJson }: BudgetFile,
  { isDryRun, who, reason }: { isDryRun: boolean; who: string; reason: string | null },
): Promise<ImportReport> {
  const { readBudgetDocument, wantedLines } = await import('../../ledger/budgets/file.ts');
  const { importBudgets, tryImport } = await import('../../ledger/budgets/import.ts');
  const { importReport } = await import('../../ledger/budgets/plan.ts');
  const { budgetUnit } = await import('../../enforcement/budget-unit.ts');
  let file: ReadFile;
  if (isJson) {
    try {
      file = readBudgetDocument(JSON.parse(text));
    } catch (thrown) {
      throw new UsageError(`${path}: expected JSON: ${thrown instanceof Error ? thrown.message : ''}`);
    }
  } else {
    file = await (await import('../../ledger/budgets/csv.ts')).readBudgetCsv(text);
  }
  const lines = await withIds(configuration, file.lines);
  const { wanted, mistakes } = wantedLines(lines, budgetUnit(configuration));
  const all = [...file.mistakes, ...mistakes];
  const plan =
    isDryRun || all.length > 0
      ? await tryImport(ledger, wanted, NO_DEADLINE)
      : await importBudgets(ledger, wanted, { who, reason }, NO_DEADLINE);
  const sorted = [...all, ...plan.mistakes].sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  return importReport({ lines: plan.lines, mistakes: sorted }, isDryRun);
}

async function withIds(
  configuration: LedgerAccess['configuration'],
  lines: ReadFile['lines'],
): Promise<ReadFile['lines']> {
  const ids = new Map<string, string>();
  const id = async (kind: 'project' | 'user', text: unknown) => {
    if (typeof text !== 'string' || !text.includes('@')) {
      return text;
    }
    const key = `${kind} ${text}`;
    const known = ids.get(key) ?? (await typedId(configuration, kind, text));
    ids.set(key, known);
    return known;
  };
  const named: ReadFile['lines'][number][] = [];
  const progress = new Progress('lines', lines.length);
  try {
    for (const { line, values } of lines) {
      const project_id = await id('project', values.project_id);
      const user_id = await id('user', values.user_id);
      named.push({ line, values: { ...values, project_id, user_id } });
      progress.show(named.length);
    }
  } finally {
    progress.end();
  }
  return named;
}

/** Prints what was or would be set, and the mistakes. Exit code 2 if there are any. */
export async function printImport(
  { path }: BudgetFile,
  report: ImportReport,
  format: 'table' | 'json',
): Promise<void> {
  const { dry_run, lines, mistakes } = report;
  if (format === 'json') {
    printJson(report);
  } else if (mistakes.length === 0) {
    const changes = lines.filter(({ outcome }) => outcome !== 'unchanged');
    if (changes.length > 0) {
      await printTable(
        ['LINE', 'OUTCOME', 'PROJECT', 'USER', 'FROM', 'UNTIL', 'AMOUNT', 'BEFORE'],
        changes.map((one) => [
          ...[String(one.line), one.outcome, one.project_id, one.user_id ?? '', one.valid_from],
          ...[one.valid_until, one.amount, beforeText(one.before)],
        ]),
      );
    }
    const { set, changed, unchanged } = report;
    const done = dry_run ? 'a dry run; it would be' : 'done';
    process.stdout.write(`${done}: ${set} set, ${changed} changed, ${unchanged} unchanged\n`);
  }
  for (const { line, field, message } of mistakes) {
    const place = [basename(path), ...(line === null ? [] : [line])].join(':');
    const where = field === null ? '' : `${field}: `;
    process.stderr.write(`error: ${onOneLine(`${place}: ${where}${message}`)}\n`);
  }
  if (mistakes.length > 0) {
    process.exitCode = ExitCode.usage;
  }
}

export async function exportLocally(
  { ledger, configuration }: LedgerAccess,
  format: 'csv' | 'json',
  projectId: string | undefined,
): Promise<void> {
  const { exportedBudgets } = await import('../../ledger/budgets/export.ts');
  const { budgetUnit } = await import('../../enforcement/budget-unit.ts');
  const query = { projectIds: projectId === undefined ? undefined : [projectId] };
  for await (const text of await exportedBudgets(ledger, format, query, budgetUnit(configuration))) {
    process.stdout.write(text);
  }
}

function beforeText(before: ImportReport['lines'][number]['before']): string {
  return before === null ? '' : `${before.amount} until ${before.valid_until}`;
}
