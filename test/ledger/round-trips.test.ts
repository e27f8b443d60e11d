/** What a request sends to PostgreSQL: how many transactions, and how often it waits for an answer. */
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UsageEnforcement } from '../../src/index.ts';
import { valuesOnly } from '../support/files.ts';
import { giveBudgets, newLedgers, upgraded } from '../support/ledgers.ts';
import { runSql } from '../support/postgres-activity.ts';
import { createHost } from '../support/requests.ts';

const newLedger = newLedgers();

const REQUEST = createHost({ start_date: '2030-12-01 09:00', end_date: '2030-12-02 09:00' });

/** Everything that is sent from now on, a list for each round trip. */
function listen(): string[][] {
  const trips: string[][] = [];
  let isAnswered = true;
  const client = pg.Client.prototype as unknown as { query: (...asked: unknown[]) => unknown };
  const { query } = client;
  client.query = function (this: pg.Client, ...asked) {
    const [{ text }, callback] = asked as [{ text: string }, (...answer: unknown[]) => void];
    if (isAnswered) {
      trips.push([]);
    }
    isAnswered = false;
    trips.at(-1)?.push(text.split(' ', text.startsWith('insert') ? 3 : 1).join(' '));
    const answered = (...answer: unknown[]) => {
      isAnswered = true;
      callback(...answer);
    };
    return query.call(this, asked[0], answered);
  };
  onTestFinished(() => {
    client.query = query;
  });
  return trips;
}

/** `prepare`: what is done to the ledger before it is opened; tells how it is reached. */
async function newChain(prepare = async (url: string) => url) {
  const made = await upgraded(await newLedger('postgresql'));
  await giveBudgets(made, [
    { projectId: 'climate', amount: '1000', from: '2020-01-01', until: '2200-01-01' },
  ]);
  const connection = await prepare(made);
  const values = {
    ledger: { connection },
    enforcement: { enabled_filters: ['MaxLeasesFilter', 'UsageBudgetFilter'], max_leases_per_project: 9 },
  };
  const enforcement = await UsageEnforcement.load(valuesOnly(values));
  onTestFinished(() => enforcement.close());
  const create = async (options = {}) => {
    expect(await enforcement.checkCreate(REQUEST, options)).toMatchObject({ allowed: true });
  };
  await create();
  return { create };
}

/** Somebody who may do with the tables what the documentation says, and has not made them. */
async function asGuest(connection: string): Promise<string> {
  const guest = new URL(connection);
  guest.username = `guest_${crypto.randomUUID().replaceAll('-', '')}`;
  const sql = (statement: string) => runSql(connection, statement);
  await sql(`CREATE ROLE ${guest.username} LOGIN PASSWORD '${guest.password}'`);
  await sql(`GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO ${guest.username}`);
  onTestFinished(async () => {
    await sql(`DROP OWNED BY ${guest.username}`);
    await sql(`DROP ROLE ${guest.username}`);
  });
  return guest.href;
}

describe('a lease in PostgreSQL', () => {
  it('is recorded by a role that may not use the sequence of ids, in one round trip more', async () => {
    const { create } = await newChain(asGuest);
    const trips = listen();
    await create();
    expect(trips.slice(1)).toEqual([
      ['insert into "leases"'],
      ['insert into "accounts"', 'insert into "entries"', 'COMMIT'],
    ]);
  });

  it.each([
    ['', {}, []],
    [' with a key', { idempotencyKey: 'k' }, ['select']],
  ])('is checked and recorded%s in one transaction of two round trips', async (_, options, more) => {
    const { create } = await newChain();
    const trips = listen();
    await create(options);
    const reads = ['select', 'select', ...more, 'select', 'select'];
    expect(trips).toEqual([
      ['BEGIN', 'insert into "projects"', ...reads],
      ['insert into "leases"', 'insert into "accounts"', 'insert into "entries"', 'COMMIT'],
    ]);
  });

  it('ends all leases whose end has passed, in one statement', async () => {
    let connection = '';
    const { create } = await newChain(async (url) => {
      connection = url;
      return url;
    });
    await create();
    await runSql(connection, 'UPDATE leases SET ends_at = starts_at - 100000000000000000');
    const trips = listen();
    await create();
    const writes = ['insert into "leases"', 'insert into "accounts"', 'insert into "entries"'];
    expect(trips.slice(1)).toEqual([['update', ...writes, 'COMMIT']]);
  });

  it('is checked by all filters in one transaction when it is a dry run', async () => {
    const { create } = await newChain();
    const trips = listen();
    await create({ dryRun: true });
    expect(trips).toEqual([['BEGIN', 'select', 'select'], ['select'], ['COMMIT']]);
  });
});
