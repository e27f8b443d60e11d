/** A standby that is promoted while 16 clients check and commit: what was acknowledged is lost only where replication is asynchronous, and then no lease is granted until the loss is repaired. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { CreateRequest } from '../../src/index.ts';
import { confFile, temporaryFile } from '../support/files.ts';
import { endOf, type LeaseClient, newClients, startClients } from '../support/lease-clients.ts';
import { inspect } from '../support/ledger-inspection.ts';
import { preparedLedger, REFUSED, SOON, startServices } from '../support/ledger-processes.ts';
import { ledgerAt } from '../support/ledgers.ts';
import { type Postgres, startPostgres } from '../support/postgres.ts';
import { runSql } from '../support/postgres-activity.ts';
import { startProxy } from '../support/postgres-proxy.ts';
import { runCommand } from '../support/run-command.ts';

const CLIENTS = 16;
/** So many answers are waited for, of each kind. */
const ENOUGH = 60;
const PATIENT = { timeout: 1_200_000 };

let postgres: Postgres;
afterEach(() => postgres.remove());

/** A server with a standby, an address that leads to one of them, and clients that work through it. */
async function newGround({ isSynchronous }: { isSynchronous: boolean }) {
  postgres = await startPostgres();
  const first = await preparedLedger(await postgres.createDatabase());
  await postgres.stop();
  const replication = await startProxy(first);
  const { port } = await postgres.startStandby(replication.connection);
  await postgres.start();
  const second = Object.assign(new URL(first), { port: String(port) }).href;
  if (isSynchronous) {
    await runSql(first, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await runSql(first, 'SELECT pg_reload_conf()');
  }
  const state = isSynchronous ? 'sync' : 'async';
  await vi.waitFor(
    async () =>
      expect(await runSql(first, 'SELECT state, sync_state FROM pg_stat_replication')).toEqual([
        { state: 'streaming', sync_state: state },
      ]),
    SOON,
  );
  const address = await startProxy(first);
  const services = await startServices(2, { connection: address.connection });
  // Of an end nobody learns that it was not recorded: there is nothing to refuse.
  const clients = newClients(CLIENTS, { mayEnd: false, asksAgain: true });
  const load = startClients(clients, services);
  const answers = () => clients.flatMap((client) => client.answers);
  const allowedSince = (moment: number) =>
    answers().filter(({ asked, status }) => asked > moment && status === 204);
  const workFrom = (moment: number) =>
    vi.waitFor(() => expect(allowedSince(moment).length).toBeGreaterThan(ENOUGH), SOON);
  await workFrom(0);
  /** As a site does it: the first server is gone, unless it is forgotten, the second takes over, and the address moves. */
  const failOver = async ({ isFenced = true } = {}) => {
    const told = answers().filter(({ status }) => status === 204).length;
    if (isFenced) {
      await postgres.crash();
    }
    const promoting = performance.now();
    await runSql(second, 'SELECT pg_promote()');
    const promotion = performance.now() - promoting;
    const lost = await wrongIn(second, clients);
    const moved = performance.now();
    address.moveTo(port);
    /** One line for whoever wonders how much is lost, and how long it takes. */
    const report = (kind: string) => {
      const first = Math.min(...allowedSince(moved).map(({ answered }) => answered));
      const gap = Number.isFinite(first)
        ? `allowed again ${seconds(promotion + first - moved)} after the crash`
        : 'nothing allowed';
      process.stderr.write(
        `${kind}: ${lost.length} leases of ${told} answers lost, promoted in ${seconds(promotion)}, ${gap}\n`,
      );
    };
    return { lost, moved, report };
  };
  return { first, second, replication, services, clients, load, answers, allowedSince, workFrom, failOver };
}

async function wrongIn(connection: string, clients: readonly LeaseClient[]): Promise<string[]> {
  const ledger = await ledgerAt(connection);
  const wrong = await inspect(ledger, clients);
  await ledger.close();
  return wrong;
}

/** What a lease service lists. */
function listOf(clients: readonly LeaseClient[]): object[] {
  return clients
    .flatMap(({ acknowledged }) => [...acknowledged.values()])
    .map((lease) => {
      const { body } = endOf(lease) as { body: { context: CreateRequest['context']; lease: object } };
      const { user_id, project_id } = body.context;
      return { ...body.lease, user_id, project_id };
    });
}

const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(2)} s`;

/** Whatever was not allowed was refused, since the ledger could not be reached, and every request was answered. */
function expectRefusals(clients: readonly LeaseClient[]): void {
  const refused = clients.flatMap(({ answers }) => answers).filter(({ status }) => status !== 204);
  expect(refused).toEqual(refused.map(() => expect.objectContaining(REFUSED)));
  expect(clients.map(({ unanswered }) => unanswered)).toEqual(clients.map(() => 0));
}

function namesOf(wrong: readonly string[]): string[] {
  return wrong.map((text) => text.split(':')[0] ?? '');
}

describe('a standby that is promoted under load', PATIENT, () => {
  it('synchronous: has all that was acknowledged, and the same processes go on', async () => {
    const { second, services, clients, load, workFrom, failOver } = await newGround({ isSynchronous: true });
    const { lost, moved, report } = await failOver();
    expect(lost).toEqual([]);
    await workFrom(moved);
    await load.stop();
    expect(await wrongIn(second, clients)).toEqual([]);
    expectRefusals(clients);
    expect(services.map((service) => service.log()).join()).not.toContain('has gone back');
    report('synchronous');
  });

  it('asynchronous: may lack what was acknowledged last, and has all that was allowed since', async () => {
    const { first, second, services, clients, load, allowedSince, failOver } = await newGround({
      isSynchronous: false,
    });
    const { moved, report } = await failOver();
    const isNoticed = () => services.some((service) => service.log().includes('has gone back'));
    await vi.waitFor(() => expect(isNoticed() || allowedSince(moved).length > ENOUGH).toBe(true), SOON);
    await load.stop();
    await postgres.start();
    const inFirst = namesOf(await wrongIn(first, clients));
    expect(namesOf(await wrongIn(second, clients)).filter((name) => inFirst.includes(name))).toEqual([]);
    report('asynchronous');
  });

  it('asynchronous, while the first server still answers: is noticed, and nothing is granted then', async () => {
    const { services, clients, load, answers, allowedSince, failOver } = await newGround({
      isSynchronous: false,
    });
    await failOver({ isFenced: false });
    const haveNoticed = () => services.every((service) => service.log().includes('has gone back'));
    await vi.waitFor(() => expect(haveNoticed()).toBe(true), SOON);
    const noticed = performance.now();
    await vi.waitFor(
      () => expect(answers().filter(({ asked }) => asked > noticed).length).toBeGreaterThan(ENOUGH),
      SOON,
    );
    await load.stop();
    expect(allowedSince(noticed)).toEqual([]);
    expectRefusals(clients);
  });

  it('asynchronous and behind: grants nothing until what it has lost is recorded again', async () => {
    const { first, second, replication, services, clients, load, answers, allowedSince, workFrom, failOver } =
      await newGround({ isSynchronous: false });
    replication.cut();
    await Promise.all(
      services.map((service) => {
        const enough = service.answers() + ENOUGH;
        return vi.waitFor(() => expect(service.answers()).toBeGreaterThan(enough), SOON);
      }),
    );
    const { lost, moved, report } = await failOver();
    await vi.waitFor(
      () => expect(answers().filter(({ asked }) => asked > moved).length).toBeGreaterThan(ENOUGH),
      SOON,
    );
    await load.stop();
    expect(allowedSince(moved)).toEqual([]);
    expect(lost).not.toEqual([]);
    expect(services.map((service) => service.log()).join()).toContain('the ledger has gone back');
    expectRefusals(clients);
    await postgres.start();
    expect(await wrongIn(first, clients)).toEqual([]);

    const list = temporaryFile('leases.json', JSON.stringify(listOf(clients)));
    const conf = confFile(
      `[enforcement]\nenabled_filters = MaxLeasesFilter, UsageBudgetFilter\n[ledger]\nconnection = ${second}\n`,
    );
    const reconciled = ['ledger', 'reconcile', list, '--older-than', '0', '--config-file', conf];
    const { code, stderr } = await runCommand(reconciled);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('it grants leases again') });
    const again = startClients(clients, services);
    await workFrom(performance.now());
    await again.stop();
    expect(await wrongIn(second, clients)).toEqual([]);
    report('asynchronous and behind');
  });
});
