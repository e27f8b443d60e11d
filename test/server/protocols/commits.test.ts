import { describe, expect, it } from 'vitest';
import { openSqlite } from '../../../src/ledger/storage/sqlite-driver.ts';
import { decisionsInFile } from '../../support/decision-logs.ts';
import { temporaryFile } from '../../support/files.ts';
import { newLedger } from '../../support/ledgers.ts';
import { capturedText, createLasting, inManyYears } from '../../support/requests.ts';
import { runServiceOf } from '../../support/running-service.ts';
import { readSamples, samplesOf } from '../../support/samples.ts';

const FITS = inManyYears(capturedText('check-create-physical-host.json'));
const EXTEND = inManyYears(capturedText('check-update-extend.json'));
const REQUEST_ID = 'req-7b1c5f2e-94a1-4a5e-9d5b-2f2c3f1d8e60';

async function withLedger(commit: 'check' | 'request', enforcement: object = {}) {
  const connection = await newLedger();
  const log = temporaryFile('decisions.jsonl', '');
  const running = await runServiceOf({
    service: { decision_log: log },
    ledger: { connection, commit },
    enforcement: { enabled_filters: ['MaxLeasesFilter'], max_leases_per_project: 1, ...enforcement },
  });
  const query = (sql: string) => {
    const database = openSqlite(connection.slice('sqlite://'.length), { readonly: true });
    const rows = database.prepare(sql).all([]);
    database.close();
    return rows as Record<string, unknown>[];
  };
  return {
    ...running,
    log,
    leases: () => query('SELECT lease_id, name, state FROM leases ORDER BY id'),
    entries: () => query('SELECT operation, who, request_id FROM entries GROUP BY 1, 2, 3 ORDER BY min(id)'),
  };
}

describe.each(['', '/v1'])('the commits of the forks, at %s/', (prefix) => {
  it('record what a check of `commit = request` only judges', async () => {
    const { post, leases } = await withLedger('request');
    expect(await post(`${prefix}/check-create`, FITS)).toMatchObject({ status: 204 });
    expect(leases()).toEqual([]);
    expect(await post(`${prefix}/commit-create`, FITS)).toMatchObject({ status: 204, text: '' });
    expect(leases()).toEqual([{ lease_id: null, name: 'climate-run-7', state: 'open' }]);
    expect(await post(`${prefix}/check-update`, EXTEND)).toMatchObject({ status: 204 });
    expect(leases()).toMatchObject([{ lease_id: null }]);
    expect(await post(`${prefix}/commit-update`, EXTEND)).toMatchObject({ status: 204, text: '' });
    expect(leases()).toMatchObject([{ lease_id: '5b8f6a1e-6d3a-4e0b-8d35-0e9f4a0b2c11' }]);
  });

  it('get 403 and the reason when the limit is now exceeded', async () => {
    const { post, leases } = await withLedger('request');
    const { context, lease } = createLasting(60);
    const [first, second] = ['first', 'second'].map((name) => ({ context, lease: { ...lease, name } }));
    expect(await post(`${prefix}/check-create`, first)).toMatchObject({ status: 204 });
    expect(await post(`${prefix}/check-create`, second)).toMatchObject({ status: 204 });
    expect(await post(`${prefix}/commit-create`, first)).toMatchObject({ status: 204 });
    expect(await post(`${prefix}/commit-create`, second)).toMatchObject({
      status: 403,
      json: { message: 'Project climate has 1 pending or active leases; the most allowed is 1.' },
    });
    expect(leases()).toEqual([{ lease_id: null, name: 'first', state: 'open' }]);
  });

  it('have the id of a lease that a check recorded, and record it once', async () => {
    const { post, leases } = await withLedger('check');
    expect(await post(`${prefix}/check-create`, FITS)).toMatchObject({ status: 204 });
    const request = JSON.parse(FITS);
    const named = { ...request, lease: { ...request.lease, id: 'lease-1' } };
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      expect(await post(`${prefix}/commit-create`, named)).toMatchObject({ status: 204 });
      expect(leases()).toEqual([{ lease_id: 'lease-1', name: 'climate-run-7', state: 'open' }]);
    }
  });
});

describe('the commits of the forks', () => {
  it('are operations of their own in the metrics and in the decision log, and creates and updates in the ledger', async () => {
    const { url, post, log, service, entries } = await withLedger('request');
    const headers = { 'X-Openstack-Request-Id': REQUEST_ID };
    await post('/commit-create', FITS, headers);
    await post('/v1/commit-create', createLasting(60), headers);
    await post('/v1/commit-update', EXTEND, headers);
    const samples = await readSamples(url);
    expect(samplesOf(samples, 'decisions_total')).toEqual({
      '{operation="commit-create",filter="",outcome="allowed"}': 2,
      '{operation="commit-update",filter="",outcome="allowed"}': 1,
    });
    expect(samplesOf(samples, 'http_requests_total')).toEqual({
      '{path="/commit-create",status="204"}': 1,
      '{path="/v1/commit-create",status="204"}': 1,
      '{path="/v1/commit-update",status="204"}': 1,
    });
    expect(entries()).toEqual([
      { operation: 'create', who: 'c631173edec04bb7a0c3f7711153c06c', request_id: REQUEST_ID },
      { operation: 'create', who: 'alice', request_id: REQUEST_ID },
    ]);
    await service.close();
    const logged = decisionsInFile(log);
    expect(logged).toMatchObject([
      { operation: 'commit-create', outcome: 'allowed', filters: [{ filter: 'MaxLeasesFilter' }] },
      { operation: 'commit-create', outcome: 'allowed', project_id: 'climate' },
      { operation: 'commit-update', outcome: 'allowed', lease_name: 'climate-run-7' },
    ]);
  });

  it('are allowed and record nothing without a filter that records, and for exempt projects', async () => {
    const none = await withLedger('check', { enabled_filters: ['MaxLeaseDurationFilter'] });
    expect(await none.post('/commit-create', FITS)).toMatchObject({ status: 204 });
    expect(await none.post('/commit-update', EXTEND)).toMatchObject({ status: 204 });
    expect(none.leases()).toEqual([]);
    const exempt = await withLedger('check', { exempt_projects: ['climate'], max_leases_per_project: 0 });
    expect(await exempt.post('/commit-create', createLasting(60))).toMatchObject({ status: 204 });
    expect(exempt.leases()).toEqual([]);
  });
});

describe('creates that look alike', () => {
  const KEYED = (key: string) => ({ 'Idempotency-Key': key });

  it('are different leases: of four, one is granted where a project may have one', async () => {
    const { post, leases } = await withLedger('check', { max_leases_per_project: 1 });
    const { context, lease } = createLasting(60);
    const answers = await Promise.all([1, 2, 3, 4].map(() => post('/check-create', { context, lease })));
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 403, 403, 403]);
    expect(leases()).toHaveLength(1);
  });

  it('are one lease with one Idempotency-Key, with quotes or without', async () => {
    const { post, leases } = await withLedger('check', { max_leases_per_project: 1 });
    for (const key of ['8e03978e-40d5', '"8e03978e-40d5"', '8e03978e-40d5']) {
      expect((await post('/v1/check-create', FITS, KEYED(key))).status).toBe(204);
    }
    expect((await post('/check-create', FITS, KEYED('other'))).status).toBe(403);
    expect((await post('/check-create', FITS)).status).toBe(403);
    expect(leases()).toHaveLength(1);
  });
});
