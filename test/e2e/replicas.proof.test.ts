/** Four services on one PostgreSQL: one is killed, one is frozen, and one cannot reach the database, all at once. */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { budgetAccount, parseUnitHours } from '../../src/filter/claim.ts';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { type LeaseClient, newClients, startClients } from '../support/lease-clients.ts';
import { extremes, inspect } from '../support/ledger-inspection.ts';
import { type ServiceProcess, SOON, startService, withBudget } from '../support/ledger-processes.ts';
import { NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { type Proxy as DatabaseProxy, startProxy } from '../support/postgres-proxy.ts';
import { PROJECT } from '../support/requests.ts';

/** How long the three faults last, in seconds: `REPLICAS_SECONDS=60` for a full minute. */
const SECONDS = Number(process.env.REPLICAS_SECONDS ?? 6);
const ROUNDS = 2;
const CLIENTS = 3;
const BUDGET = '9000';

const newLedger = newLedgers();

/** One service at a time, its way to the database, and its clients. */
interface Place {
  readonly proxy: DatabaseProxy;
  readonly doubtFolder: string;
  /** The service; another process after each `kill -9`. */
  readonly services: ServiceProcess[];
  readonly clients: readonly LeaseClient[];
}

async function restart(place: Place): Promise<void> {
  const { proxy, doubtFolder, services } = place;
  const { connection } = proxy;
  services[0] = await startService({ connection, doubtFolder, deadline: 4, timeout: 3 });
}

/** How many requests have been allowed at a place since then, by `performance.now()`. */
function allowedSince({ clients }: Place, since: number): number {
  return clients
    .flatMap(({ answers }) => answers)
    .filter(({ asked, status }) => asked >= since && status === 204).length;
}

it('are never overdrawn, go on, and resume when one is killed, one frozen and one cut off', {
  timeout: 1_200_000 + ROUNDS * SECONDS * 2000,
}, async () => {
  const connection = await newLedger('postgresql');
  const ledger = await withBudget(connection, BUDGET);
  onTestFinished(() => ledger.close());
  const [budget] = await listBudgets(ledger, PROJECT, NO_WAIT);
  const places = await Promise.all(
    Array.from({ length: 4 }, async (): Promise<Place> => {
      const proxy = await startProxy(connection);
      // An end is answered alike whether it was recorded or not.
      const clients = newClients(CLIENTS, { mayEnd: false, asksAgain: true });
      const place = { proxy, doubtFolder: join(temporaryFolder(), 'doubt'), services: [], clients };
      await restart(place);
      return place;
    }),
  );
  const working = places.map(({ clients, services }) => startClients(clients, services));
  const resumed = async (which: readonly Place[]) => {
    const since = performance.now();
    const all = () => which.map((place) => allowedSince(place, since) > 0);
    await vi.waitFor(() => expect(all()).toEqual(which.map(() => true)), SOON);
  };

  for (let round = 0; round < ROUNDS; round += 1) {
    await resumed(places);
    const [killed, frozen, cutOff, healthy] = places.map(
      (_, index) => places[(index + round) % places.length],
    ) as [Place, Place, Place, Place];
    const began = performance.now();
    await killed.services[0]?.kill();
    frozen.services[0]?.process.kill('SIGSTOP');
    cutOff.proxy.cut();
    const cutAt = performance.now();
    await pause(SECONDS * 1000);
    // The project may be held by one that is frozen, until the database ends its transaction.
    await resumed([healthy]);
    const cutAnswers = () =>
      cutOff.clients.flatMap(({ answers }) => answers.filter(({ asked }) => asked > cutAt));
    await vi.waitFor(() => expect(cutAnswers()).not.toEqual([]), SOON);
    expect(cutAnswers().filter(({ status }) => status !== 403)).toEqual([]);
    expect(allowedSince(killed, began)).toBe(0);
    frozen.services[0]?.process.kill('SIGCONT');
    cutOff.proxy.mend();
    await restart(killed);
  }
  await resumed(places);
  await Promise.all(working.map((one) => one.stop()));

  // A commit in doubt is taken back as soon as the database answers.
  const clients = places.flatMap((place) => place.clients);
  await vi.waitFor(async () => expect(await inspect(ledger, clients)).toEqual([]), SOON);
  const { highest, lowest } = await extremes(ledger, budgetAccount(budget ?? { id: 0n }));
  expect(highest).toBeLessThanOrEqual(parseUnitHours(BUDGET) ?? 0n);
  expect(lowest).toBe(0n);
});
