/** Services that are killed at work. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import type { ServiceProcess } from '../support/ledger-processes.ts';
import { NO_WAIT } from '../support/ledgers.ts';

/** Kills each service after so many answers, while clients work until all services are gone. */
export async function killedAtWork(
  services: readonly ServiceProcess[],
  lifeOf: () => number,
  clients: readonly ((over: () => boolean) => Promise<void>)[] = [],
): Promise<void> {
  let alive = services.length;
  const working = clients.map((client) => client(() => alive === 0));
  await Promise.all(
    services.map(async (service) => {
      const life = lifeOf();
      while (service.answers() < life) {
        await pause(Math.random() * 10);
      }
      await service.kill();
      alive -= 1;
    }),
  );
  await Promise.all(working);
}

/** What waits in the outbox is due now, as if the claims of killed processes and the pauses after failures were over. */
export async function hasten(ledger: Ledger): Promise<void> {
  const { queries } = ledger.database;
  const due = queries.updateTable('outbox').set({ claimed_until: 0n, next_at: 0n });
  await ledger.transact(
    'outbox',
    function* () {
      yield* rows(due.where('state', '=', 'waiting').returning('id').compile());
    },
    NO_WAIT,
  );
}
