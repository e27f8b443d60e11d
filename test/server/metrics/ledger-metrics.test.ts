import { describe, expect, it } from 'vitest';
import { recordLease } from '../../ledger/recorded-leases.ts';
import { breakLedger, giveBudget, ledgerAt, mendLedger, newLedger } from '../../support/ledgers.ts';
import { capturedText, createLasting } from '../../support/requests.ts';
import { runServiceOf, runServiceOnFile } from '../../support/running-service.ts';
import { readSamples, samplesOf } from '../../support/samples.ts';

const END = capturedText('on-end-active.json');
const UNAVAILABLE =
  'The ledger of leases cannot be read or written at the moment. Please try again later, or ask the operator.';

async function withLedger(connection: string, more = '') {
  const conf = (filters: string) =>
    `[enforcement]\nenabled_filters = ${filters}\nmax_leases_per_project = 1\n[service]\nport = 0\n[ledger]\nconnection = ${connection}\n${more}`;
  const { change, ...running } = await runServiceOnFile(conf('MaxLeasesFilter'));
  return { ...running, reloadWith: (filters: string) => change(conf(filters)) };
}

describe('the metrics of a ledger', () => {
  it('are not there where no filter needs one', async () => {
    const { url, post } = await runServiceOf({});
    await post('/check-create', createLasting(60));
    const samples = await readSamples(url);
    expect(Object.keys(samples).filter((name) => name.startsWith('ledger_'))).toEqual([]);
  });

  it('count transactions by what was done and what became of it, and say how long each took', async () => {
    const { url, post } = await withLedger(await newLedger());
    expect(await post('/check-create', createLasting(60))).toMatchObject({ status: 204 });
    expect(await post('/check-create', createLasting(61))).toMatchObject({ status: 403 });
    expect(await post('/commit-create', createLasting(61))).toMatchObject({ status: 403 });
    expect(await post('/on-end', END)).toMatchObject({ status: 204 });
    const samples = await readSamples(url);
    expect(samplesOf(samples, 'ledger_transactions_total')).toEqual({
      '{operation="commit",outcome="done"}': 1,
      '{operation="commit",outcome="refused"}': 2,
      '{operation="end",outcome="done"}': 1,
    });
    expect(samplesOf(samples, 'ledger_transaction_duration_seconds_count')).toEqual({
      '{operation="commit"}': 3,
      '{operation="end"}': 1,
    });
  });

  it('say whether it can be read, from the first transaction on, and again when it can', async () => {
    const connection = await newLedger();
    const { url, post } = await withLedger(connection);
    const available = async () => (await readSamples(url)).ledger_available;
    expect(await available()).toBeUndefined();
    await post('/check-create', createLasting(60));
    expect(await available()).toBe(1);

    breakLedger(connection);
    expect(await post('/check-create', createLasting(61))).toMatchObject({
      status: 403,
      json: { message: UNAVAILABLE },
    });
    expect(await available()).toBe(0);
    expect(samplesOf(await readSamples(url), 'ledger_transactions_total')).toMatchObject({
      '{operation="commit",outcome="failed"}': 1,
    });

    mendLedger(connection);
    await post('/check-create', createLasting(61));
    expect(await available()).toBe(1);
  });

  it('count the budgets in force by how much of them is taken, at most once a minute', async () => {
    const connection = await newLedger();
    const project = { projectId: 'climate', amount: '48' };
    const user = { projectId: 'climate', userId: 'alice', amount: '25' };
    const ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
    for (const budget of [project, user]) {
      await giveBudget(ledger, { ...budget, from: '2020-01-01', until: '2200-01-01' });
    }
    await giveBudget(ledger, { projectId: 'ocean', amount: '0', from: '2020-01-01', until: '2200-01-01' });
    await giveBudget(ledger, { projectId: 'past', amount: '0', from: '2020-01-01', until: '2021-01-01' });
    await recordLease(ledger, { name: 'run', start: '2096-12-01', end: '2096-12-02' });
    const { url } = await withLedger(connection);
    const expected = {
      '{taken="under_50_percent"}': 1,
      '{taken="50_to_75_percent"}': 1,
      '{taken="75_to_90_percent"}': 0,
      '{taken="90_to_100_percent"}': 0,
      '{taken="100_percent"}': 1,
    };
    expect(samplesOf(await readSamples(url), 'ledger_budgets')).toEqual(expected);
    await giveBudget(ledger, { projectId: 'new', amount: '1', from: '2020-01-01', until: '2200-01-01' });
    await ledger.close();
    expect(samplesOf(await readSamples(url), 'ledger_budgets')).toEqual(expected);
  });

  it('go with the ledger, when a reload takes the filters away that need it', async () => {
    const connection = await newLedger();
    const { url, post, reloadWith } = await withLedger(connection);
    breakLedger(connection);
    await post('/check-create', createLasting(60));
    expect((await readSamples(url)).ledger_available).toBe(0);
    expect(await reloadWith('MaxLeaseDurationFilter')).toBe(true);
    expect((await readSamples(url)).ledger_available).toBeUndefined();
  });
});
