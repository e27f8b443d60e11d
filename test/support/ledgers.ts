/** Ledgers on both databases, empty and ready. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { parseUnitHours } from '../../src/filter/amount.ts';
import { type LedgerObserver, toInstant } from '../../src/index.ts';
import { setBudget } from '../../src/ledger/budgets.ts';
import { parseConnection } from '../../src/ledger/connection.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { upgradeTables } from '../../src/ledger/migrations/index.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { createDatabase } from './shared-postgres.ts';

/** Waits for as long as it takes. */
export const NO_WAIT = { signal: undefined, throwIfOver() {} };

export const DIALECTS = ['sqlite', 'postgresql'] as const;

/** Empty ones with tables: call it at the top of a file, and the result where one is wanted. */
export function newLedgers(): (dialect: (typeof DIALECTS)[number]) => Promise<string> {
  const folders: string[] = [];
  afterAll(() => {
    for (const folder of folders) {
      rmSync(folder, { recursive: true, force: true });
    }
  });
  const newFile = () => {
    const folder = mkdtempSync(join(tmpdir(), 'ledger-'));
    folders.push(folder);
    return join(folder, 'ledger.db');
  };
  return async (dialect) => {
    const url = dialect === 'sqlite' ? `sqlite://${newFile()}` : await createDatabase();
    const connection = parseConnection(url);
    if (connection === undefined) {
      throw new Error('expected a connection');
    }
    await upgradeTables(connection);
    return url;
  };
}

export interface LedgerSetup {
  readonly now?: () => string;
  readonly observer?: LedgerObserver;
  readonly timeout?: number;
}

/** To look into it, and to set budgets; close it. */
export async function ledgerAt(connection: string, setup: LedgerSetup = {}): Promise<Ledger> {
  const { now = () => '2026-11-21T09:00:30Z', observer, timeout = 10 } = setup;
  const opened = openLedger(
    { connection, commit: 'check', timeout, pool_size: 4 },
    { clock: { now: () => new Date(now()) }, observer },
  );
  await opened.verify();
  return opened.ledger;
}

export interface BudgetText {
  readonly projectId?: string;
  readonly userId?: string | null;
  readonly from?: string;
  readonly until?: string;
  /** In unit-hours. */
  readonly amount: string;
}

/** Default: of the project climate, for the year 2026 and the next. */
export async function giveBudget(ledger: Ledger, budget: BudgetText): Promise<void> {
  const { projectId = 'climate', userId = null, from = '2026-01-01', until = '2028-01-01', amount } = budget;
  const wanted = {
    projectId,
    userId,
    validFrom: second(from),
    validUntil: second(until),
    amount: parseUnitHours(amount) ?? 0n,
  };
  await setBudget(ledger, wanted, { who: 'operator', reason: null }, NO_WAIT);
}

function second(date: string): bigint {
  return (toInstant(date) ?? 0n) / 1_000_000n;
}
