/** POST /v1/projects/{project_id}/leases/{lease_id}/estimate, as members and programs call it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tokenCaller } from '../../../src/server/users/caller.ts';
import { giveBudgets, newLedgers } from '../../support/ledgers.ts';
import { postJson } from '../../support/post-json.ts';
import { member, servedGeneration, usersByToken } from '../served-generation.ts';

const newLedger = newLedgers();
const PEOPLE = {
  operator: tokenCaller('operator', 'operator token'),
  meg: member('meg', { climate: false }),
  pat: member('pat', { physics: false }),
};
const DATES = { start_date: '2026-12-01T09:00:00', end_date: '2026-12-01T19:00:00' };
const hosts = (min: number, max: number) => ({ id: 'h', resource_type: 'physical:host', min, max });
const addresses = { id: 'a', resource_type: 'virtual:floatingip', amount: 3 };

const now = () => '2026-11-21T09:00:30Z';
let service: Awaited<ReturnType<typeof servedGeneration>>;

beforeAll(async () => {
  const connection = await newLedger('sqlite');
  await giveBudgets(
    connection,
    [
      { amount: '100', until: '2027-01-01' },
      { projectId: 'physics', amount: '100', until: '2027-01-01' },
    ],
    { now },
  );
  service = await servedGeneration({
    connection,
    now,
    values: {
      enforcement: {
        enabled_filters: ['UsageBudgetFilter', 'MaxReservationSizeFilter'],
        max_reservation_size: { 'physical:host': 4 },
      },
    },
    users: usersByToken(PEOPLE),
  });
  await record('climate', 'ours', [hosts(2, 3), addresses]);
  await record('physics', 'theirs', [hosts(1, 1)]);
  await record('climate', 'gone', [hosts(1, 1)]);
  await service.generation.enforcement.onEnd({
    context: { user_id: 'id-of-bob', project_id: 'climate', region_name: 'one' },
    lease: { id: 'gone', ...DATES, reservations: [hosts(1, 1)] },
  });
});
afterAll(() => service.close());

async function record(project_id: string, id: string, reservations: readonly object[]): Promise<void> {
  const lease = { id, name: 'run', ...DATES, reservations };
  const made = await service.generation.enforcement.checkCreate({
    context: { user_id: 'id-of-bob', project_id, region_name: 'one' },
    lease: lease as never,
  });
  expect(made.message).toBeNull();
}

async function ask(body: unknown, { who = 'meg', project = 'climate', lease = 'ours' } = {}) {
  const answer = await postJson(
    `${service.url}/v1/projects/${project}/leases/${encodeURIComponent(lease)}/estimate`,
    body,
    { 'X-Auth-Token': who },
  );
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}

describe('the estimate of a change', () => {
  it('has the verdict, the difference to what is charged, and what is left after it', async () => {
    const { status, json } = await ask({ end_date: '2026-12-02 09:00' });
    expect(status).toBe(200);
    expect(json).toMatchObject({
      project: { id: 'climate' },
      user: { id: 'id-of-bob' },
      allowed: true,
      outcome: 'allowed',
      charges: [{ filter: 'UsageBudgetFilter', amount: '42', taken: '30', left: '28', limit: '100' }],
    });
  });

  it('suggests changes in the form that it takes, which are allowed', async () => {
    const asked = {
      end_date: '2026-12-04 09:00',
      reservations: [{ resource_type: 'physical:host', max: 5 }],
    };
    const { json } = await ask(asked);
    expect(json).toMatchObject({ allowed: false, filter: 'UsageBudgetFilter' });
    const suggestions = json.suggestions as { change: string; lease: object }[];
    expect(suggestions.map(({ change }) => change)).toContain('smaller-shorter');
    for (const { lease } of suggestions) {
      expect((await ask(lease)).json).toMatchObject({ allowed: true });
    }
    expect(json.notes).toContainEqual(expect.stringContaining('Only types and numbers'));
  });

  it('records nothing', async () => {
    const before = (await ask({})).json.charges;
    await ask({ end_date: '2026-12-02 09:00' });
    expect((await ask({})).json.charges).toEqual(before);
    expect(before).toMatchObject([{ amount: '0', taken: '30' }]);
  });

  it.each([
    ['end_date', { end_date: '2026-12-01 08:00' }],
    ['start_date', { start_date: '2026-11-20 09:00' }],
    ['reservations.0.resource_type', { reservations: [{ resource_type: 'network', amount: 1 }] }],
    [
      'reservations.1.resource_type',
      { reservations: [{ resource_type: 'physical:host' }, { resource_type: 'physical:host' }] },
    ],
    ['reservations.0.max', { reservations: [{ resource_type: 'physical:host', min: 9, max: 2 }] }],
    ['reservations.0.amount', { reservations: [{ resource_type: 'physical:host', amount: 2 }] }],
  ])('names the field that Blazar would not take: %s', async (field, change) => {
    expect(await ask(change)).toMatchObject({
      status: 400,
      json: { message: expect.stringMatching(/^expected /), field },
    });
  });

  it('gives no verdict on a lease with more types than the ledger keeps: some of what it reserves is unknown', async () => {
    const types = Array.from({ length: 16 }, (_, index) => ({
      id: `t${index}`,
      resource_type: `type:${index}`,
      amount: 1,
    }));
    const asked = { who: 'pat', project: 'physics' };
    await record('physics', 'sixteen', types);
    expect(await ask({}, { ...asked, lease: 'sixteen' })).toMatchObject({
      status: 200,
      json: { allowed: true },
    });
    await record('physics', 'seventeen', [...types, hosts(1, 1)]);
    expect(await ask({}, { ...asked, lease: 'seventeen' })).toMatchObject({
      status: 409,
      json: { message: expect.stringContaining('too many types') },
    });
  });

  it('takes no other body, and nothing by names of JavaScript', async () => {
    const hostile = '{"__proto__":{"end_date":"2026-12-02 09:00"}}';
    expect(await ask(hostile)).not.toMatchObject({ json: { charges: [{ amount: '42' }] } });
    for (const body of ['null', '[]', '7', '{', '{"lease_id":"theirs"}']) {
      expect((await ask(body)).status).toBe(400);
    }
  });
});

describe('who may ask about a change', () => {
  it('is a member of the project, an operator, and nobody else', async () => {
    expect((await ask({})).status).toBe(200);
    expect((await ask({}, { who: 'operator' })).status).toBe(200);
    expect((await ask({}, { who: 'pat' })).status).toBe(403);
    expect((await ask({}, { who: 'nobody' })).status).toBe(401);
  });

  it('gets the same answer for a lease of another project as for one that does not exist', async () => {
    const nowhere = await ask({}, { lease: 'nowhere' });
    expect(nowhere).toMatchObject({ status: 404, json: { message: 'there is no lease with this id' } });
    const without = ({ json }: Awaited<ReturnType<typeof ask>>) => ({
      ...json,
      instance: null,
      request_id: null,
    });
    for (const lease of ['theirs', "' OR 1=1 --", '%', 'ÖURS', 'ours ']) {
      const answer = await ask({}, { lease });
      expect(answer.status, lease).toBe(404);
      expect(without(answer)).toEqual(without(nowhere));
    }
    expect((await ask({}, { lease: 'theirs', project: 'physics', who: 'operator' })).status).toBe(200);
    expect((await ask({}, { lease: 'theirs', project: 'climate', who: 'operator' })).status).toBe(404);
    expect((await ask({}, { lease: '\0' })).status).toBeGreaterThanOrEqual(400);
    expect((await ask({}, { lease: 'x'.repeat(300) })).status).toBeGreaterThanOrEqual(400);
  });

  it('hears that a lease has ended', async () => {
    expect(await ask({}, { lease: 'gone' })).toMatchObject({
      status: 409,
      json: { message: 'the lease has ended: it cannot be changed' },
    });
  });
});
