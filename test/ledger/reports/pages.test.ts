/** Lists in pages: cursors that are none, and how many read at a time. */
import { expect, it, vi } from 'vitest';
import { pageOfBudgetChanges, pageOfChargedLeases } from '../../../src/ledger/budgets/history.ts';
import { budgetById, pageOfBudgets } from '../../../src/ledger/budgets/view.ts';
import { CursorError, cursorOf, keyOf } from '../../../src/ledger/reports/pages.ts';
import { listProjects } from '../../../src/ledger/reports/projects.ts';
import { NO_WAIT } from '../../support/ledgers.ts';
import { newFixtures } from '../fixture.ts';

const newGround = newFixtures(true);

const encoded = (text: string) => Buffer.from(text).toString('base64url');

it.each([
  '',
  'x',
  '%00',
  'x'.repeat(10_000),
  encoded('{}'),
  encoded('["#1","#1"]'),
  encoded('["__proto__"]'),
  encoded('[null]'),
  encoded(`["#${'9'.repeat(19)}"]`),
  cursorOf(['\0']),
  cursorOf(['\ud800']),
  cursorOf(['x'.repeat(256)]),
])('refuses the cursor %j', (cursor) => {
  expect(() => keyOf(cursor, ['number'])).toThrow(CursorError);
  expect(() => keyOf(cursor, ['text'])).toThrow(CursorError);
});

it('takes no number for a text, and no text for a number', () => {
  expect(() => keyOf(cursorOf(['1']), ['number'])).toThrow(CursorError);
  expect(() => keyOf(cursorOf([1n]), ['text'])).toThrow(CursorError);
  expect(keyOf(cursorOf(['1', 1n]), ['text', 'number'])).toEqual(['1', 1n]);
});

// Leases need the other connections.
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
