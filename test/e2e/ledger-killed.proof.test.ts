/** Services that are killed at random moments: the ledger has each lease that was answered. SQLite and PostgreSQL. */
import { describe, expect, it, vi } from 'vitest';
import { parseUnitHours } from '../../src/filter/claim.ts';
import { endOf, newClients, newLease, startClients } from '../support/lease-clients.ts';
import { extremes, inspect } from '../support/ledger-inspection.ts';
import { SCALE, SOON, startServices, withBudget } from '../support/ledger-processes.ts';
import { DIALECTS, ledgerAt, newLedgers } from '../support/ledgers.ts';
import { backends } from '../support/postgres-activity.ts';
import { killedAtWork } from './killed.ts';

interface Load {
  readonly rounds: number;
  readonly services: number;
  readonly clients: number;
  /** So many answers of a process at most, before it is killed. */
  readonly longestLife: number;
}

/** On each of both databases: 25 processes are killed. */
const MANY_SERVICES: Load = { rounds: 4 * SCALE, services: 5, clients: 20, longestLife: 40 };
/** 64 requests wait at each of two services: they are committed together. */
const MANY_AT_ONCE: Load = { rounds: 2 * SCALE, services: 2, clients: 128, longestLife: 400 };

const BUDGET = '12000';
const ACCOUNT = 'usage_budget/1';

/** The end of a lease that nobody has recorded is harmless. */
const UNKNOWN = endOf(newLease(1).after);

const newLedger = newLedgers();

describe.each(DIALECTS)('services on a ledger in %s that are killed at random moments', (dialect) => {
  it.each([
    ['many services', MANY_SERVICES],
    ['many requests at once', MANY_AT_ONCE],
  ])(
    'lose nothing that was acknowledged, and leave nothing half done: %s',
    {
      timeout: 1_200_000 * SCALE,
    },
    async (_, load) => {
      const connection = await newLedger(dialect);
      await (await withBudget(connection, BUDGET)).close();
      const clients = newClients(load.clients);
      let inDoubt = 0;
      for (let round = 0; round < load.rounds; round += 1) {
        // A policy service takes long to start: in most rounds the ledger is in another process, and killed all the same.
        const services = await startServices(load.services, { connection, isEmbedded: round % 5 > 0 });
        // The first request of a process takes long: they are to be killed at work.
        await Promise.all(services.map((service) => service.ask(UNKNOWN.path, UNKNOWN.body)));
        const working = startClients(clients, services);
        await killedAtWork(services, () => Math.random() * load.longestLife);
        await working.stop();
        inDoubt += clients.filter(({ pending }) => pending !== undefined).length;
        if (dialect === 'postgresql') {
          // What the server was asked to commit before the kill it may still be committing.
          await vi.waitFor(async () => expect(await backends(connection)).toEqual([]), SOON);
        }
        const ledger = await ledgerAt(connection);
        expect(await inspect(ledger, clients)).toEqual([]);
        expect((await extremes(ledger, ACCOUNT)).highest).toBeLessThanOrEqual(parseUnitHours(BUDGET) ?? 0n);
        await ledger.close();
      }
      // They were killed at work.
      expect(inDoubt).toBeGreaterThan(0);
    },
  );
});
