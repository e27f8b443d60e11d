/** Services that are killed at work. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceProcess } from '../support/ledger-processes.ts';

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
