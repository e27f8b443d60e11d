/** SkyPilot asks about one launch on the client's side, and on the server's: at any of the services that share a ledger. */
import { expect, it } from 'vitest';
import { waitFor } from '../../../src/base/deadline.ts';
import { DecisionTable } from '../../../src/decisions/store/table.ts';
import { listLeases } from '../../../src/ledger/reports/reports.ts';
import { startServices } from '../../support/ledger-processes.ts';
import { DIALECTS, giveBudget, NO_WAIT, newLedgers, openedLedger } from '../../support/ledgers.ts';
import { postJson } from '../../support/post-json.ts';
import { envelope } from '../../support/skypilot.ts';
import { SkypilotApiDouble } from '../../support/skypilot-api-server.ts';

const newLedgerOn = newLedgers();

it.each(DIALECTS)('a launch is charged once and counted once, on %s', async (dialect) => {
  const connection = await newLedgerOn(dialect);
  const api = await SkypilotApiDouble.start({ now: () => Date.now() / 1000 });
  const ledger = await openedLedger(connection, { now: () => new Date().toISOString() });
  await giveBudget(ledger, { projectId: 'ml', amount: '25', from: '2020-01-01', until: '2200-01-01' });
  const services = await startServices(2, {
    connection,
    enabled: 'MaxLeaseDurationFilter',
    service: 'decision_store = all',
    sections: `[skypilot]\nadmin_policies = UsageBudgetPolicy\napi_server = ${api.url}\n`,
  });
  const ask = async (index: number, name: string, isClient: boolean, cluster = 'train') => {
    const request = envelope({
      task: 'resources: {accelerators: A100:1}\n',
      skypilot_config: 'active_workspace: ml\n',
      request_name: name,
      at_client_side: isClient,
      user: isClient ? '' : 'id: 0a1b2c3d\nname: lin\n',
      request_options: { cluster_name: cluster, idle_minutes_to_autostop: null, down: false, dryrun: false },
    });
    const answer = await postJson(`${services[index]?.url}/skypilot/admin-policy`, request);
    return answer.status;
  };
  const both = await Promise.all([
    ask(0, 'launch', true),
    ask(1, 'validate', false),
    ask(1, 'launch', false),
  ]);
  expect(both).toEqual([200, 200, 200]);
  // The second one is refused by the server, as soon as it looks.
  expect(await ask(1, 'launch', true, 'two')).toBe(200);
  expect(await ask(0, 'validate', false, 'two')).toBe(400);
  const table = new DecisionTable(ledger.database, 'test');
  const decisions = async () => {
    const query = {
      operations: ['skypilot.launch', 'skypilot.validate'],
      limit: 100,
      after: undefined,
    } as const;
    const { items } = await table.search(query, waitFor(undefined));
    return items.map(({ record: { side, launch, allowed, lease_name } }) => ({
      side,
      launch,
      allowed,
      lease_name,
    }));
  };
  await expect.poll(decisions).toHaveLength(5);
  const counted = (await decisions()).filter(({ launch }) => launch);
  expect(counted.sort((a, b) => `${a.lease_name}`.localeCompare(`${b.lease_name}`))).toEqual([
    { side: 'server', launch: true, allowed: true, lease_name: 'train' },
    { side: 'server', launch: true, allowed: false, lease_name: 'two' },
  ]);
  expect((await listLeases(ledger, { limit: 10 }, NO_WAIT)).map(({ leaseId }) => leaseId)).toEqual([
    'skypilot:ml/train',
  ]);
});
