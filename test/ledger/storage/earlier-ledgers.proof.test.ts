/** Ledgers that earlier versions of the tables wrote, on both databases, are upgraded to the unit: budgets, leases and charges are as those versions printed them. */
import { expect, it } from 'vitest';
import {
  configurationOf,
  PRINTED,
  printedBudgets,
  RESTORE,
  type Restorable,
  runnerOf,
} from '../../support/earlier-ledgers.ts';

const CASES = Object.keys(RESTORE).flatMap((database) =>
  Object.keys(PRINTED).map((migration) => [database as Restorable, migration] as const),
);

it.each(CASES)('%s: a ledger of %s', async (database, migration) => {
  const run = runnerOf(configurationOf(await RESTORE[database](migration)));
  expect(await run('ledger', 'upgrade')).toMatchObject({ code: 0 });
  expect(await run('ledger', 'verify')).toMatchObject({ code: 0 });
  expect(await printedBudgets(run)).toEqual(PRINTED[migration]);
  // Nothing is left to do.
  expect(await run('ledger', 'upgrade')).toMatchObject({
    code: 0,
    stdout: expect.not.stringContaining('applied'),
  });
});
