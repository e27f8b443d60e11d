/** Imports many budgets: parses the file, reports what it changes, and every mistake with its line. */

import { timedYield } from '../../base/yield-to-event-loop.ts';
import { budgetUnit } from '../../enforcement/configuration.ts';
import {
  type FileLine,
  type FileMistake,
  type ReadFile,
  type WantedLines,
  wantedLines,
} from '../../ledger/budgets/file.ts';
import { importBudgets, tryImport } from '../../ledger/budgets/import.ts';
import type { ImportPlan } from '../../ledger/budgets/plan.ts';
import { ApiError } from '../api/route.ts';
import { reasonOf } from './change-budgets.ts';
import { accountId, ledgerFor, type Requester } from './named-accounts.ts';

/**
 * Sets nothing if there is any mistake. `isDryRun`: only reports what would be set.
 *
 * @throws ApiError 404, 422, 503, LedgerUnavailableError
 */
export async function importFor(
  requester: Requester,
  file: ReadFile,
  { isDryRun, reason: why }: { readonly isDryRun: boolean; readonly reason: string },
): Promise<ImportPlan> {
  const ledger = await ledgerFor(requester);
  const reason = isDryRun ? why : reasonOf(why);
  const named = await namedLines(requester, file.lines);
  const { wanted, mistakes } = await inTurns(named.lines, budgetUnit(requester.generation.configuration));
  const all = [...file.mistakes, ...named.mistakes, ...mistakes];
  const author = { who: requester.caller.who, reason };
  const { deadline } = requester;
  const plan =
    isDryRun || all.length > 0
      ? await tryImport(ledger, wanted, deadline)
      : await importBudgets(ledger, wanted, author, deadline);
  const sorted = [...all, ...plan.mistakes].sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  return { lines: plan.lines, mistakes: sorted };
}

/** Lines that are parsed before other work may run. */
const PIECE = 200;

/** Like `wantedLines`, but yields: parsing 10,000 lines would delay leases for too long. */
async function inTurns(lines: readonly FileLine[], unit: string): Promise<WantedLines> {
  const yieldIfDue = timedYield();
  const all: WantedLines[] = [];
  for (let at = 0; at < lines.length; at += PIECE) {
    await yieldIfDue();
    all.push(wantedLines(lines.slice(at, at + PIECE), unit));
  }
  return {
    wanted: all.flatMap(({ wanted }) => wanted),
    mistakes: all.flatMap(({ mistakes }) => mistakes),
  };
}

/** Maximum names in a file: looking up more takes longer than a request may take. */
const MAX_NAMES = 1000;
const AT_ONCE = 8;

/** Replaces names by their ids if Keystone is configured. Ids are not checked. */
async function namedLines(
  requester: Requester,
  lines: readonly FileLine[],
): Promise<{ lines: readonly FileLine[]; mistakes: FileMistake[] }> {
  if (requester.generation.enforcement.keystone === undefined) {
    return { lines, mistakes: [] };
  }
  const names = new Map<string, { readonly kind: 'project' | 'user'; readonly text: string }>();
  for (const { values } of lines) {
    for (const kind of ['project', 'user'] as const) {
      const text = values[`${kind}_id`];
      if (typeof text === 'string' && text.includes('@')) {
        names.set(`${kind} ${text}`, { kind, text });
      }
    }
  }
  if (names.size > MAX_NAMES) {
    const message = `expected at most ${MAX_NAMES} different names, got ${names.size}: give ids`;
    return { lines: [], mistakes: [{ line: null, field: null, message }] };
  }
  const ids = new Map<string, string | ApiError>();
  const waiting = [...names];
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        const [key, { kind, text }] = next;
        ids.set(key, await accountOrMistake(requester, kind, text));
      }
    }),
  );
  const mistakes: FileMistake[] = [];
  const named: FileLine[] = [];
  for (const { line, values } of lines) {
    const project = ids.get(`project ${values.project_id}`) ?? values.project_id;
    const user = ids.get(`user ${values.user_id}`) ?? values.user_id;
    const wrong = [project, user].flatMap((one) => (one instanceof ApiError ? [one] : []));
    for (const { field = null, message } of wrong) {
      mistakes.push({ line, field, message });
    }
    if (wrong.length === 0) {
      named.push({ line, values: { ...values, project_id: project, user_id: user } });
    }
  }
  return { lines: named, mistakes };
}

/** A name that Keystone does not have is a mistake of the file. */
async function accountOrMistake(
  requester: Requester,
  kind: 'project' | 'user',
  text: string,
): Promise<string | ApiError> {
  try {
    return await accountId(requester, kind, text, `${kind}_id`);
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.status === 422) {
      return thrown;
    }
    throw thrown;
  }
}
