/** A connection to PostgreSQL that breaks between any two messages of a commit, in each direction. */

import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { UsageEnforcement } from '../../../src/index.ts';
import { listBudgets } from '../../../src/ledger/budgets/budgets.ts';
import { listLeases } from '../../../src/ledger/reports/reports.ts';
import { verifyLedger } from '../../../src/ledger/reports/verify.ts';
import { valuesOnly } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { giveBudget, NO_WAIT, newLedgers, openedLedger } from '../../support/ledgers.ts';
import { recordingLogger } from '../../support/logger.ts';
import { createHost } from '../../support/requests.ts';
import { startTcpService } from '../../support/services.ts';

type Direction = 'to the server' | 'to the client';

interface Cutter {
  /** The connection as it is through here, without TLS. */
  readonly connection: string;
  /** The next such transaction loses its connection when so many of its messages have passed; BEGIN is the first to the server. */
  cutAfter(messages: number, direction: Direction): void;
  /** How many messages of the last such transaction have passed. */
  passed(direction: Direction): number;
  /** Whether the connection was cut since `cutAfter`. */
  hasCut(): boolean;
}

async function startCutter(connection: string): Promise<Cutter> {
  let cut: { readonly messages: number; readonly direction: Direction } | undefined;
  let hasCut = false;
  let last: Record<Direction, number> = { 'to the server': 0, 'to the client': 0 };
  const { port: target, hostname } = new URL(connection);
  const { port } = await startTcpService((client) => {
    const server = connect(Number(target), hostname);
    // A message is passed on at once, however small.
    client.setNoDelay();
    server.setNoDelay();
    /** Of the transaction that writes; `undefined` = there is none. */
    let counts: typeof last | undefined;
    const pass = (from: Socket, to: Socket, direction: Direction, isFirstBare: boolean) => {
      let pending = Buffer.alloc(0);
      let isBare = isFirstBare;
      const isOver = () =>
        counts !== undefined && cut?.direction === direction && counts[direction] >= cut.messages;
      const end = () => {
        cut = undefined;
        hasCut = true;
        // What has passed arrives, in both directions.
        client.end(() => client.destroy());
        server.end(() => server.destroy());
      };
      from.on('error', () => {});
      from.on('close', () => to.destroy());
      from.on('data', (bytes) => {
        pending = Buffer.concat([pending, bytes]);
        for (;;) {
          const head = isBare ? 0 : 1;
          if (pending.length < head + 4) {
            return;
          }
          const length = head + pending.readUInt32BE(head);
          if (pending.length < length) {
            return;
          }
          const message = pending.subarray(0, length);
          pending = pending.subarray(length);
          isBare = false;
          if (direction === 'to the server' && message.includes('BEGIN ')) {
            counts = message.includes('READ COMMITTED;')
              ? { 'to the server': 0, 'to the client': 0 }
              : undefined;
            last = counts ?? last;
          }
          if (to.destroyed || to.writableEnded) {
            return;
          }
          if (isOver()) {
            end();
            return;
          }
          if (counts !== undefined) {
            counts[direction] += 1;
          }
          to.write(message);
        }
      });
    };
    pass(client, server, 'to the server', true);
    pass(server, client, 'to the client', false);
  });
  const through = new URL(connection);
  through.port = String(port);
  through.searchParams.set('sslmode', 'disable');
  return {
    connection: through.href,
    cutAfter(messages, direction) {
      cut = { messages, direction };
      hasCut = false;
    },
    passed: (direction) => last[direction],
    hasCut: () => hasCut,
  };
}

const newLedger = newLedgers();
const UNIT_HOURS = 24;
/** In leases: more than there are messages in a commit. */
const BUDGET = 40;
/** Not a multiple of a group: the last one is granted in part. Most that are cut are granted on the next connection. */
const GROUPS_BUDGET = 241;

const lease = (name: string) =>
  createHost({ name, start_date: '2030-12-01 09:00', end_date: '2030-12-02 09:00' }).lease;

/** `most`: how many leases there is a budget for. */
async function newGround(most: number) {
  const connection = await newLedger('postgresql');
  const ledger = await openedLedger(connection);
  await giveBudget(ledger, { amount: String(most * UNIT_HOURS), from: '2020-01-01', until: '2200-01-01' });
  const cutter = await startCutter(connection);
  const enforcement = await UsageEnforcement.load(
    valuesOnly({
      ledger: { connection: cutter.connection, doubt_folder: temporaryFolder() },
      enforcement: { enabled_filters: ['MaxLeasesFilter', 'UsageBudgetFilter'] },
    }),
    { logger: recordingLogger() },
  );
  onTestFinished(() => enforcement.close());
  const acknowledged = new Set<string>();
  let asked = 0;
  const ask = async (user_id = 'alice') => {
    const name = `run ${asked}`;
    asked += 1;
    const context = { user_id, project_id: 'climate' };
    const decision = await enforcement.checkCreate({ context, lease: lease(name) });
    if (decision.allowed) {
      acknowledged.add(name);
    }
    return decision.allowed;
  };
  /** What holds of the leases, at once or when the database has answered. */
  const settled = async () => {
    await expect
      .poll(
        async () => {
          const leases = await listLeases(ledger, { limit: 1000 }, NO_WAIT);
          return leases
            .filter(({ state }) => state !== 'ended')
            .map(({ name }) => name)
            .toSorted();
        },
        { timeout: 240_000 },
      )
      .toEqual([...acknowledged].toSorted());
    const [budget] = await listBudgets(ledger, 'climate', NO_WAIT);
    expect(budget?.taken).toBe(((budget?.amount ?? 0n) / BigInt(most)) * BigInt(acknowledged.size));
    expect(budget?.taken).toBeLessThanOrEqual(budget?.amount ?? 0n);
  };
  return { ledger, cutter, ask, acknowledged, settled };
}

it.each(['to the server', 'to the client'] as const)(
  'loses no acknowledged lease, and keeps no other, when it breaks on the way %s',
  async (direction) => {
    const { ledger, cutter, ask, acknowledged, settled } = await newGround(BUDGET);
    await ask();
    await ask();
    const most = cutter.passed(direction);
    expect(most).toBeGreaterThan(10);
    let cuts = 0;
    for (let messages = 0; messages <= most; messages += 1) {
      cutter.cutAfter(messages, direction);
      await ask();
      cuts += cutter.hasCut() ? 1 : 0;
      await settled();
    }
    expect(cuts).toBeGreaterThanOrEqual(most - 1);
    // The next ones find a connection that works.
    cutter.cutAfter(Number.POSITIVE_INFINITY, direction);
    while (await ask()) {}
    expect(acknowledged.size).toBe(BUDGET);
    await settled();
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  },
);

it.each(['to the server', 'to the client'] as const)(
  'loses no acknowledged lease of a group, and keeps no other, when it breaks on the way %s',
  async (direction) => {
    const { ledger, cutter, ask, acknowledged, settled } = await newGround(GROUPS_BUDGET);
    const users = ['alice', 'bob', 'carol'];
    const askAll = () => Promise.all(users.map((user) => ask(user)));
    await ask();
    await ask();
    const alone = cutter.passed(direction);
    expect(await askAll()).toEqual([true, true, true]);
    let cuts = 0;
    // A new connection has more messages: its statements are not prepared yet.
    for (let messages = 0, passed = 0; passed < 3; messages += 1) {
      cutter.cutAfter(messages, direction);
      await askAll();
      cuts += cutter.hasCut() ? 1 : 0;
      passed = cutter.hasCut() ? 0 : passed + 1;
      await settled();
    }
    expect(cuts).toBeGreaterThan(alone);
    cutter.cutAfter(Number.POSITIVE_INFINITY, direction);
    while ((await askAll()).includes(true)) {}
    expect(acknowledged.size).toBe(GROUPS_BUDGET);
    await settled();
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  },
);
