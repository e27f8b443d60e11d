/** Databases with another encoding, locale or settings than those that most servers make. */
import { expect, it } from 'vitest';
import { pageOfBudgets } from '../../../../src/ledger/budgets/view.ts';
import { giveBudget, NO_WAIT, openedLedger, upgrade, upgraded } from '../../../support/ledgers.ts';
import { createDatabaseWith } from '../../../support/shared-postgres.ts';

const TURKISH = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR'";
const OLD_STRINGS = '?options=-c%20standard_conforming_strings%3Doff';

it.each([
  ['with the case of Turkish', TURKISH, ''],
  ['that reads backslashes as escapes', '', OLD_STRINGS],
])('finds budgets by a part of an id in a database %s', async (_, options, parameters) => {
  const database = await upgraded(await createDatabaseWith(options));
  const ledger = await openedLedger(`${database}${parameters}`);
  await giveBudget(ledger, { projectId: 'Climate_I', amount: '10' });
  await giveBudget(ledger, { projectId: 'climateXI', userId: 'ALICE', amount: '10' });
  const found = async (search: string) => {
    const page = await pageOfBudgets(ledger, { search, limit: 10, after: undefined }, NO_WAIT);
    return page.items.map(({ projectId }) => projectId).toSorted();
  };
  expect(await found('CLIMATE')).toEqual(['Climate_I', 'climateXI']);
  expect(await found('climate_i')).toEqual(['Climate_I']);
  expect(await found('alice')).toEqual(['climateXI']);
});

it.each(['LATIN1', 'EUC_JP'])('makes no ledger in a database with the encoding %s', async (encoding) => {
  const database = await createDatabaseWith(
    `TEMPLATE template0 ENCODING '${encoding}' LC_COLLATE 'C' LC_CTYPE 'C'`,
  );
  await expect(upgrade(database)).rejects.toThrow(
    `the database has the encoding ${encoding}, which cannot store every text: create it with ENCODING 'UTF8'`,
  );
});
