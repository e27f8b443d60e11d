/** Never a yes because something broke: a ledger that only answers looks records no lease. */

import { expect, it } from 'vitest';
import { openSqlite } from '../../../src/ledger/storage/sqlite-driver.ts';
import { breakLedger, mendLedger, newLedger } from '../../support/ledgers.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOf } from '../../support/running-service.ts';
import { visitor } from '../console/visitor.ts';

async function serving() {
  const connection = await newLedger();
  const values = {
    service: { port: 0, operator_tokens: ['op-0123456789abcdef'] },
    ledger: { connection },
    enforcement: { enabled_filters: ['MaxLeasesFilter'], max_leases_per_project: 9 },
  };
  const service = await runServiceOf(values);
  const token = { 'X-Auth-Token': 'op-0123456789abcdef' };
  const create = async () => (await service.post('/check-create', createLasting(3600))).status;
  const estimate = async () => {
    const lease = {
      name: 'a',
      start_date: '2099-06-01 00:00',
      end_date: '2099-06-02 00:00',
      user_id: 'u',
      reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
    };
    const { json } = await service.post('/v1/projects/climate/estimate', lease, token);
    const { allowed, outcome, filter } = json as Record<string, unknown>;
    const page = await visitor(service.url).send(
      '/try',
      {
        project: 'climate',
        user: 'u',
        name: 'a',
        start: '2099-06-01T00:00',
        end: '2099-06-02T00:00',
        r0_type: 'physical:host',
        r0_min: '1',
        r0_max: '1',
        do: 'try',
      },
      token,
    );
    const [, shown] = /This lease would be (\w+)/.exec(page.text) ?? [];
    return { allowed, outcome, filter, shown };
  };
  return { connection, create, estimate };
}

const YES = { allowed: true, outcome: 'allowed', filter: null, shown: 'allowed' };
const NO = { allowed: false, outcome: 'failed', filter: 'MaxLeasesFilter', shown: 'refused' };

it('an estimate is no yes while the ledger grants nothing, in any process', async () => {
  const { connection, create, estimate } = await serving();
  expect(await estimate()).toEqual(YES);
  const file = openSqlite(connection.replace('sqlite://', ''));
  file.exec("UPDATE ledger SET suspended = 'a backup was put in its place'");
  expect(await estimate()).toEqual(NO);
  file.exec('UPDATE ledger SET suspended = NULL');
  file.close();
  expect(await estimate()).toEqual(YES);
  expect(await create()).toBe(204);
});

it('an estimate is no yes while leases cannot be written', async () => {
  const { connection, create, estimate } = await serving();
  breakLedger(connection, 'entries');
  expect(await create()).toBe(403);
  expect(await estimate()).toEqual(NO);
  mendLedger(connection, 'entries');
  expect(await create()).toBe(204);
  expect(await estimate()).toEqual(YES);
});
