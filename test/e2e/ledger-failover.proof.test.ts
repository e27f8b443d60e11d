/** A PostgreSQL that commits without saying so, that loses what it had, and that has too few connections for all. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { listLeases } from '../../src/ledger/reports/reports.ts';
import { confFile, temporaryFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { newLease } from '../support/lease-clients.ts';
import {
  preparedLedger,
  REFUSED,
  type ServiceProcess,
  SOON,
  startService,
  startServices,
  untilAllowed,
} from '../support/ledger-processes.ts';
import { ledgerAt, NO_WAIT } from '../support/ledgers.ts';
import { startPostgres } from '../support/postgres.ts';
import { holdProject, runSql } from '../support/postgres-activity.ts';
import { startProxy } from '../support/postgres-proxy.ts';
import { PROJECT } from '../support/requests.ts';
import { runCommand } from '../support/run-command.ts';
import { freshMetrics } from '../support/samples.ts';

const PATIENT = { timeout: 1_200_000 };

const postgres = await startPostgres();
afterAll(() => postgres.remove());

const newLedger = async (server = postgres) => preparedLedger(await server.createDatabase());

function create(service: ServiceProcess, project = PROJECT) {
  const { path, body } = newLease(1);
  const { context } = body as { context: object };
  return service.ask(path, { ...body, context: { ...context, project_id: project } });
}

async function states(connection: string): Promise<string[]> {
  const ledger = await ledgerAt(connection);
  const leases = await listLeases(ledger, { limit: 999 }, NO_WAIT);
  await ledger.close();
  return leases.map(({ state }) => state).reverse();
}

async function metric(service: ServiceProcess, name: string): Promise<number> {
  const text = await freshMetrics(service.url);
  return Number(new RegExp(`^blazar_enforcement_${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

describe('a commit that waits for a standby', PATIENT, () => {
  const waitForStandby = (connection: string) =>
    runSql(connection, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'").then(() =>
      runSql(connection, 'SELECT pg_reload_conf()'),
    );
  const waitNoMore = (connection: string) =>
    runSql(connection, 'ALTER SYSTEM RESET synchronous_standby_names').then(() =>
      runSql(connection, 'SELECT pg_reload_conf()'),
    );
  // The service also commits what is no lease.
  const waiting =
    "SELECT 1 FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE wait_event = 'SyncRep' AND mode = 'RowExclusiveLock' AND relation = 'leases'::regclass";
  const isWaiting = (connection: string) =>
    vi.waitFor(async () => expect(await runSql(connection, waiting)).not.toEqual([]), SOON);

  it.each([
    ['by the process that was told so', false],
    ['by the next process', true],
  ])('is refused when the server is stopped, and taken back %s', async (_, isRestarted) => {
    const connection = await newLedger();
    const doubtFolder = join(temporaryFolder(), 'doubt');
    const service = await startService({ connection, doubtFolder });
    await waitForStandby(connection);
    const asked = create(service);
    await isWaiting(connection);
    await postgres.stop();
    expect(await asked).toMatchObject(REFUSED);
    expect(readdirSync(doubtFolder)).toHaveLength(1);
    expect(await metric(service, 'ledger_commits_in_doubt')).toBe(1);
    expect(service.log()).toContain('a refused lease may be recorded nevertheless');
    if (isRestarted) {
      await service.kill();
    }
    await postgres.start();
    await waitNoMore(connection);
    const next = isRestarted ? await startService({ connection, doubtFolder }) : service;
    await vi.waitFor(async () => expect(await states(connection)).toEqual(['ended']), SOON);
    await vi.waitFor(() => expect(readdirSync(doubtFolder)).toEqual([]), SOON);
    expect(await metric(next, 'ledger_commits_in_doubt')).toBe(0);
  });

  it.each(['warning', 'error'])(
    'is not granted because the server has stopped waiting, where clients are told of each %s',
    async (level) => {
      const connection = await newLedger();
      const database = new URL(connection).pathname.slice(1);
      await runSql(connection, `ALTER DATABASE ${database} SET client_min_messages = ${level}`);
      const service = await startService({ connection });
      await waitForStandby(connection);
      const asked = create(service);
      await isWaiting(connection);
      await runSql(
        connection,
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
      );
      expect(await asked).toMatchObject({ status: 403 });
      await waitNoMore(connection);
      await vi.waitFor(async () => expect(await states(connection)).toEqual(['ended']), SOON);
    },
  );
});

describe('a commit whose answer is lost on the way', PATIENT, () => {
  it('is refused, and taken back when the way is there again', async () => {
    const connection = await newLedger();
    const proxy = await startProxy(connection);
    const service = await startService({ connection: proxy.connection });
    await untilAllowed(() => create(service));
    const lost = proxy.loseCommit();
    const asked = create(service);
    await lost;
    proxy.cut();
    expect(await asked).toMatchObject(REFUSED);
    await vi.waitFor(async () => expect(await states(connection)).toEqual(['open', 'open']), SOON);
    proxy.mend();
    await vi.waitFor(async () => expect(await states(connection)).toEqual(['open', 'ended']), SOON);
    await untilAllowed(() => create(service));
  });
});

describe('a server that has lost what it had acknowledged', PATIENT, () => {
  it('grants nothing in any process, until somebody compares it with what is there', async () => {
    const connection = await newLedger();
    const services = await startServices(2, { connection });
    await untilAllowed(() => create(services[0] as ServiceProcess));
    await postgres.stop();
    const restore = postgres.copy();
    await postgres.start();
    for (const service of services) {
      await untilAllowed(() => create(service));
    }
    await postgres.stop();
    restore();
    await postgres.start();
    const late = await startService({ connection });
    for (let round = 0; round < 5; round += 1) {
      for (const service of services) {
        expect(await create(service)).toMatchObject(REFUSED);
      }
    }
    expect(await create(late)).toMatchObject(REFUSED);
    expect(services.map((service) => service.log()).join()).toContain('the ledger has gone back');
    const conf = confFile(`[ledger]\nconnection = ${connection}\n`);
    const list = temporaryFile('leases.json', '[]');
    const reconciled = ['ledger', 'reconcile', list, '--empty', '--config-file', conf];
    const { stderr, code } = await runCommand([...reconciled, '--older-than', '0']);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining('warning: the ledger had gone back; it grants leases again\n'),
    });
    for (const service of [...services, late]) {
      await untilAllowed(() => create(service));
    }
  });
});

describe('a project that somebody holds', PATIENT, () => {
  it('keeps no other project waiting', async () => {
    const connection = await newLedger();
    const service = await startService({
      connection,
      poolSize: 4,
      deadline: 600,
      timeout: 600,
      enforcement: 'usage_budget_required = false',
    });
    await untilAllowed(() => create(service));
    const letGo = await holdProject(connection, PROJECT);
    const held = Array.from({ length: 30 }, () => create(service));
    await new Promise((resolve) => setTimeout(resolve, 500));
    const others = await Promise.all(
      Array.from({ length: 30 }, (_, index) => create(service, `other-${index}`)),
    );
    expect(others.map((answer) => answer?.status)).toEqual(others.map(() => 204));
    await letGo();
    expect((await Promise.all(held)).map((answer) => answer?.status)).toEqual(held.map(() => 204));
  });
});

describe('a server with fewer connections than all pools together', PATIENT, () => {
  it('refuses nobody: each waits for its own', async () => {
    const small = await startPostgres([
      '-c',
      'max_connections=9',
      '-c',
      'superuser_reserved_connections=0',
      '-c',
      'reserved_connections=0',
    ]);
    try {
      const connection = await newLedger(small);
      const services = await startServices(3, {
        connection,
        poolSize: 8,
        deadline: 600,
        timeout: 600,
        enforcement: 'usage_budget_required = false',
      });
      const answers = await Promise.all(
        Array.from({ length: 240 }, (_, index) =>
          create(services[index % 3] as ServiceProcess, `project-${index % 24}`),
        ),
      );
      expect(answers.filter((answer) => answer?.status !== 204)).toEqual([]);
      await Promise.all(services.map((service) => service.kill()));
    } finally {
      await small.remove();
    }
  });
});
