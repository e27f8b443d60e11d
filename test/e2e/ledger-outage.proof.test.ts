import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { UNAVAILABLE_MESSAGE } from '../../src/enforcement/failure.ts';
import { parseConnection } from '../../src/ledger/connection.ts';
import { upgradeTables } from '../../src/ledger/migrations/index.ts';
import { newClients, newLease, startClients } from '../support/lease-clients.ts';
import { inspect, leaseNames } from '../support/ledger-inspection.ts';
import {
  type ServiceProcess,
  SOON,
  slowest,
  startService,
  startServices,
  untilAllowed,
  withBudget,
} from '../support/ledger-processes.ts';
import { ledgerAt } from '../support/ledgers.ts';
import { type Postgres, startPostgres } from '../support/postgres.ts';
import { backends, holdProject } from '../support/postgres-activity.ts';
import { startProxy } from '../support/postgres-proxy.ts';
import { PROJECT } from '../support/requests.ts';

/** `[service] deadline`, in seconds. */
const DEADLINE = 1;
/** What hangs, hangs longer, on a machine that is busy elsewhere, too. */
const MARGIN = 20;
const PATIENT = { timeout: 120_000 };
const REFUSED = { status: 403, message: UNAVAILABLE_MESSAGE };

let postgres: Postgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.remove());

async function newLedger(): Promise<string> {
  const connection = await postgres.createDatabase();
  const parsed = parseConnection(connection);
  if (parsed !== undefined) {
    await upgradeTables(parsed);
  }
  await (await withBudget(connection, '1000000')).close();
  return connection;
}

async function create(service: ServiceProcess) {
  const { path, body } = newLease(1);
  const answer = await service.ask(path, body);
  expect(answer === undefined ? Number.POSITIVE_INFINITY : slowest([answer])).toBeLessThan(DEADLINE + MARGIN);
  return answer;
}

async function isHealthy(service: ServiceProcess): Promise<boolean> {
  return (await fetch(`${service.url}/healthz`)).ok;
}

describe('PostgreSQL that is stopped and started under load', PATIENT, () => {
  it('lets no lease through meanwhile, and is used again by the same processes', async () => {
    const connection = await newLedger();
    const setup = { connection, deadline: DEADLINE };
    const services = await startServices(2, setup);
    // Of an end nobody learns that it was not recorded: there is nothing to refuse.
    const clients = newClients(16, { mayEnd: false, asksAgain: true });
    const answers = () => clients.flatMap((client) => client.answers);
    const load = startClients(clients, services);
    await vi.waitFor(() => expect(answers().length).toBeGreaterThan(50), SOON);
    await postgres.stop();
    const stopped = performance.now();
    // One that starts meanwhile starts nevertheless.
    const late = await startService(setup);
    expect(await create(late)).toMatchObject(REFUSED);
    expect(await Promise.all([...services, late].map(isHealthy))).toEqual([true, true, true]);
    await pause(300);
    const starting = performance.now();
    await postgres.start();
    await Promise.all([...services, late].map((service) => untilAllowed(() => create(service))));
    await load.stop();

    const meanwhile = answers().filter(({ asked, answered }) => asked > stopped && answered < starting);
    expect(meanwhile.length).toBeGreaterThan(0);
    expect(
      meanwhile.filter(({ status, message }) => status !== 403 || message !== UNAVAILABLE_MESSAGE),
    ).toEqual([]);
    expect(slowest(answers())).toBeLessThan(DEADLINE + MARGIN);
    expect(clients.reduce((sum, { unanswered }) => sum + unanswered, 0)).toBe(0);
    const ledger = await ledgerAt(connection);
    const wrong = await inspect(ledger, clients);
    expect(wrong.filter((what) => !what.startsWith('nobody has asked'))).toEqual([]);
    await ledger.close();
  });
});

describe('PostgreSQL that accepts what is sent and never answers', PATIENT, () => {
  it('lets no lease through, and is used again when it answers', async () => {
    const proxy = await startProxy(await newLedger());
    const service = await startService({ connection: proxy.connection, deadline: DEADLINE });
    await untilAllowed(() => create(service));
    proxy.cut();
    const answers = await Promise.all(Array.from({ length: 8 }, () => create(service)));
    expect(answers.map((answer) => answer?.status)).toEqual(answers.map(() => 403));
    expect(await create(service)).toMatchObject({ status: 403 });
    expect(await isHealthy(service)).toBe(true);
    proxy.mend();
    await untilAllowed(() => create(service));
  });

  it('does not keep a service from starting', async () => {
    const proxy = await startProxy(await newLedger(), { isCut: true });
    const service = await startService({ connection: proxy.connection, deadline: DEADLINE, timeout: 1 });
    expect(await create(service)).toMatchObject({ status: 403 });
    expect(await isHealthy(service)).toBe(true);
    proxy.mend();
    await untilAllowed(() => create(service));
  });
});

describe('a project that somebody else holds in PostgreSQL', PATIENT, () => {
  it('is waited for until the deadline, and no connection waits on', async () => {
    const connection = await newLedger();
    const service = await startService({ connection, deadline: DEADLINE });
    await untilAllowed(() => create(service));
    const letGo = await holdProject(connection, PROJECT);
    const answers = await Promise.all(Array.from({ length: 8 }, () => create(service)));
    expect(answers.map((answer) => answer?.status)).toEqual(answers.map(() => 403));
    await vi.waitFor(
      async () =>
        expect((await backends(connection)).filter((text) => !text.startsWith('idle:'))).toEqual([]),
      SOON,
    );
    await letGo();
    await untilAllowed(() => create(service));
    const ledger = await ledgerAt(connection);
    expect(await leaseNames(ledger)).toHaveLength(2);
    await ledger.close();
  });
});
