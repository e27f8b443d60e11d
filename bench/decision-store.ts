/** Measures what storing decisions in the ledger costs checks, and whether all decisions are stored. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Dialect } from '../src/ledger/storage/connection.ts';
import { median } from './harness/results.ts';
import { type Comparison, processorOf, type Run, type Scale, type Trial } from './harness/suite.ts';
import { DIALECTS, NAMES, newLedger, PROJECT, startDatabases } from './ledger-databases.ts';
import { type Questions, saturate } from './load.ts';
import { capturedRequests, withLease } from './requests.ts';
import { ON_LEDGER } from './server-files.ts';
import { type ServerKind, ServerProcess } from './server-process.ts';

/** What is checked, and how many requests are a turn: twice as many as may wait in memory, or as long. */
const CHAINS = [
  { what: 'checks', kind: 'service, ledger', requests: 1000 },
  { what: 'checks without a filter on the ledger', kind: 'service, beside a ledger', requests: 20_000 },
] as const satisfies { what: string; kind: ServerKind; requests: number }[];
const QUICK_REQUESTS = 64;
const ROUNDS = 3;
/** Timeout for a store to write its queue when there are no more requests, in milliseconds. */
const WRITTEN_WITHIN = 60_000;

/** One request in four is refused: its lease is too long. */
const QUESTIONS: Questions = {
  path: '/check-create',
  hasRefusals: true,
  hasIds: true,
  bodies: capturedRequests().map(({ context, lease }, index) => {
    const request = {
      context: { ...context, project_id: PROJECT },
      lease: { ...lease, name: 'bench [<id>]' },
    };
    return JSON.stringify(index % 4 === 0 ? withLease(request, { end_date: '2099-01-01T00:00' }) : request);
  }),
};

/** Nanoseconds per request. */
interface Turn {
  readonly elapsed: number;
  readonly processor: number;
}

class Side {
  readonly #server: ServerProcess;
  decided = 0;

  constructor(server: ServerProcess) {
    this.#server = server;
  }

  /** Empties the queue afterwards: processor time includes writing, elapsed time does not. */
  async takeTurn(requests: number): Promise<Turn> {
    const before = await this.#server.processor();
    const milliseconds = await saturate(this.#server.url, requests, QUESTIONS);
    this.decided += requests;
    await this.written();
    const processor = (await this.#server.processor()) - before;
    return { elapsed: (milliseconds * 1e6) / requests, processor: processor / requests };
  }

  /** Waits until everything is written. */
  async written(): Promise<void> {
    for (
      const end = performance.now() + WRITTEN_WITHIN;
      (await this.sample('waiting')) > 0;
      await pause(50)
    ) {
      if (performance.now() > end) {
        throw new Error('decisions still wait to be stored');
      }
    }
  }

  async sample(name: string): Promise<number> {
    const text = await (await fetch(`${this.#server.url}/metrics`)).text();
    const [, value] = text.match(new RegExp(`^\\S*decision_store_${name} (\\d+)$`, 'm')) ?? [];
    return Number(value);
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }
}

async function start(kind: ServerKind, dialect: Dialect): Promise<Side> {
  process.env[ON_LEDGER] = await newLedger(dialect);
  return new Side(await ServerProcess.start(kind));
}

const withStore = (what: string, dialect: Dialect) => `${what}, stored, ${NAMES[dialect]}`;
const without = (what: string, dialect: Dialect) => `${what}, ${NAMES[dialect]}`;
const stored = (what: string, dialect: Dialect) => `stored of ${what}, ${NAMES[dialect]}`;
const decided = (what: string, dialect: Dialect) => `decided of ${what}, ${NAMES[dialect]}`;

async function measure({ quick }: Scale): Promise<Run> {
  const databases = await startDatabases();
  const run = new Map<string, number>();
  try {
    for (const dialect of DIALECTS) {
      for (const { what, kind, requests } of CHAINS) {
        const plain = await start(kind, dialect);
        const storing = await start(`${kind}, decisions`, dialect);
        try {
          const many = quick ? QUICK_REQUESTS : requests;
          const turns: [Turn, Turn][] = [];
          await storing.written();
          const before = await storing.sample('stored_total');
          for (let round = 0; round <= (quick ? 1 : ROUNDS); round += 1) {
            turns.push([await plain.takeTurn(many), await storing.takeTurn(many)]);
          }
          // The first turns are the warm-up.
          turns.shift();
          [without(what, dialect), withStore(what, dialect)].forEach((side, index) => {
            run.set(side, median(turns.map((turn) => turn[index]?.elapsed ?? 0)));
            run.set(processorOf(side), median(turns.map((turn) => turn[index]?.processor ?? 0)));
          });
          run.set(stored(what, dialect), (await storing.sample('stored_total')) - before);
          run.set(decided(what, dialect), storing.decided);
        } finally {
          await Promise.all([plain.stop(), storing.stop()]);
        }
      }
    }
    return run;
  } finally {
    await databases.stop();
  }
}

const comparisons: Comparison[] = DIALECTS.flatMap((dialect) =>
  CHAINS.flatMap(({ what }): Comparison[] => [
    {
      name: `${what}, ${NAMES[dialect]}`,
      measured: withStore(what, dialect),
      comparedWith: without(what, dialect),
      of: 'rate',
      target: { atLeast: 0.9 },
    },
    {
      name: `${what}, by its processor, ${NAMES[dialect]}`,
      measured: processorOf(withStore(what, dialect)),
      comparedWith: processorOf(without(what, dialect)),
      of: 'rate',
    },
    {
      name: `decisions stored of ${what}, ${NAMES[dialect]}`,
      measured: stored(what, dialect),
      comparedWith: decided(what, dialect),
      of: 'count',
      target: { atLeast: 1 },
    },
  ]),
);

export const trial: Trial = {
  name: 'decision-store',
  file: import.meta.url,
  measure,
  comparisons,
  notes: [
    'POST /check-create at the service, from 16 callers that never sleep, with decision_store = all beside decision_store = none on another new ledger. One request in four is refused. Each lease has another name.',
    'Checks: MaxLeaseDurationFilter, MaxLeasesFilter and UsageBudgetFilter; what is allowed is recorded. Without a filter on the ledger: MaxLeaseDurationFilter alone, several times as many requests a second as Blazar has ever asked.',
    'Stored of decided: less than 1 = decisions were dropped, since more than 10,000 of them waited to be written. A turn ends with the last answer; what waits then is written before the next turn. "By its processor": that of the service, with what it writes then; of PostgreSQL nothing.',
    'A machine with two processors has none for the store: the callers hold one, the service the other.',
  ],
};
