import { describe, expect, it } from 'vitest';
import { fixture, leaseOf, leftOf, messageOf, start } from './helpers.ts';

// Two hosts for two days from 1 December: 96 node-hours. The update makes it four days.
const create = fixture('check-create-physical-host');
const extend = fixture('check-update-extend');
const physical = { project_id: create.context.project_id };

describe('check-create', () => {
  it('allows a captured lease with an empty 204 and charges it', async () => {
    const { post } = await start();
    const answer = await post('/check-create', create);
    expect(answer).toMatchObject({ status: 204, text: '' });
    expect(await leftOf(post, physical)).toBe(4);
  });

  it('rejects a lease that the project cannot pay, with its cost and the rest, and charges nothing', async () => {
    const { post } = await start();
    const answer = await post('/check-create', fixture('check-create-gpu-and-floating-ip'));
    expect(answer.status).toBe(403);
    expect(answer.headers.get('content-type')).toMatch('application/json');
    expect(JSON.parse(answer.text)).toEqual({
      message: 'This lease costs 432 node-hours, and the project has 100 of 100 left.',
    });
    expect(await leftOf(post, physical)).toBe(100);
  });

  it('spends the budget to the last millisecond', async () => {
    const { post } = await start({ budgetNodeHours: 3 });
    expect((await post('/check-create', leaseOf(1))).status).toBe(204);
    const over = await post('/check-create', leaseOf(2, { end_date: '2026-12-01T02:00:00.001' }));
    expect(messageOf(over)).toBe('This lease costs 2.01 node-hours, and the project has 2 of 3 left.');
    expect((await post('/check-create', leaseOf(2))).status).toBe(204);
    expect((await post('/check-create', leaseOf(0.1))).status).toBe(403);
  });

  it('never overdraws under concurrent requests', async () => {
    const { post } = await start({ budgetNodeHours: 10 });
    const answers = await Promise.all(Array.from({ length: 60 }, () => post('/check-create', leaseOf(1))));
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(50);
  });

  it('keeps projects apart, whatever their ids are', async () => {
    const { post } = await start();
    const hostile = ['__proto__', 'constructor', 'toString', '', '["p"]'];
    for (const project_id of hostile) {
      expect((await post('/check-create', leaseOf(60, {}, { project_id }))).status).toBe(204);
      expect(await leftOf(post, { project_id })).toBe(40);
    }
    expect(await leftOf(post)).toBe(100);
  });

  it('charges the owner of the lease, not the admin who sends the request', async () => {
    const { post } = await start();
    await post('/check-create', leaseOf(60, { project_id: 'owner' }, { project_id: 'admin' }));
    expect(await leftOf(post, { project_id: 'owner' })).toBe(40);
    expect(await leftOf(post, { project_id: 'admin' })).toBe(100);
  });

  it.each<[string, unknown, number]>([
    [
      'the most that each may get, however few allocations are shown',
      [
        { min: 1, max: 4, allocations: [{}] },
        { amount: '2', allocations: [] },
        { max: 1, amount: 2, allocations: [{}] },
      ],
      20,
    ],
    ['one node where nothing is said', [{ resource_type: 'physical:host', max: null }], 90],
    ['nothing for no reservation', [], 100],
  ])('counts %s', async (_, reservations, left) => {
    const { post } = await start();
    expect((await post('/check-create', leaseOf(10, { reservations }))).status).toBe(204);
    expect(await leftOf(post)).toBe(left);
  });
});

describe('check-update', () => {
  it('charges the difference only', async () => {
    const { post } = await start({ budgetNodeHours: 200 });
    await post('/check-create', create);
    expect((await post('/check-update', extend)).status).toBe(204);
    expect(await leftOf(post, physical)).toBe(8);
  });

  it('rejects an extension that the project cannot pay, and keeps the lease', async () => {
    const { post } = await start();
    await post('/check-create', create);
    const answer = await post('/check-update', extend);
    expect(answer.status).toBe(403);
    expect(messageOf(answer)).toBe('This change costs 96 node-hours, and the project has 4 of 100 left.');
    expect(await leftOf(post, physical)).toBe(4);
  });

  it('charges an update that is repeated once', async () => {
    const { post } = await start({ budgetNodeHours: 200 });
    await post('/check-create', create);
    for (let n = 0; n < 3; n += 1) expect((await post('/check-update', extend)).status).toBe(204);
    expect(await leftOf(post, physical)).toBe(8);
  });

  it('refunds the difference for a shortened lease', async () => {
    const { post } = await start();
    await post('/check-create', create);
    const lease = { ...extend.lease, end_date: '2026-12-02T09:00:00' };
    expect((await post('/check-update', { ...extend, lease })).status).toBe(204);
    expect(await leftOf(post, physical)).toBe(52);
  });

  it('recognizes a lease by its id after its name and start changed', async () => {
    const { post } = await start();
    const { context, lease } = leaseOf(48);
    await post('/check-create', { context, lease });
    const current_lease = { ...lease, id: 'lease' };
    const moved = { name: 'renamed', start_date: '2026-12-02T09:00:00' };
    await post('/check-update', { context, current_lease, lease: moved });
    await post('/check-update', {
      context,
      current_lease: { ...current_lease, ...moved },
      lease: { end_date: '2026-12-02T11:00:00' },
    });
    expect(await leftOf(post)).toBe(98);
  });

  it('charges only the change of an unknown lease, and refunds nothing', async () => {
    const { post } = await start();
    for (let n = 0; n < 2; n += 1) expect((await post('/check-update', extend)).status).toBe(204);
    expect(await leftOf(post, physical)).toBe(4);
    const other = { ...extend.current_lease, id: 'other' };
    const shorter = { end_date: '2026-12-01T10:00:00' };
    expect((await post('/check-update', { ...extend, current_lease: other, lease: shorter })).status).toBe(
      204,
    );
    expect(await leftOf(post, physical)).toBe(4);
  });

  const withIds = [
    { id: 'a', max: 1 },
    { id: 'b', max: 2 },
  ];
  it.each([
    ['keeps reservations that it does not name', withIds, [{ id: 'a', max: 1 }], 70],
    ['keeps all reservations, where it names none', withIds, [], 70],
    ['keeps attributes that it does not name', withIds, [{ id: 'b', min: 2 }], 70],
    ['counts what it changes, and no allocations', withIds, [{ id: 'b', max: 4, allocations: [{}] }], 50],
    ['names all reservations, where they have no ids', [{ max: 1 }, { max: 2 }], [{ max: 9 }], 10],
  ])('%s', async (_, before, reservations, left) => {
    const { post } = await start();
    const { context, lease } = leaseOf(10, { reservations: before });
    await post('/check-create', { context, lease });
    const update = { context, current_lease: { ...lease, id: 'lease' }, lease: { reservations } };
    expect((await post('/check-update', update)).status).toBe(204);
    expect(await leftOf(post)).toBe(left);
  });

  it('refuses a number of nodes beyond exact arithmetic', async () => {
    const { post } = await start();
    const most = { max: Number.MAX_SAFE_INTEGER };
    const { context, lease: current_lease } = leaseOf(10, { reservations: [most, most] });
    const lease = { reservations: [most, most, { max: 1 }] };
    expect((await post('/check-update', { context, current_lease, lease })).status).toBe(403);
  });

  it("understands the example of Blazar's documentation", async () => {
    const { post } = await start({ budgetNodeHours: 200 });
    const dates = {
      start_date: '2020-05-13T00:00:00.012345+02:00',
      end_time: '2020-05-14T23:59:00.012345+02:00',
    };
    const one = { resource_type: 'physical:host', min: 1, max: 2, allocations: [{ id: '1' }] };
    const two = { ...one, min: 2, max: 3, allocations: [{ id: '1' }, { id: '2' }] };
    const context = { user_id: 'u', project_id: 'p', auth_url: 'https://api.example.com:5000/v3' };
    const body = {
      context,
      current_lease: { ...dates, reservations: [one] },
      lease: { ...dates, reservations: [two] },
    };
    expect((await post('/check-create', { context, lease: body.current_lease })).status).toBe(204);
    expect((await post('/check-update', body)).status).toBe(204);
    expect(await leftOf(post)).toBe(56.05);
  });
});
