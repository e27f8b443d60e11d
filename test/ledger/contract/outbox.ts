import { expect, it, vi } from 'vitest';
import type { Delivery } from '../../../src/index.ts';
import {
  countOutbox,
  discardMessages,
  outboxMessage,
  retryMessages,
} from '../../../src/ledger/outbox/reports.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { NO_WAIT } from '../../support/ledgers.ts';
import type { LedgerFixture, LedgerFixtures } from '../fixture.ts';
import {
  AWAY,
  DELIVERED,
  emptied,
  NOT_SENT,
  newSender,
  REFUSED,
  type Sender,
  type SenderOptions,
  SOON,
} from '../outboxes.ts';

const OPERATOR = { who: 'operator', reason: 'a good one' };

/** Delivers everything but these bodies. */
const refusing =
  (...bodies: string[]) =>
  ({ body }: { readonly body: string }): Delivery =>
    bodies.includes(body) ? REFUSED : DELIVERED;

async function onlyMessage(sender: Sender) {
  const [message] = await sender.list();
  if (message === undefined) {
    throw new Error('expected a message');
  }
  return message;
}

async function sendingOn(fixtures: LedgerFixtures, options?: SenderOptions) {
  const fixture = await fixtures();
  return { fixture, sender: await newSender(fixture, options) };
}

/** Another process has claimed them, and does not give them back. */
async function claimedElsewhere(
  { ledger }: LedgerFixture,
  { name }: Sender,
  claimed_until: bigint,
): Promise<void> {
  const query = ledger.database.queries
    .updateTable('outbox')
    .set({ claim: 'another', claimed_until })
    .where('sender', '=', name);
  await ledger.transact('outbox', () => rows(query.compile()), NO_WAIT);
}

/** Messages that must not be lost. */
export function delivering(fixtures: LedgerFixtures): void {
  const sending = (options?: SenderOptions) => sendingOn(fixtures, options);

  it('delivers a message as it was given, once, and forgets it', async () => {
    const { sender } = await sending();
    const body = JSON.stringify({ a: ['\0', '\ud800', '😀', '"'.repeat(1000)] });
    await sender.end('A', body);
    expect(sender.attempts).toEqual([]);
    sender.chain.deliver();
    await emptied(sender);
    expect(sender.attempts).toEqual([{ key: expect.stringMatching(/^[\x21-\x7e]{1,255}$/), body }]);
  });

  it('delivers what an earlier process has left', async () => {
    const fixture = await fixtures();
    const before = await newSender(fixture);
    await before.end('A');
    await before.end('B');
    await before.chain.close();
    const after = await newSender(fixture, { name: before.name });
    after.chain.deliver();
    await emptied(after);
    expect(after.delivered).toEqual(['A', 'B']);
  });

  it('repeats a message with its key until it is delivered', async () => {
    const { fixture, sender } = await sending();
    sender.deliver = (_, attempt) => {
      if (attempt < 3) {
        return REFUSED;
      }
      if (attempt === 3) {
        throw new Error('a fault of the filter');
      }
      if (attempt === 4) {
        // From JavaScript: nothing is returned.
        return undefined as never;
      }
      return DELIVERED;
    };
    await sender.end('A');
    await sender.end('B');
    sender.chain.deliver();
    await emptied(sender, fixture);
    const keys = (body: string) =>
      sender.attempts.flatMap((attempt) => (attempt.body === body ? [attempt.key] : []));
    expect(keys('A')).toHaveLength(5);
    expect(new Set(keys('A')).size).toBe(1);
    expect(new Set([...keys('A'), ...keys('B')]).size).toBe(2);
  });

  it('keeps the order of the messages about one lease, and lets others pass', async () => {
    const { fixture, sender } = await sending();
    sender.deliver = ({ body }, attempt) => (body === 'A1' && attempt < 4 ? REFUSED : DELIVERED);
    for (const [id, body] of [
      ['A', 'A1'],
      ['A', 'A2'],
      ['B', 'B1'],
      ['A', 'A3'],
      ['B', 'B2'],
    ] as const) {
      await sender.end(id, body);
    }
    sender.chain.deliver();
    await emptied(sender, fixture);
    expect(sender.delivered.filter((body) => body.startsWith('A'))).toEqual(['A1', 'A2', 'A3']);
    expect(sender.delivered.filter((body) => body.startsWith('B'))).toEqual(['B1', 'B2']);
    expect(sender.delivered.indexOf('B1')).toBeLessThan(sender.delivered.indexOf('A1'));
  });

  it('takes leases without an id, in other projects and regions, for different leases', async () => {
    const { fixture, sender } = await sending();
    sender.deliver = refusing('first', 'here');
    await sender.end(undefined, 'first');
    await sender.end(undefined, 'second');
    const elsewhere = { ...fixture.context(), region_name: 'elsewhere' };
    const foreign = { ...fixture.context(), project_id: `${fixture.project}-2` };
    await sender.end('A', 'here');
    await sender.box.add({ context: elsewhere, lease: { id: 'A' }, body: 'elsewhere' }, {});
    await sender.box.add({ context: foreign, lease: { id: 'A' }, body: 'foreign' }, {});
    sender.chain.deliver();
    await vi.waitFor(
      () => expect([...sender.delivered].sort()).toEqual(['elsewhere', 'foreign', 'second']),
      SOON,
    );
  });

  it('delivers all that has gathered while a service was away, the oldest first, a few at a time', async () => {
    const { sender } = await sending();
    const bodies = Array.from({ length: 100 }, (_, index) => `lease ${index}`);
    await Promise.all(bodies.slice(0, 20).map((body) => sender.end(body)));
    let calls = 0;
    sender.deliver = () => {
      calls += 1;
      return calls < 12 ? AWAY : DELIVERED;
    };
    sender.chain.deliver();
    await vi.waitFor(() => expect(calls).toBeGreaterThan(8), SOON);
    // One at a time, and always the oldest, once the first few have failed.
    expect(new Set(sender.attempts.slice(4).map(({ body }) => body)).size).toBe(1);
    for (const body of bodies.slice(20)) {
      await sender.end(body);
    }
    await emptied(sender);
    expect(new Set(sender.delivered)).toEqual(new Set(bodies));
    expect(sender.delivered).toHaveLength(bodies.length);
    // One whose last attempt, or whose writing, is still being recorded when the others are claimed comes after them.
    const places = sender.delivered.map((body) => bodies.indexOf(body));
    const stragglers = places.filter((place, index) => Math.abs(place - index) > 12);
    expect(stragglers.length).toBeLessThanOrEqual(4);
    expect(sender.most()).toBe(4);
    expect(sender.logger.lines.filter(({ message }) => message.startsWith('messages '))).toMatchObject([
      { level: 'warn', message: 'messages wait: the external service does not accept them' },
      { level: 'info', message: 'messages are delivered again' },
    ]);
  });

  it('leaves a service alone for as long as it asks', async () => {
    const { sender } = await sending();
    sender.deliver = () => ({ ...AWAY, retryAfter: 3600 }) as Delivery;
    await sender.end('A');
    sender.chain.deliver();
    await vi.waitFor(async () => expect((await onlyMessage(sender)).attempts).toBe(1n), SOON);
    await sender.end('B');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sender.attempts).toHaveLength(1);
  });

  it('leaves it alone also when an earlier call ends well meanwhile', async () => {
    const { sender } = await sending();
    let end = () => {};
    const slow = new Promise<void>((resolve) => {
      end = resolve;
    });
    sender.deliver = async ({ body }) => {
      if (body === 'slow') {
        await slow;
        return DELIVERED;
      }
      return { ...AWAY, retryAfter: 3600 } as Delivery;
    };
    await sender.end('slow');
    await sender.end('A');
    sender.chain.deliver();
    await vi.waitFor(async () => expect((await sender.list())[1]?.attempts).toBe(1n), SOON);
    end();
    await vi.waitFor(async () => expect(await sender.list()).toHaveLength(1), SOON);
    await sender.end('B');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sender.attempts).toHaveLength(2);
  });

  it('does not let messages that are always refused keep others waiting', async () => {
    const { fixture, sender } = await sending();
    const bad = Array.from({ length: 6 }, (_, index) => `bad ${index}`);
    sender.deliver = refusing(...bad);
    for (const body of bad) {
      await sender.end(body);
    }
    sender.chain.deliver();
    await vi.waitFor(() => {
      // All are due again.
      fixture.now = new Date(Date.parse(fixture.now) + 20).toISOString();
      expect(sender.attempts.length).toBeGreaterThan(8);
    }, SOON);
    await sender.end('good');
    await vi.waitFor(() => {
      fixture.now = new Date(Date.parse(fixture.now) + 20).toISOString();
      expect(sender.delivered).toEqual(['good']);
    }, SOON);
  });

  it('delivers bodies of any length, as they were given', async () => {
    const { sender } = await sending();
    const long = Array.from({ length: 3 }, (_, index) => `${index}${'é'.repeat(5_000_000)}`);
    await Promise.all(long.map((body) => sender.end(undefined, body)));
    sender.chain.deliver();
    await emptied(sender);
    await sender.end('A', long[0]);
    await emptied(sender);
    expect(sender.delivered.sort()).toEqual([...long, long[0]].sort());
  });

  it('does not count as an attempt what was not sent', async () => {
    const { sender } = await sending();
    sender.deliver = () => NOT_SENT;
    await sender.end('A');
    sender.chain.deliver();
    await vi.waitFor(() => expect(sender.attempts.length).toBeGreaterThan(3), SOON);
    expect(await onlyMessage(sender)).toMatchObject({ attempts: 0n, error: null, state: 'waiting' });
    sender.deliver = () => DELIVERED;
    await emptied(sender);
  });

  it('gives a message up after its maximum age, says so, and goes on with later ones', async () => {
    const { fixture, sender } = await sending({ maxAge: 3600 });
    // No database stores it as it is.
    const error = 'got \0 and \ud800';
    sender.deliver = ({ body }) => (body === 'A1' ? { outcome: 'refused', error } : DELIVERED);
    await sender.end('A', 'A1');
    await sender.end('A', 'A2');
    await sender.end('B');
    sender.chain.deliver();
    await vi.waitFor(() => expect(sender.delivered).toEqual(['B']), SOON);
    fixture.now = '2026-11-21T10:00:31Z';
    await vi.waitFor(() => expect(sender.delivered).toEqual(['B', 'A2']), SOON);
    expect(await onlyMessage(sender)).toMatchObject({
      state: 'dead',
      lease_id: 'A',
      project_id: fixture.project,
      error: expect.stringMatching(/^got .* and /),
    });
    expect(await countOutbox(fixture.ledger, NO_WAIT)).toMatchObject({ dead: 1 });
    expect(sender.logger.lines.filter(({ level }) => level === 'error')).toMatchObject([
      { fields: { filter: sender.name, lease_id: 'A', error: expect.stringMatching(/^got .* and /) } },
    ]);
  });

  it('gives up everything that is too old while a service stays away, and nothing else', async () => {
    const { fixture, sender } = await sending({ maxAge: 3600 });
    sender.deliver = () => AWAY;
    await sender.end('A');
    await sender.end('B');
    fixture.now = '2026-11-21T10:00:31Z';
    await sender.end('C');
    sender.chain.deliver();
    const states = async () => (await sender.list()).map(({ state }) => state);
    await vi.waitFor(async () => expect(await states()).toEqual(['dead', 'dead', 'waiting']), SOON);
  });

  it('tries a dead message again when an operator says so, and sends a discarded one never', async () => {
    const { fixture, sender } = await sending({ maxAge: 60 });
    sender.deliver = refusing('A', 'B');
    await sender.end('A');
    await sender.end('B');
    sender.chain.deliver();
    fixture.now = '2026-11-21T10:00:31Z';
    await vi.waitFor(
      async () => expect((await sender.list()).map(({ state }) => state)).toEqual(['dead', 'dead']),
      SOON,
    );
    const [a = 0n, b = 0n] = (await sender.list()).map(({ id }) => id);
    expect(await retryMessages(fixture.ledger, [a, 0n], OPERATOR, NO_WAIT)).toEqual({ unknown: [0n] });
    expect((await sender.list()).map(({ state }) => state)).toEqual(['dead', 'dead']);
    sender.deliver = () => DELIVERED;
    expect(await discardMessages(fixture.ledger, [b], OPERATOR, NO_WAIT)).toEqual({ changed: 1 });
    expect(await retryMessages(fixture.ledger, [b], OPERATOR, NO_WAIT)).toEqual({ unknown: [b] });
    expect(await retryMessages(fixture.ledger, [a], OPERATOR, NO_WAIT)).toEqual({ changed: 1 });
    await emptied(sender);
    expect(sender.delivered).toEqual(['A']);
    expect(await outboxMessage(fixture.ledger, b, NO_WAIT)).toMatchObject({
      state: 'discarded',
      body: 'B',
      ...OPERATOR,
    });
    expect(await outboxMessage(fixture.ledger, a, NO_WAIT)).toBeUndefined();
  });

  it('is kept by a retry while its last attempt is under way, and goes on with the rest that the attempt left', async () => {
    const { fixture, sender } = await sending({ maxAge: 60 });
    await sender.end('A');
    const [message] = await sender.list();
    fixture.now = new Date(Date.parse(fixture.now) + 120_000).toISOString();
    sender.deliver = async (_, attempt) => {
      if (attempt > 1) {
        return DELIVERED;
      }
      await retryMessages(fixture.ledger, [message?.id ?? 0n], OPERATOR, NO_WAIT);
      return { ...REFUSED, rest: 'A, the rest' };
    };
    sender.chain.deliver();
    await emptied(sender, fixture);
    expect(sender.delivered).toEqual(['A, the rest']);
  });

  it('shares the work between processes: each message once, in order for each lease', async () => {
    const fixture = await fixtures();
    const first = await newSender(fixture);
    const second = await newSender(fixture, { name: first.name });
    const all: string[] = [];
    for (const one of [first, second]) {
      one.deliver = async ({ body }) => {
        all.push(body);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 4));
        return DELIVERED;
      };
    }
    const leases = Array.from({ length: 60 }, (_, index) => `L${index}`);
    for (const turn of [1, 2, 3]) {
      await Promise.all(leases.map((id, index) => (index % 2 ? first : second).end(id, `${id} ${turn}`)));
    }
    first.chain.deliver();
    second.chain.deliver();
    await emptied(first);
    expect(all).toHaveLength(180);
    for (const id of leases) {
      expect(all.filter((body) => body.startsWith(`${id} `))).toEqual(
        [1, 2, 3].map((turn) => `${id} ${turn}`),
      );
    }
    expect(first.delivered.length * second.delivered.length).toBeGreaterThan(0);
  });

  it('takes over what a process had claimed that has gone', async () => {
    const { fixture, sender } = await sending();
    await sender.end('A', 'A1');
    await claimedElsewhere(fixture, sender, fixture.ledger.now() + 15_000_000n);
    await sender.end('A', 'A2');
    sender.chain.deliver();
    await sender.end('B');
    await vi.waitFor(() => expect(sender.delivered).toEqual(['B']), SOON);
    fixture.now = '2026-11-21T09:00:46Z';
    await emptied(sender);
    expect(sender.delivered).toEqual(['B', 'A1', 'A2']);
  });

  it('does not wait for times that a clock has set that was ahead', async () => {
    const fixture = await fixtures();
    fixture.now = '2036-11-21T09:00:30Z';
    const sender = await newSender(fixture);
    sender.deliver = () => REFUSED;
    await sender.end('A');
    await sender.end('B');
    sender.chain.deliver();
    await vi.waitFor(async () => expect((await sender.list())[1]?.attempts).toBeGreaterThan(0n), SOON);
    await sender.chain.stop();
    const after = await newSender(fixture, { name: sender.name });
    await claimedElsewhere(fixture, sender, fixture.ledger.now() + 15_000_000n);
    fixture.now = '2026-11-21T09:00:30Z';
    after.chain.deliver();
    await emptied(after);
  });

  it('refuses a message that cannot be stored, and keeps hostile ids of any length', async () => {
    const { sender } = await sending();
    await expect(sender.end('A', ' '.repeat(64 * 1024 * 1024 + 1))).rejects.toThrow(
      'expected a message of at most',
    );
    for (const id of ['\0', '\ud800', 'x'.repeat(100_000), "'; drop table outbox; --"]) {
      await sender.end(id, JSON.stringify(id));
    }
    await expect(sender.end('A', 'NUL: \0')).rejects.toThrow('expected a text without NUL');
    expect(await sender.list()).toHaveLength(4);
    sender.chain.deliver();
    await emptied(sender);
    expect(sender.delivered).toHaveLength(4);
  });
}

/** Messages that are written before it is known whether they will be needed. */
export function preparing(fixtures: LedgerFixtures): void {
  const newCommit = async () => {
    const { fixture, sender } = await sendingOn(fixtures);
    const call = {};
    sender.chain.beginCommit(call);
    sender.chain.deliver();
    return { fixture, sender, call };
  };

  it.each<[string, (given: Awaited<ReturnType<typeof newCommit>>) => unknown, string[]]>([
    [
      'no message about a lease that was granted',
      ({ sender, call }) => sender.chain.confirm(call, NO_WAIT),
      [],
    ],
    ['none if there is nothing to undo', ({ sender, call }) => sender.chain.forget(call), []],
    [
      'one message about a lease that was refused',
      async ({ fixture, sender, call }) => {
        await sender.box.add({ context: fixture.context(), lease: { id: 'A' }, body: 'A' }, { undoes: call });
        sender.chain.forget(call);
      },
      ['A'],
    ],
  ])('sends %s', async (_, decide, delivered) => {
    const commit = await newCommit();
    await commit.sender.prepare(commit.call, 'A');
    expect(await commit.sender.list()).toHaveLength(1);
    await decide(commit);
    await emptied(commit.sender);
    expect(commit.sender.delivered).toEqual(delivered);
  });

  it('sends it if the process has gone, and does not grant the lease afterwards', async () => {
    const { fixture, sender } = await sendingOn(fixtures);
    const call = {};
    sender.chain.beginCommit(call);
    await sender.prepare(call, 'A');
    const other = await newSender(fixture, { name: sender.name });
    other.chain.deliver();
    fixture.now = '2026-11-21T09:01:00Z';
    await vi.waitFor(() => expect(other.delivered).toEqual(['A']), SOON);
    await expect(sender.chain.confirm(call, NO_WAIT)).rejects.toThrow('has been sent already');
  });

  it('sends it a second time rather than never, if it cannot tell', async () => {
    const { fixture, sender, call } = await newCommit();
    await sender.prepare(call, 'A', 'prepared');
    await sender.chain.confirm(call, NO_WAIT);
    await sender.box.add({ context: fixture.context(), lease: { id: 'A' }, body: 'A' }, { undoes: call });
    await emptied(sender);
    expect(sender.delivered).toEqual(['A']);
  });

  it('holds later messages about the lease back until it is decided', async () => {
    const { sender, call } = await newCommit();
    await sender.prepare(call, 'A', 'prepared');
    await sender.end('A', 'ended');
    await sender.end('B');
    await vi.waitFor(() => expect(sender.delivered).toEqual(['B']), SOON);
    await sender.chain.confirm(call, NO_WAIT);
    await emptied(sender);
    expect(sender.delivered).toEqual(['B', 'ended']);
  });

  it('waits for an earlier message that would end the new lease, and tries it at once', async () => {
    const { sender, call } = await newCommit();
    sender.deliver = (_, attempt) => (attempt === 1 ? REFUSED : DELIVERED);
    await sender.end('A', 'ended');
    await vi.waitFor(async () => expect((await onlyMessage(sender)).attempts).toBe(1n), SOON);
    await sender.prepare(call, 'A', 'prepared');
    expect(sender.delivered).toEqual(['ended']);
    await sender.chain.confirm(call, NO_WAIT);
    await emptied(sender);
  });

  it.each(['waiting', 'dead'])('refuses while an earlier message about the lease is %s', async (state) => {
    const { fixture, sender, call } = await newCommit();
    sender.deliver = () => REFUSED;
    await sender.end('A', 'ended');
    if (state === 'dead') {
      fixture.now = '2026-11-21T11:00:00Z';
      await vi.waitFor(async () => expect(await onlyMessage(sender)).toMatchObject({ state }), SOON);
    }
    const over = new AbortController();
    over.abort(new Error('nobody waits'));
    const withLockTimeouts = { ...call, signal: over.signal };
    await expect(sender.prepare(withLockTimeouts, 'A', 'prepared')).rejects.toThrow('nobody waits');
    await sender.prepare({}, 'B');
    expect((await sender.list()).map(({ lease_id }) => lease_id)).toEqual(['A']);
  });

  it('grants one of two requests for a lease at once its message', async () => {
    const { sender } = await sendingOn(fixtures);
    const over = new AbortController();
    over.abort(new Error('nobody waits'));
    const calls = Array.from({ length: 6 }, () => ({ signal: over.signal }));
    for (const call of calls) {
      sender.chain.beginCommit(call);
    }
    const prepared = await Promise.allSettled(calls.map((call) => sender.prepare(call, 'A')));
    expect(prepared.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await sender.list()).toHaveLength(1);
    for (const call of calls) {
      sender.chain.forget(call);
    }
    await emptied(sender);
  });
}
