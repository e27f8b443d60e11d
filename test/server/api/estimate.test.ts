/** POST /v1/projects/{project_id}/estimate, as members and programs call it. */
import { describe, expect, it } from 'vitest';
import { giveBudgets, newLedger } from '../../support/ledgers.ts';
import { postJson } from '../../support/post-json.ts';
import { runServiceOf } from '../../support/running-service.ts';

const WANTED = {
  name: 'training',
  start_date: '2055-01-11 09:00',
  end_date: '2055-01-15 09:00',
  reservations: [
    { resource_type: 'physical:host', min: 1, max: 2, hypervisor_properties: '', resource_properties: '' },
  ],
  user_id: 'alice',
};

const MISTAKES: readonly (readonly [field: string, object])[] = [
  ['start_date', { start_date: '2020-01-01 09:00' }],
  ['start_date', { start_date: '2055-01-11T09:00:00Z' }],
  ['end_date', { end_date: '2055-01-11 09:00' }],
  ['end_date', { end_date: 'now' }],
  ['reservations', { reservations: Array.from({ length: 10_000 }, () => WANTED.reservations[0]) }],
  ['reservations.0.resource_type', { reservations: [{}] }],
  ['reservations.0.max', { reservations: [{ resource_type: 'physical:host', min: 3, max: 2 }] }],
  ['reservations.0.min', { reservations: [{ resource_type: 'physical:host', min: 0, max: 2 }] }],
  ['reservations.0.max', { reservations: [{ resource_type: 'physical:host', min: 1, max: 1e300 }] }],
  ['reservations.0.amount', { reservations: [{ resource_type: 'virtual:floatingip', amount: 'many' }] }],
  ['user_id', { user_id: '' }],
];

async function service() {
  const connection = await newLedger();
  await giveBudgets(connection, [
    { projectId: 'climate', amount: '100', from: '2026-01-01', until: '2060-01-01' },
  ]);
  const { url } = await runServiceOf({
    ledger: { connection },
    enforcement: { enabled_filters: ['UsageBudgetFilter', 'MaxLeasesFilter'] },
  });
  const ask = async (body: unknown, project = 'climate') => {
    const answer = await postJson(`${url}/v1/projects/${project}/estimate`, body);
    return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
  };
  return { ask };
}

describe('an estimate', () => {
  it('answers with verdicts, charges and suggestions, in the form of the API', async () => {
    const { ask } = await service();
    const { status, json } = await ask(WANTED);
    expect(status).toBe(200);
    expect(json).toMatchObject({
      project: { id: 'climate', name: null, domain: null },
      user: { id: 'alice', name: null, domain: null },
      allowed: false,
      outcome: 'rejected',
      filter: 'UsageBudgetFilter',
      message: expect.stringContaining('The lease would cost 192 node-hours'),
      filters: [{ outcome: 'rejected' }, { outcome: 'allowed' }],
      suggestions: [
        { change: 'shorter', lease: { ...without(WANTED, 'user_id'), end_date: '2055-01-13 11:00' } },
        {
          change: 'smaller',
          lease: {
            ...without(WANTED, 'user_id'),
            reservations: [{ ...WANTED.reservations[0], max: 1 }],
          },
        },
      ],
      searched: expect.stringContaining('Found none that is later.'),
    });
    const charged = { amount: '192', precision: 'at-most', limit: '100', left: '-92' };
    expect((json.charges as object[])[0]).toMatchObject(charged);
  });

  it('takes now, and dates with a T as browsers send them', async () => {
    const { ask } = await service();
    const { json } = await ask({ ...WANTED, start_date: 'now', end_date: '2099-01-15T09:00' });
    const [shorter] = json.suggestions as { lease: { start_date: string; end_date: string } }[];
    expect(shorter?.lease.start_date).toBe('now');
    expect(shorter?.lease.end_date).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d$/);
  });

  it('refuses leases that Blazar would refuse without asking, and names the field', async () => {
    const { ask } = await service();
    for (const [field, mistake] of MISTAKES) {
      expect(await ask({ ...WANTED, ...mistake })).toMatchObject({
        status: 400,
        json: { message: expect.stringMatching(/^expected /), field },
      });
    }
  });

  it('refuses what is no lease at all', async () => {
    const { ask } = await service();
    for (const body of ['null', '[]', '7', '"lease"', '{"start_date":NaN}']) {
      expect(await ask(body)).toMatchObject({ status: 400, json: { message: expect.any(String) } });
    }
  });

  it('is not misled by names of JavaScript', async () => {
    const { ask } = await service();
    const hostile = JSON.stringify(WANTED).replace('{', '{"__proto__":{"polluted":1},"constructor":7,');
    const { status, json } = await ask(hostile);
    expect(status).toBe(200);
    expect(json.filter).toBe('UsageBudgetFilter');
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it('answers for leases at the end of time', async () => {
    const { ask } = await service();
    const { status, json } = await ask({
      ...WANTED,
      start_date: '9999-12-30 00:00',
      end_date: '9999-12-31 23:59',
    });
    expect([status, json.allowed, json.suggestions]).toEqual([200, false, []]);
  });
});

function without<Value extends object>(value: Value, name: keyof Value): Partial<Value> {
  return Object.fromEntries(Object.entries(value).filter(([key]) => key !== name)) as Partial<Value>;
}
