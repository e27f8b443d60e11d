import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { endOf, newClients, newLease, startClients } from '../support/lease-clients.ts';
import { inspect } from '../support/ledger-inspection.ts';
import { SCALE, SOON, startServices, withBudget } from '../support/ledger-processes.ts';
import { DIALECTS, ledgerAt, newLedgers } from '../support/ledgers.ts';
import { backends } from '../support/postgres-activity.ts';

/** On each of both databases: 25 processes are killed. */
const ROUNDS = 5 * SCALE;
const SERVICES = 5;
const CLIENTS = 20;
/** So many answers of a process at most, before it is killed. */
const LONGEST_LIFE = 40;

/** The end of a lease that nobody has recorded is harmless. */
const UNKNOWN = endOf(newLease(1).after);

const newLedger = newLedgers();

describe.each(DIALECTS)('services on a ledger in %s that are killed at random moments', (dialect) => {
  it('lose nothing that was acknowledged, and leave nothing half done', {
    timeout: 180_000 * SCALE,
  }, async () => {
    const connection = await newLedger(dialect);
    await (await withBudget(connection, '12000')).close();
    const clients = newClients(CLIENTS);
    let [kills, inDoubt] = [0, 0];
    for (let round = 0; round < ROUNDS; round += 1) {
      // A policy service takes long to start: in most rounds the ledger is in another process, and killed all the same.
      const services = await startServices(SERVICES, { connection, isEmbedded: round % 5 > 0 });
      // The first request of a process takes long: they are to be killed at work.
      await Promise.all(services.map((service) => service.ask(UNKNOWN.path, UNKNOWN.body)));
      const load = startClients(clients, services);
      await Promise.all(
        services.map(async (service) => {
          const life = Math.random() * LONGEST_LIFE;
          while (service.answers() < life) {
            await pause(Math.random() * 10);
          }
          await service.kill();
          kills += 1;
        }),
      );
      await load.stop();
      inDoubt += clients.filter(({ pending }) => pending !== undefined).length;
      if (dialect === 'postgresql') {
        // What the server was asked to commit before the kill it may still be committing.
        await vi.waitFor(async () => expect(await backends(connection)).toEqual([]), SOON);
      }
      const ledger = await ledgerAt(connection);
      expect(await inspect(ledger, clients)).toEqual([]);
      await ledger.close();
    }
    expect(kills).toBe(ROUNDS * SERVICES);
    // They were killed at work.
    expect(inDoubt).toBeGreaterThan(0);
  });
});
