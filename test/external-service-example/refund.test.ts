import { describe, expect, it } from 'vitest';
import { type Fields, fixture, leaseOf, leftOf, start } from './helpers.ts';

// Two hosts for two days from 1 December: 96 node-hours.
const create = fixture('check-create-physical-host');
const ended = fixture('on-end-active');
const physical = { project_id: create.context.project_id };
const at = (text: string) => () => Date.parse(text);

describe('on-end', () => {
  it('refunds the time from now to the end, once', async () => {
    let now = '2026-12-01T19:00:00Z';
    const { post } = await start({ now: () => Date.parse(now) });
    await post('/check-create', create);
    expect(await post('/on-end', ended)).toMatchObject({ status: 204, text: '' });
    expect(await leftOf(post, physical)).toBe(80);
    expect((await post('/on-end', ended)).status).toBe(204);
    now = '2026-12-02T19:00:00Z';
    expect((await post('/on-end', ended)).status).toBe(204);
    expect(await leftOf(post, physical)).toBe(80);
  });

  it.each([
    ['all of a lease that has not begun', '2026-11-20T00:00:00Z', 100],
    ['nothing of a lease that has run to its end', '2026-12-04T00:00:00Z', 4],
  ])('refunds %s', async (_, now, left) => {
    const { post } = await start({ now: at(now) });
    await post('/check-create', create);
    await post('/on-end', ended);
    expect(await leftOf(post, physical)).toBe(left);
  });

  it('refunds nothing for a rejected lease', async () => {
    const { post } = await start({ now: at('2026-11-20T00:00:00Z') });
    expect((await post('/check-create', leaseOf(101))).status).toBe(403);
    expect((await post('/on-end', leaseOf(101, { id: 'a' }))).status).toBe(204);
    const { context, lease: current_lease } = leaseOf(101, { id: 'a' });
    const lease = leaseOf(102).lease;
    expect((await post('/check-update', { context, current_lease, lease })).status).toBe(204);
    expect(await leftOf(post)).toBe(99);
  });

  it.each<[string, Fields, Fields?]>([
    ['name', { name: 'y' }],
    ['user', { user_id: 'v' }],
    ['user, told by the context', {}, { user_id: 'v' }],
    ['project', { project_id: 'q' }],
    ['start', { start_date: '2026-12-01T00:00:00+00:01' }],
  ])('refunds nothing for a lease of another %s', async (_, other, context) => {
    const { post } = await start({ now: at('2026-11-20T00:00:00Z') });
    await post('/check-create', leaseOf(50));
    await post('/on-end', leaseOf(50, { id: 'a', ...other }, context));
    expect(await leftOf(post)).toBe(50);
    expect(await leftOf(post, { project_id: 'q' })).toBe(100);
  });

  it('refunds nothing to another project that knows the id', async () => {
    const { post } = await start({ now: at('2026-11-20T00:00:00Z') });
    const { context, lease } = leaseOf(50, { id: 'a' });
    await post('/check-create', { context, lease });
    await post('/check-update', { context, current_lease: lease, lease });
    await post('/on-end', leaseOf(50, { id: 'a', project_id: 'q' }));
    await post('/check-create', leaseOf(100, { project_id: 'q' }));
    expect((await post('/check-create', leaseOf(1, { project_id: 'q' }))).status).toBe(403);
    expect(await leftOf(post)).toBe(50);
  });

  it('never refunds more than was paid, whatever the lease says', async () => {
    const { post } = await start({ now: at('2026-11-20T00:00:00Z') });
    await post('/check-create', leaseOf(50));
    const grown = { id: 'a', end_date: '2027-12-01T00:00:00', reservations: [{ max: 1000 }] };
    for (let n = 0; n < 2; n += 1) await post('/on-end', leaseOf(0, grown));
    expect(await leftOf(post)).toBe(100);
  });

  it('charges a lease again if it is updated after it ended before its start', async () => {
    const { post } = await start({ now: at('2026-11-20T00:00:00Z') });
    const { context, lease } = leaseOf(50, { id: 'a' });
    await post('/check-create', { context, lease });
    await post('/on-end', { context, lease });
    await post('/check-update', { context, current_lease: lease, lease });
    expect(await leftOf(post)).toBe(50);
  });

  it('distinguishes two leases with the same name and start', async () => {
    const { post } = await start({ now: at('2026-12-01T01:00:00Z') });
    const wide = (id?: string) => leaseOf(2, { id, reservations: [{ max: 40 }] });
    await post('/check-create', wide());
    await post('/check-create', leaseOf(3));
    await post('/on-end', wide('wide'));
    expect(await leftOf(post)).toBe(57);
    await post('/on-end', leaseOf(3, { id: 'narrow' }));
    expect(await leftOf(post)).toBe(59);
  });

  it('keeps charging one of two equal leases when the other one ends twice', async () => {
    const { post } = await start({ now: at('2026-11-20T00:00:00Z') });
    for (let n = 0; n < 2; n += 1) await post('/check-create', leaseOf(40));
    for (let n = 0; n < 2; n += 1) await post('/on-end', leaseOf(40, { id: 'a' }));
    expect(await leftOf(post)).toBe(60);
  });
});
