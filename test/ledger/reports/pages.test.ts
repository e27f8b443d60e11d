/** People who look share two connections, whatever they look at: leases need the others. */
import { expect, it, vi } from 'vitest';
import { pageOfBudgetChanges, pageOfChargedLeases } from '../../../src/ledger/budgets/history.ts';
import { budgetById, pageOfBudgets } from '../../../src/ledger/budgets/view.ts';
import { listProjects } from '../../../src/ledger/reports/projects.ts';
import { NO_WAIT } from '../../support/ledgers.ts';
import { newGrounds } from '../ground.ts';

const newGround = newGrounds(true);

it('reads at most two things at a time', async () => {
  const { ledger, project: projectId } = await newGround('sqlite');
  const read = ledger.read.bind(ledger);
  let inside = 0;
  let most = 0;
  vi.spyOn(ledger, 'read').mockImplementation(async (...asked: Parameters<typeof read>) => {
    inside += 1;
    most = Math.max(most, inside);
    await new Promise(setImmediate);
    inside -= 1;
    return read(...asked) as never;
  });
  const page = { limit: 10, after: undefined };
  const all = { projectIds: undefined, search: undefined };
  await Promise.all(
    [1, 2, 3].flatMap(() => [
      pageOfBudgets(ledger, page, NO_WAIT),
      budgetById(ledger, 1n, NO_WAIT),
      pageOfBudgetChanges(ledger, page, NO_WAIT),
      pageOfChargedLeases(ledger, { ...page, projectId }, NO_WAIT),
      listProjects(ledger, { ...page, ...all }, NO_WAIT),
    ]),
  );
  expect({ inside, most }).toEqual({ inside: 0, most: 2 });
});
