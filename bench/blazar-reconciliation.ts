/** Compares the ledger with a Blazar of 10,000 leases: duration, memory, and the rate of checks meanwhile. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Run, Scale, Trial } from './harness/suite.ts';

const LEASES = 10_000;
const SECOND = 1e9;
const MIB = 1024 * 1024;

const RECONCILIATIONS = {
  'a reconciliation that corrects all leases': 'correcting',
  'a reconciliation with nothing to do': 'idle',
} as const;
const MEMORY = 'memory of both reconciliations';
const RATE = 'checks during reconciliations';
const ALONE = 'checks alone';
const HELD = 'the longest time without a turn for others';
const BOUNDS = { time: 'five seconds', memory: '200 MiB', held: '100 milliseconds' } as const;

/** Measurements of the process that reconciles. */
export interface Measured {
  /** In milliseconds. */
  readonly correcting: number;
  readonly idle: number;
  /** In bytes. */
  readonly memory: number;
  /** Checks per second. */
  readonly alone: number;
  readonly during: number;
  /** In milliseconds. */
  readonly held: number;
}

async function measure({ quick }: Scale): Promise<Run> {
  const leases = quick ? 100 : LEASES;
  const main = new URL(`./blazar-reconciliation-process${extname(import.meta.url)}`, import.meta.url);
  const child = fork(fileURLToPath(main), [String(leases)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [measured] = (await once(child, 'message')) as [Measured];
  return new Map([
    ['a reconciliation that corrects all leases', measured.correcting * 1e6],
    ['a reconciliation with nothing to do', measured.idle * 1e6],
    [MEMORY, measured.memory],
    [ALONE, SECOND / measured.alone],
    [RATE, SECOND / measured.during],
    [HELD, measured.held * 1e6],
    [BOUNDS.time, 5 * SECOND],
    [BOUNDS.memory, 200 * MIB],
    [BOUNDS.held, 0.1 * SECOND],
  ]);
}

export const trial: Trial = {
  name: 'blazar',
  file: import.meta.url,
  measure,
  comparisons: [
    {
      name: 'a reconciliation of 10,000 leases with nothing to do',
      measured: 'a reconciliation with nothing to do',
      comparedWith: BOUNDS.time,
      of: 'time',
      target: { atMost: 1 },
    },
    {
      name: 'a reconciliation that corrects 10,000 leases',
      measured: 'a reconciliation that corrects all leases',
      comparedWith: BOUNDS.time,
      of: 'time',
    },
    {
      name: 'its memory, beside the service',
      measured: MEMORY,
      comparedWith: BOUNDS.memory,
      of: 'memory',
      target: { atMost: 1 },
    },
    {
      name: 'checks during reconciliations with nothing to do',
      measured: RATE,
      comparedWith: ALONE,
      of: 'rate',
      target: { atLeast: 0.7 },
    },
    {
      name: 'the longest time for which a reconciliation with nothing to do holds the process',
      measured: HELD,
      comparedWith: BOUNDS.held,
      of: 'time',
      target: { atMost: 1 },
    },
  ],
  notes: [
    `blazar: ${Object.keys(RECONCILIATIONS).join(', ')}. A process of its own answers ${LEASES.toLocaleString('en')} leases as Blazar lists them, some 17 MB. Ledger: SQLite.`,
  ],
};
