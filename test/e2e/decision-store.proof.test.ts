/** Decisions of several processes in one ledger: found at the others, and nobody waits for them. */
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { DecisionTable } from '../../src/decisions/store/table.ts';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import {
  preparedLedger,
  type ServiceProcess,
  SOON,
  startService,
  startServices,
} from '../support/ledger-processes.ts';
import { NO_WAIT, newLedgers, openedLedger, upgraded } from '../support/ledgers.ts';
import { postJson } from '../support/post-json.ts';
import { startPostgres } from '../support/postgres.ts';
import { createLasting } from '../support/requests.ts';
import { freshSamples } from '../support/samples.ts';
import { canMount, mounted } from './mounts.ts';

const PATIENT = { timeout: 1_200_000 };
const ALL = {
  enabled: 'MaxLeaseDurationFilter',
  enforcement: 'max_lease_duration = 100',
  service: 'decision_store = all',
};

const postgres = await startPostgres();
afterAll(() => postgres.remove());
const newFile = newLedgers();
const ledgers = {
  sqlite: async () => preparedLedger(await newFile('sqlite')),
  postgresql: async () => preparedLedger(await postgres.createDatabase()),
};

async function check({ url }: ServiceProcess, seconds: number, id?: string): Promise<number> {
  const answer = await postJson(`${url}/check-create`, createLasting(seconds), {
    ...(id && { 'X-Openstack-Request-Id': id }),
  });
  return answer.status;
}
const requestId = (number: number) => `req-00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
const sample = async ({ url }: ServiceProcess, name: string) =>
  Number((await freshSamples(url))[`decision_store_${name}`]);

describe.each(['sqlite', 'postgresql'] as const)('several services on one ledger in %s', (dialect) => {
  it('store each decision once and whole, whoever is killed', PATIENT, async () => {
    const connection = await ledgers[dialect]();
    const services = await startServices(2, { connection, ...ALL });
    const [killed, other] = services as [ServiceProcess, ServiceProcess];
    let asked = 0;
    const load = services.map(async (service) => {
      for (;;) {
        asked += 1;
        const status = await check(service, asked % 2 ? 60 : 101, requestId(asked)).catch(() => undefined);
        if (status === undefined || asked > 1000) {
          return;
        }
      }
    });
    await vi.waitFor(() => expect(asked).toBeGreaterThan(300), SOON);
    await vi.waitFor(async () => expect(await sample(killed, 'stored_total')).toBeGreaterThan(0), SOON);
    await killed.kill();
    await Promise.all(load);
    await vi.waitFor(async () => expect(await sample(other, 'waiting')).toBe(0), SOON);
    const ledger = await openedLedger(connection);
    const table = new DecisionTable(ledger.database, 'test');
    const found: string[] = [];
    let ofOther = 0;
    for (let after: string | undefined; ; ) {
      const page = await table.search({ limit: 1000, after }, NO_WAIT);
      found.push(...page.items.map(({ record }) => `${record.request_id} ${record.operation}`));
      ofOther += page.items.filter(({ replica }) => replica.includes(`/${other.process.pid}/`)).length;
      after = page.next;
      if (after === undefined) {
        break;
      }
    }
    expect(new Set(found).size).toBe(found.length);
    expect(ofOther).toBe(await sample(other, 'stored_total'));
    expect(await sample(other, 'dropped_total')).toBe(0);
    expect(found.length).toBeGreaterThan(ofOther);
  });
});

describe('a service whose store fails', () => {
  it('decides on while PostgreSQL is stopped, and stores everything when it is back', PATIENT, async () => {
    const connection = await ledgers.postgresql();
    const service = await startService({ connection, timeout: 2, ...ALL });
    expect(await check(service, 60, requestId(1))).toBe(204);
    await vi.waitFor(async () => expect(await sample(service, 'stored_total')).toBe(1), SOON);
    await postgres.stop();
    for (let number = 2; number <= 50; number += 1) {
      expect(await check(service, number % 2 ? 60 : 101, requestId(number))).toBe(number % 2 ? 204 : 403);
    }
    await vi.waitFor(async () => expect(await sample(service, 'errors_total')).toBeGreaterThan(0), SOON);
    expect(await sample(service, 'waiting')).toBe(49);
    await postgres.start();
    await vi.waitFor(async () => expect(await sample(service, 'stored_total')).toBe(50), SOON);
    expect(await sample(service, 'dropped_total')).toBe(0);
    expect(service.log()).toContain('decisions could not be stored; they are tried again');
    expect(service.log()).toContain('decisions are stored again');
  });

  it.runIf(canMount)(
    'decides on where the disk is full, and says at its stop how many decisions are missing',
    PATIENT,
    async () => {
      const connection = await upgraded(`sqlite://${mounted('2m')}/ledger.db`);
      const service = await startService({
        connection,
        ...ALL,
        service: 'decision_store = all\nshutdown_grace = 5',
      });
      let answered = 0;
      await vi.waitFor(async () => {
        const statuses = await Promise.all(Array.from({ length: 50 }, () => check(service, 60)));
        answered += statuses.length;
        expect(new Set(statuses)).toEqual(new Set([204]));
        expect(await sample(service, 'errors_total')).toBeGreaterThan(0);
      }, SOON);
      await vi.waitFor(async () => {
        const { decision_store_stored_total: stored, decision_store_waiting: waiting } = await freshSamples(
          service.url,
        );
        expect(Number(stored) + Number(waiting)).toBe(answered);
      }, SOON);
      service.process.kill('SIGTERM');
      await vi.waitFor(() => expect(service.process.exitCode).toBe(0), SOON);
      expect(service.log()).toMatch(/"decisions":\d+,"msg":"decisions are missing from the store"/);
    },
  );

  it(
    'decides on while another program holds the write lock, and stores everything afterwards',
    PATIENT,
    async () => {
      const connection = await ledgers.sqlite();
      const service = await startService({ connection, timeout: 1, ...ALL });
      const other = openSqlite(connection.slice('sqlite://'.length));
      onTestFinished(() => void other.close());
      other.exec('BEGIN IMMEDIATE');
      expect([await check(service, 60), await check(service, 101)]).toEqual([204, 403]);
      await vi.waitFor(async () => expect(await sample(service, 'errors_total')).toBeGreaterThan(0), SOON);
      expect(await sample(service, 'stored_total')).toBe(0);
      expect(await check(service, 60)).toBe(204);
      other.exec('ROLLBACK');
      await vi.waitFor(async () => expect(await sample(service, 'stored_total')).toBe(3), SOON);
    },
  );
});
