/** What a request sends to PostgreSQL: how many transactions, and how often it waits for an answer. */
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UsageEnforcement } from '../../src/index.ts';
import { giveBudget, ledgerAt, newLedgers, upgraded } from '../support/ledgers.ts';

const newLedger = newLedgers();

const REQUEST = {
  context: { user_id: 'alice', project_id: 'climate' },
  lease: {
    name: 'run',
    start_date: '2030-12-01 09:00',
    end_date: '2030-12-02 09:00',
    reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
  },
};

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

async function newChain() {
  const connection = await upgraded(await newLedger('postgresql'));
  const ledger = await ledgerAt(connection);
  await giveBudget(ledger, { projectId: 'climate', amount: '1000', from: '2020-01-01', until: '2200-01-01' });
  await ledger.close();
  const values = {
    ledger: { connection },
    enforcement: { enabled_filters: ['MaxLeasesFilter', 'UsageBudgetFilter'], max_leases_per_project: 9 },
  };
  const enforcement = await UsageEnforcement.load({ environment: {}, configFiles: [], values });
  onTestFinished(() => enforcement.close());
  const create = async (options = {}) => {
    expect(await enforcement.checkCreate(REQUEST, options)).toMatchObject({ allowed: true });
  };
  await create();
  return { create };
}

describe('a lease in PostgreSQL', () => {
  it.each([
    ['', {}, []],
    [' with a key', { idempotencyKey: 'k' }, ['select']],
  ])('is checked and recorded%s in one transaction of three round trips', async (_, options, more) => {
    const { create } = await newChain();
    const trips = listen();
    await create(options);
    const reads = ['select', 'select', ...more, 'select'];
    expect(trips).toEqual([
      ['BEGIN', 'insert into "projects"', ...reads],
      ['insert into "leases"'],
      ['insert into "accounts"', 'insert into "entries"', 'COMMIT'],
    ]);
  });

  it('is checked by all filters in one transaction when it is a dry run', async () => {
    const { create } = await newChain();
    const trips = listen();
    await create({ dryRun: true });
    expect(trips).toEqual([['BEGIN', 'select', 'select'], ['select'], ['COMMIT']]);
  });
});
