/** What accounts of the ledger stand for, in words. */
import type { Estimate } from '../../../enforcement/estimate/contract.ts';
import { budgetAccount } from '../../../filter/budget.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import type { PageRequest } from '../page.ts';
import { shownDate } from '../time-scale.ts';

/** More budgets than a lease is charged to. */
const MOST = 20;

/** `Budget of the project, 2026-01-01 to 2027-01-01`; accounts without a name of their own are called as they are. */
export async function chargedTo(
  { generation, deadline }: Pick<PageRequest, 'generation' | 'deadline'>,
  projectId: string,
  { charges, suggestions }: Estimate,
): Promise<(account: string) => string> {
  const { ledger } = generation;
  const accounts = [...charges, ...suggestions.flatMap((one) => one.charges)].map(({ account }) => account);
  const ids = [
    ...new Set(accounts.flatMap((account) => /^usage_budget\/(\d{1,18})$/.exec(account)?.[1] ?? [])),
  ];
  const known = new Map<string, string>();
  if (ledger !== undefined && ids.length > 0) {
    const { budgetById } = await import('../../../ledger/budgets/view.ts');
    await ledger.read(async (opened) => {
      for (const id of ids.slice(0, MOST)) {
        const budget = await budgetById(opened, BigInt(id), deadline);
        if (budget?.projectId === projectId) {
          known.set(budgetAccount(budget), budgetText(budget));
        }
      }
    });
  }
  return (account) => known.get(account) ?? otherText(account);
}

function budgetText({ userId, validFrom, validUntil }: BudgetView): string {
  const date = (second: bigint) => shownDate(second * MICROSECONDS_PER_SECOND);
  return `Budget of the ${userId === null ? 'project' : 'user'}, ${date(validFrom)} to ${date(validUntil)}`;
}

function otherText(account: string): string {
  if (account.startsWith('usage_budget/uncovered')) {
    return account.includes('/user/')
      ? 'Time without a budget of the user'
      : 'Time without a budget of the project';
  }
  return account;
}
