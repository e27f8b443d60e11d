/** Shared by the tests of `ledger` and `budget`: a ledger, and the commands, which run in this process. */
import { budgetCommand } from '../../../src/cli/budget.ts';
import { ledgerCommand } from '../../../src/cli/ledger.ts';
import { recordLease } from '../../ledger/recorded-leases.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { confFile } from '../../support/files.ts';
import { giveBudget, ledgerAt } from '../../support/ledgers.ts';

/** The commands with both ledger filters enabled, and optional further lines of `[enforcement]`. */
export function commandsOn(connection: string, enforcement = '') {
  return commandsWith(
    `[enforcement]\nenabled_filters = MaxLeasesFilter, UsageBudgetFilter\nmax_leases_per_project = 1000\n${enforcement}\n[ledger]\nconnection = ${connection}\n`,
  );
}

/** The commands with this configuration. */
export function commandsWith(configuration: string) {
  const flags = ['--config-file', confFile(configuration)];
  return {
    ledger: (...args: string[]) => runInProcess(ledgerCommand(), [...args, ...flags]),
    budget: (...args: string[]) => runInProcess(budgetCommand(), [...args, ...flags]),
  };
}

/** The tests use the system clock: pending leases are in the far future. */
export const COMING = { start: '2096-12-01', end: '2096-12-02' };
export const OVER = { start: '2016-12-01', end: '2016-12-02' };

/** A budget of 1000, a pending lease of alice, a past lease of bob, and a lease of another project. */
export async function fill(connection: string): Promise<void> {
  const ledger = await ledgerAt(connection);
  await giveBudget(ledger, { amount: '1000', until: '2098-01-01' });
  await recordLease(ledger, { name: 'first', leaseId: 'lease-1', ...COMING });
  await recordLease(ledger, { name: 'second', userId: 'bob', ...OVER });
  await recordLease(ledger, { name: 'third', projectId: 'ocean', ...COMING });
  await ledger.close();
}
