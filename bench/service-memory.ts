/** Looks for memory leaks of the service: after many requests, and after many reloads. */
import type { Scale, Trial } from './harness/suite.ts';
import { saturate } from './load.ts';
import { ServerProcess } from './server-process.ts';

const MILLION = 1_000_000;
const RELOADS = 1000;

async function measure({ quick, requests = quick ? 4000 : MILLION }: Scale): Promise<Map<string, number>> {
  const run = new Map<string, number>();
  const service = await ServerProcess.start('service, decision log');
  try {
    const tenth = Math.ceil(requests / 10);
    await saturate(service.url, tenth);
    run.set(EARLY, (await service.memory()).resident);
    await saturate(service.url, requests - tenth);
    run.set(LATE, (await service.memory()).resident);
  } finally {
    await service.stop();
  }

  const reloads = quick ? 10 : RELOADS;
  const reloaded = await ServerProcess.start('service, decision log');
  try {
    for (let reload = 1; reload <= reloads; reload += 1) {
      await reloaded.reload();
      await saturate(reloaded.url, 16);
      if (reload === reloads / 10 || reload === reloads) {
        const { resident, heap } = await reloaded.memory();
        const when = reload === reloads ? LATE_RELOADS : EARLY_RELOADS;
        run.set(when, resident).set(`${when}, heap`, heap);
      }
    }
  } finally {
    await reloaded.stop();
  }
  return run;
}

const EARLY = 'after a tenth';
const LATE = 'after all requests';
const EARLY_RELOADS = 'after a tenth of the reloads';
const LATE_RELOADS = 'after all reloads';

export const trial: Trial = {
  name: 'memory',
  file: import.meta.url,
  once: true,
  measure,
  comparisons: [
    { name: 'requests', measured: LATE, comparedWith: EARLY, of: 'memory', target: { atMost: 1.1 } },
    {
      name: 'reloads',
      measured: LATE_RELOADS,
      comparedWith: EARLY_RELOADS,
      of: 'memory',
      target: { atMost: 1.1 },
    },
    {
      name: 'reloads, heap',
      measured: `${LATE_RELOADS}, heap`,
      comparedWith: `${EARLY_RELOADS}, heap`,
      of: 'memory',
      target: { atMost: 1.1 },
    },
  ],
  notes: [
    `Resident memory of the service with its decision log: after ${MILLION.toLocaleString('en')} requests (--requests says another number) and after a tenth of them; after ${RELOADS.toLocaleString('en')} reloads, with 16 requests after each, and after a tenth of those; and then what of it is in use on the heap. Garbage is collected before it is read.`,
  ],
};
