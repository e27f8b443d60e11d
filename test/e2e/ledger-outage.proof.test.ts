/** PostgreSQL that is stopped, or accepts and never answers: no lease gets through meanwhile. With a real PostgreSQL. */
import { afterAll, describe, expect, it, vi } from 'vitest';
import { UNAVAILABLE_MESSAGE } from '../../src/enforcement/chain/messages.ts';
import { createLease, newClients, startClients } from '../support/lease-clients.ts';
import { inspect, leaseNames } from '../support/ledger-inspection.ts';
import {
  DEADLINE,
  isHealthy,
  MARGIN,
  preparedLedger,
  REFUSED,
  SOON,
  slowest,
  startService,
  startServices,
  untilAllowed,
} from '../support/ledger-processes.ts';
import { ledgerAt } from '../support/ledgers.ts';
import { startPostgres } from '../support/postgres.ts';
import { backends, holdProject } from '../support/postgres-activity.ts';
import { startProxy } from '../support/postgres-proxy.ts';
import { PROJECT } from '../support/requests.ts';

const PATIENT = { timeout: 1_200_000 };
/** `[service] deadline` where every request waits for it. */
const SHORT = 2;

const postgres = await startPostgres();
afterAll(() => postgres.remove());

const newLedger = async () => preparedLedger(await postgres.createDatabase());

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
    expect(await createLease(late)).toMatchObject(REFUSED);
    expect(await Promise.all([...services, late].map(isHealthy))).toEqual([true, true, true]);
    await vi.waitFor(() => expect(answers().filter(({ asked }) => asked > stopped)).not.toEqual([]), SOON);
    const starting = performance.now();
    await postgres.start();
    await Promise.all([...services, late].map((service) => untilAllowed(() => createLease(service))));
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
    const service = await startService({ connection: proxy.connection, deadline: SHORT });
    await untilAllowed(() => createLease(service));
    proxy.cut();
    const answers = await Promise.all(Array.from({ length: 8 }, () => createLease(service)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 403));
    expect(await createLease(service)).toMatchObject({ status: 403 });
    expect(await isHealthy(service)).toBe(true);
    proxy.mend();
    await untilAllowed(() => createLease(service));
  });

  it('does not keep a service from starting', async () => {
    const proxy = await startProxy(await newLedger(), { isCut: true });
    const service = await startService({ connection: proxy.connection, deadline: SHORT, timeout: 1 });
    expect(await createLease(service)).toMatchObject({ status: 403 });
    expect(await isHealthy(service)).toBe(true);
    proxy.mend();
    await untilAllowed(() => createLease(service));
  });
});

describe('a project that somebody else holds in PostgreSQL', PATIENT, () => {
  it('is waited for until the deadline, and no connection waits on', async () => {
    const connection = await newLedger();
    const service = await startService({ connection, deadline: DEADLINE });
    await untilAllowed(() => createLease(service));
    const letGo = await holdProject(connection, PROJECT);
    const answers = await Promise.all(Array.from({ length: 8 }, () => createLease(service)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 403));
    await vi.waitFor(
      async () =>
        expect((await backends(connection)).filter((text) => !text.startsWith('idle:'))).toEqual([]),
      SOON,
    );
    await letGo();
    await untilAllowed(() => createLease(service));
    const ledger = await ledgerAt(connection);
    expect(await leaseNames(ledger)).toHaveLength(2);
    await ledger.close();
  });
});
