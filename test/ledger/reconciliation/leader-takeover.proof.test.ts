/** Two services follow one ledger; the one that is at it is killed in the middle of a round. */
import { beforeEach, describe, expect, it } from 'vitest';
import { listBudgets } from '../../../src/ledger/budgets/budgets.ts';
import { verifyLedger } from '../../../src/ledger/reports/verify.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { startService } from '../../support/ledger-processes.ts';
import { giveBudget, ledgerAt, NO_WAIT, newLedgers } from '../../support/ledgers.ts';
import { metric } from '../../support/metric.ts';
import { policyServer } from '../../support/policy-server.ts';
import { runSql } from '../../support/postgres-activity.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';

/** A round over so many takes seconds, on a busy machine minutes. */
const LEASES = 600;
/** What is left of the leader lease, and a round, in milliseconds: more than both take on a busy machine. */
const TAKEN_OVER = 240_000;

const newLedger = newLedgers();

/** One instance for one hour each. */
const listed = Array.from({ length: LEASES }, (_, index) => ({
  id: `lease-${index}`,
  name: 'run',
  project_id: index % 2 === 0 ? 'climate' : 'physics',
  user_id: 'alice',
  status: 'PENDING',
  start_date: '2039-01-01T00:00:00.000000',
  end_date: '2039-01-01T01:00:00.000000',
  created_at: '2026-11-01 00:00:00',
  degraded: false,
  reservations: [
    {
      id: `r-${index}`,
      lease_id: `lease-${index}`,
      resource_type: 'virtual:instance',
      status: 'pending',
      amount: 1,
    },
  ],
}));

/** Each lease takes a while to be recorded. */
const SLOWED = `CREATE FUNCTION slowed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END';
CREATE TRIGGER slowed BEFORE INSERT ON leases FOR EACH ROW EXECUTE FUNCTION slowed()`;

describe('two services that follow one ledger on PostgreSQL', () => {
  let connection: string;
  beforeEach(async () => {
    connection = await newLedger('postgresql');
  });

  it('leave it right when the one that is at it is killed in the middle of a round', async () => {
    const keystone = await ValidatingKeystone.start();
    keystone.tokens.set('gAAAAABour-own', 'service');
    const blazar = await policyServer((request, response) => {
      const name = request.url?.split('/').at(-1);
      response.end(JSON.stringify(name === 'leases' ? { leases: listed } : { [name ?? '']: [] }));
    });
    const ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
    for (const projectId of ['climate', 'physics']) {
      await giveBudget(ledger, { projectId, amount: '100000', from: '2026-01-01', until: '2040-01-01' });
    }
    const enforcement = `usage_budget_rates = virtual:instance:1
[keystone]
auth_url = ${keystone.url}
username = blazar
password = blazar
project_name = service
region_name = RegionOne
[blazar]
endpoint = ${blazar.url}/v1
reconcile_interval = 1`;
    const setup = { connection, enabled: 'UsageBudgetFilter', enforcement };
    const read = <Row>(query: Parameters<typeof rows<Row>>[0]) =>
      ledger.read('read', () => rows(query), NO_WAIT);
    const { queries } = ledger.database;
    const recorded = async () =>
      (await read(queries.selectFrom('leases').select('id').where('state', '=', 'open').compile())).length;
    const holder = async () => {
      const [leader] = await read(
        queries.selectFrom('follower').select('holder').where('holder', 'is not', null).compile(),
      );
      return Number(leader?.holder?.split('/').at(1));
    };
    // So that there is a middle, whoever is slow.
    await runSql(connection, SLOWED);
    const services = await Promise.all([startService(setup), startService(setup)]);

    await expect.poll(recorded, { timeout: 240_000, interval: 10 }).toBeGreaterThan(50);
    const pid = await holder();
    const killed = services.find(({ process }) => process.pid === pid);
    const other = services.find(({ process }) => process.pid !== pid);
    await killed?.kill();
    // The leader lease is held for half a minute: most of it has passed.
    await runSql(connection, 'UPDATE follower SET held_until = held_until - 25000000');
    expect(await recorded()).toBeLessThan(LEASES);
    await runSql(connection, 'DROP TRIGGER slowed ON leases');

    await expect.poll(recorded, { timeout: TAKEN_OVER, interval: 200 }).toBe(LEASES);
    const completed = async () =>
      metric(await (await fetch(`${other?.url}/metrics`)).text(), 'blazar_enforcement_blazar_rounds_total', {
        outcome: 'complete',
      });
    await expect.poll(completed, { timeout: TAKEN_OVER, interval: 200 }).toBeGreaterThan(1);
    for (const project of ['climate', 'physics']) {
      const [budget] = await listBudgets(ledger, project, NO_WAIT);
      expect(Number(budget?.taken ?? 0n) / 3_600_000_000).toBe(LEASES / 2);
    }
    const ids = await read(queries.selectFrom('leases').select('lease_id').distinct().compile());
    expect(ids).toHaveLength(LEASES);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
    await ledger.close();
  });
});
