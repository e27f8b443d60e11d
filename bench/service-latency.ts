/** Measures latency at half of the service's maximum rate. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Scale, Trial } from './harness/suite.ts';
import { atRate, saturate } from './load.ts';
import { ServerProcess } from './server-process.ts';

const BOUND = 'allowed';
const RELOAD_MS = 1000;
const BOUND_NANOSECONDS = 10e6;

async function measure({ quick }: Scale): Promise<ReadonlyMap<string, number>> {
  const requests = quick ? 500 : 40_000;
  const milliseconds = quick ? 300 : 10_000;
  const warmUp = quick ? 0 : 2000;
  const service = await ServerProcess.start('service, decision log');
  const bare = await ServerProcess.start('node:http');
  try {
    for (const { url } of [service, bare]) {
      await saturate(url, requests);
    }
    const perSecond = (requests / (await saturate(service.url, requests))) * 1000;
    const percentiles = async ({ url }: ServerProcess) => {
      const took = await atRate(url, perSecond / 2, { milliseconds, warmUp });
      return { p50: took.percentile(50), p99: took.percentile(99) };
    };
    const ours = await percentiles(service);
    const theirs = await percentiles(bare);
    const reloading = await whileReloading(service, () => percentiles(service));
    return new Map([
      ['service that reloads, p99', reloading.p99],
      ['service, p99', ours.p99],
      ['service, p50', ours.p50],
      ['node:http, p99', theirs.p99],
      ['node:http, p50', theirs.p50],
      [BOUND, BOUND_NANOSECONDS],
    ]);
  } finally {
    await Promise.all([service.stop(), bare.stop()]);
  }
}

/** Does some work during continuous reloads, a second apart. */
async function whileReloading<Result>(service: ServerProcess, work: () => Promise<Result>): Promise<Result> {
  const ended = new AbortController();
  const reloads = (async () => {
    while (!ended.signal.aborted) {
      await service.reload();
      await pause(RELOAD_MS, undefined, { signal: ended.signal }).catch(() => {});
    }
  })();
  try {
    return await work();
  } finally {
    ended.abort();
    await reloads;
  }
}

export const trial: Trial = {
  name: 'latency',
  file: import.meta.url,
  measure,
  comparisons: [
    { name: 'p99', measured: 'service, p99', comparedWith: BOUND, of: 'time', target: { atMost: 1 } },
    {
      name: 'p99 beside node:http',
      measured: 'service, p99',
      comparedWith: 'node:http, p99',
      of: 'time',
      target: { atMost: 3 },
    },
    {
      name: 'p99 beside node:http, with a reload each second',
      measured: 'service that reloads, p99',
      comparedWith: 'node:http, p99',
      of: 'time',
      target: { atMost: 5 },
    },
    {
      name: 'p50 beside node:http',
      measured: 'service, p50',
      comparedWith: 'node:http, p50',
      of: 'time',
    },
  ],
  notes: [
    'The service as in `service`, with its decision log. First it is measured how many requests a second it answers; then for ten seconds half as many come, at random moments (a Poisson process), whether or not those before are answered; two more seconds before them are not counted, in which the callers open their connections and become as fast as they get.',
    'A request takes from the moment that it was due until its answer is read, so nothing is left out while the server, or the process of its callers, is late. The same rate at the node:http server shows what of it is the callers and the machine.',
    '"With a reload each second": the service reads its configuration again a second after it has done so.',
  ],
};
