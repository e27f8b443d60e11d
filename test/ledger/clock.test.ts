/** A clock that is set back, or was ahead: what is over, what is given back, and what is not. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { SYSTEM_CLOCK } from '../../src/filter/services.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { ChainLedger } from '../../src/ledger/service.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import { databaseTime } from '../../src/ledger/transactions/transaction.ts';
import { DIALECTS, NO_WAIT } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { leaseOf, newFixtures } from './fixture.ts';
import { DELIVERED, emptied, newSender, REFUSED, SOON } from './outboxes.ts';

const newGround = newFixtures();

describe.each(DIALECTS)('a clock that jumps, on %s', (dialect) => {
  it('back keeps no message waiting for as long', async () => {
    const fixture = await newGround(dialect);
    const sender = await newSender(fixture);
    sender.deliver = (_, attempt) => (attempt === 1 ? REFUSED : DELIVERED);
    await sender.end('lease');
    sender.chain.deliver();
    await vi.waitFor(async () => expect((await sender.list())[0]?.attempts).toBe(1n), SOON);
    fixture.now = '2026-11-21T08:00:30Z';
    await emptied(sender);
    expect(sender.delivered).toEqual(['lease']);
  });

  it('forwards and back ends no running lease permanently', async () => {
    const fixture = await newGround(dialect, { most: 2 });
    await fixture.create(leaseOf({ name: 'one' }));
    await fixture.create(leaseOf({ name: 'two' }));
    fixture.now = '2031-01-01T00:00:00Z';
    // Nobody can know better then.
    await fixture.create(leaseOf({ name: 'three', from: '2031-01-02 00:00', until: '2031-01-03 00:00' }));
    expect(await fixture.count()).toBe(1n);
    fixture.now = '2026-11-21T09:00:40Z';
    const { refusal } = await fixture.create(leaseOf({ name: 'four' }));
    expect(refusal?.filter).toBe('MaxLeasesFilter');
    await fixture.end(leaseOf({ name: 'three', from: '2031-01-02 00:00', until: '2031-01-03 00:00' }));
    expect((await fixture.create(leaseOf({ name: 'four' }))).refusal?.filter).toBe('MaxLeasesFilter');
    await fixture.verify();
  });

  it('back refunds nothing that was used', async () => {
    const fixture = await newGround(dialect, { budget: '24' });
    await fixture.create(leaseOf({ id: 'A' }));
    fixture.now = '2026-12-01T18:00:00Z';
    await fixture.update(leaseOf({ id: 'A' }), { name: 'renamed' });
    fixture.now = '2026-12-01T02:00:00Z';
    await fixture.end(leaseOf({ id: 'A' }));
    expect(await fixture.taken()).toEqual(['18']);
    fixture.now = '2026-12-01T18:00:00Z';
    await fixture.verify();
  });

  it('forwards and back makes no later lease cheaper', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    await fixture.create(leaseOf({ id: 'A' }));
    fixture.now = '2031-01-01T00:00:00Z';
    await fixture.create(leaseOf({ name: 'later', from: '2031-01-02 00:00', until: '2031-01-03 00:00' }));
    fixture.now = '2026-12-01T06:00:00Z';
    // Two hosts more for the 18 hours that are left, whatever the last entry says.
    await fixture.update(leaseOf({ id: 'A' }), leaseOf({ hosts: 3 }));
    expect(await fixture.taken()).toEqual([String(24 + 36)]);
    await fixture.verify();
  });

  it('is logged once, counted each time, and forgotten after ledger reconcile', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    await fixture.create(leaseOf({ id: 'A' }));
    const logger = recordingLogger();
    const behind: number[] = [];
    let now = '2026-11-21T08:00:30Z';
    const ledger = new Ledger(fixture.ledger.database, {
      clock: { now: () => new Date(now) },
      timeout: 10,
      logger,
      observer: { transacted() {}, clockBehind: (seconds) => behind.push(seconds) },
    });
    const lock = () =>
      ledger.transact(
        'end',
        function* (transaction) {
          const { now: system, latest } = yield* transaction.lock(fixture.project);
          return [latest - system];
        },
        NO_WAIT,
      );
    expect(await lock()).toEqual([3_600_000_000n]);
    await lock();
    expect(behind).toEqual([3600, 3600]);
    expect(logger.lines.map(({ level, message }) => [level, message])).toEqual([
      ['warn', expect.stringContaining('the clock is behind the last entry')],
    ]);
    await ledger.resume(NO_WAIT);
    expect(await lock()).toEqual([0n]);
    now = '2026-11-21T08:00:20Z';
    expect(await lock()).toEqual([10_000_000n]);
    expect(behind.slice(-2)).toEqual([0, 10]);
  });
});

describe('replicas with different clocks on one PostgreSQL', () => {
  const withClock = async (wrong: string) => {
    const fixture = await newGround('postgresql');
    const { database } = fixture.ledger;
    const time = async () => {
      const query = database.queries.selectNoFrom(databaseTime('postgresql').as('now')).compile();
      const [row] = await database.read(() => rows(query), NO_WAIT);
      return row?.now ?? 0n;
    };
    vi.useFakeTimers({ toFake: ['Date'], now: new Date(wrong) });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const settings = { connection: fixture.connection, commit: 'check', timeout: 10, pool_size: 1 } as const;
    return { fixture, time, settings };
  };

  it.each(['2020-01-01', '2040-01-01'])(
    'go by the clock of the database, whatever theirs says: %s',
    async (wrong) => {
      const { time, settings } = await withClock(wrong);
      const { ledger } = openLedger(settings, { clock: SYSTEM_CLOCK, observer: undefined });
      onTestFinished(() => ledger.close());
      const before = await time();
      const project = `clocks-${wrong}`;
      const { now, latest } = await ledger.transact(
        'end',
        (transaction) => transaction.lock(project),
        NO_WAIT,
      );
      const after = await time();
      expect(latest).toBe(now);
      expect(before <= now && now <= after).toBe(true);
      // What is only looked at has it, too, to within what a message takes.
      const looked = ledger.now();
      expect(before <= looked && looked <= (await time()) + 1_000_000n).toBe(true);
    },
  );

  it.each(['2020-01-01', '2040-01-01'])(
    'try messages again by the clock of the database, whatever theirs says: %s',
    async (wrong) => {
      const { fixture, time, settings } = await withClock(wrong);
      const services = { clock: SYSTEM_CLOCK, logger: recordingLogger(), observer: undefined };
      const chain = new ChainLedger(settings, services);
      onTestFinished(() => chain.close());
      const before = await time();
      const sender = await newSender(fixture, { chain });
      sender.deliver = () => REFUSED;
      await sender.end('lease');
      sender.chain.deliver();
      await vi.waitFor(async () => expect((await sender.list())[0]?.attempts).toBeGreaterThan(0), SOON);
      await sender.chain.close();
      const query = fixture.ledger.database.queries
        .selectFrom('outbox')
        .select(['state', 'next_at'])
        .where('sender', '=', sender.name);
      const found = await fixture.ledger.read('outbox', () => rows(query.compile()), NO_WAIT);
      expect(found).toEqual([{ state: 'waiting', next_at: expect.any(BigInt) }]);
      const [{ next_at: next } = { next_at: 0n }] = found;
      expect(before <= next && next <= (await time()) + 1_000_000n).toBe(true);
    },
  );
});
