import { describe, expect, it } from 'vitest';
import { type Asked, askTwice, chainOf } from './helpers.ts';

const POLICY = ['BusinessHoursPolicy'];
const GPU = 'resources: {accelerators: H100:8}';

/** A chain with a clock that a test sets. Times are UTC. */
async function at(time: string, options: Readonly<Record<string, unknown>> = {}) {
  let now = new Date(time);
  const { ask } = await chainOf(POLICY, options, { clock: { now: () => now } });
  return {
    ask: (asked: Asked = {}) => ask({ task: GPU, ...asked }),
    isAllowed: async (when: string, asked: Asked = {}) => {
      now = new Date(when);
      return (await ask({ task: GPU, ...asked })).allowed;
    },
  };
}

const MONDAY_NOON = '2026-11-23T12:00:00Z';
const SUNDAY_NOON = '2026-11-22T12:00:00Z';

describe('BusinessHoursPolicy', () => {
  it('allows accelerators from Monday to Friday, from 8 to 18', async () => {
    const { ask, isAllowed } = await at(MONDAY_NOON);
    expect((await askTwice(ask)).changed).toBe(false);
    for (const [when, allowed] of [
      ['2026-11-23T07:59:59.999Z', false],
      ['2026-11-23T08:00:00Z', true],
      ['2026-11-23T17:59:59.999Z', true],
      ['2026-11-23T18:00:00Z', false],
      ['2026-11-28T12:00:00Z', false],
      [SUNDAY_NOON, false],
    ] as const) {
      expect(await isAllowed(when), when).toBe(allowed);
    }
  });

  it('says when, what time it is, and when it opens', async () => {
    const { ask } = await at(SUNDAY_NOON, { business_hours_time_zone: 'Europe/Berlin' });
    expect(await ask()).toMatchObject({
      allowed: false,
      failed: false,
      message:
        'Launches with accelerators are allowed only within business hours: mon-fri 08:00-18:00 (Europe/Berlin). It is Sun 13:00 there; the next time is Mon 2026-11-23 08:00.',
    });
  });

  it('allows them only outside of business hours, if that is wanted', async () => {
    const { ask, isAllowed } = await at(MONDAY_NOON, {
      business_hours_launches: 'outside',
      business_hours_resources: 'all',
    });
    expect((await ask()).message).toBe(
      'Launches are allowed only outside business hours: mon-fri 08:00-18:00 (UTC). It is Mon 12:00 there; the next time is Mon 2026-11-23 18:00.',
    );
    expect(await isAllowed(SUNDAY_NOON)).toBe(true);
    expect(await isAllowed('2026-11-23T18:00:00Z')).toBe(true);
  });

  it('lets hours go on until the next day, also from Sunday to Monday', async () => {
    const { isAllowed } = await at(MONDAY_NOON, { business_hours: ['fri-sun 20:00-06:00', '12:00-12:30'] });
    for (const [when, allowed] of [
      ['2026-11-22T20:00:00Z', true],
      ['2026-11-23T05:59:00Z', true],
      ['2026-11-23T06:00:00Z', false],
      ['2026-11-23T20:00:00Z', false],
      ['2026-11-27T19:59:00Z', false],
      ['2026-11-27T23:59:00Z', true],
      ['2026-11-23T12:29:00Z', true],
    ] as const) {
      expect(await isAllowed(when), when).toBe(allowed);
    }
  });

  it('takes days in every form', async () => {
    for (const [hours, days] of [
      ['mon 00:00-24:00', [1]],
      ['sat-mon 00:00-24:00', [6, 7, 1]],
      ['MON WED fri-sat 00:00-24:00', [1, 3, 5, 6]],
      ['00:00-24:00', [1, 2, 3, 4, 5, 6, 7]],
    ] as const) {
      const { isAllowed } = await at(MONDAY_NOON, { business_hours: [hours] });
      for (const day of [1, 2, 3, 4, 5, 6, 7]) {
        const date = `2026-11-${22 + day}`;
        const expected = (days as readonly number[]).includes(day);
        expect(await isAllowed(`${date}T00:00:00Z`), `${hours}, ${date}`).toBe(expected);
        expect(await isAllowed(`${date}T23:59:59Z`), `${hours}, ${date}`).toBe(expected);
      }
    }
  });

  it('keeps to the clock on the wall when summer time begins and ends', async () => {
    const { isAllowed } = await at(MONDAY_NOON, {
      business_hours: ['01:30-02:30', '08:00-18:00'],
      business_hours_time_zone: 'Europe/Berlin',
    });
    for (const [when, allowed] of [
      // Saturday is UTC+1, Sunday 2026-03-29 begins so and goes on with UTC+2 from 02:00.
      ['2026-03-28T07:00:00Z', true],
      ['2026-03-29T06:00:00Z', true],
      ['2026-03-29T05:59:00Z', false],
      ['2026-03-29T00:59:00Z', true],
      ['2026-03-29T01:00:00Z', false],
      // On 2026-10-25 the hour from 02:00 is there twice.
      ['2026-10-25T00:29:00Z', true],
      ['2026-10-25T00:30:00Z', false],
      ['2026-10-25T01:29:00Z', true],
      ['2026-10-25T06:59:00Z', false],
      ['2026-10-25T07:00:00Z', true],
    ] as const) {
      expect(await isAllowed(when), when).toBe(allowed);
    }
  });

  it('has no business hours on holidays, of one year or of every year', async () => {
    const options = {
      business_hours_holidays: ['2026-11-23', '12-25'],
      business_hours: ['22:00-06:00', '08:00-18:00'],
    };
    const { ask, isAllowed } = await at(MONDAY_NOON, options);
    expect((await ask()).message).toMatch(/the next time is Tue 2026-11-24 08:00\.$/);
    for (const [when, allowed] of [
      // These hours began on the day before.
      ['2026-11-23T05:00:00Z', true],
      ['2026-11-23T23:00:00Z', false],
      ['2026-11-24T05:00:00Z', false],
      ['2027-11-23T12:00:00Z', true],
      ['2027-12-25T12:00:00Z', false],
      ['2030-12-25T12:00:00Z', false],
    ] as const) {
      expect(await isAllowed(when), when).toBe(allowed);
    }
    const outside = await at(MONDAY_NOON, { ...options, business_hours_launches: 'outside' });
    expect((await outside.ask()).allowed).toBe(true);
  });

  it('names no next time where there is none', async () => {
    const { ask } = await at(MONDAY_NOON, {
      business_hours: ['00:00-24:00'],
      business_hours_launches: 'outside',
    });
    expect((await ask()).message).toMatch(/It is Mon 12:00 there\.$/);
  });

  it('restricts what starts something, at the server, and requests that it does not know', async () => {
    const { ask } = await at(SUNDAY_NOON);
    for (const [asked, allowed] of [
      [{ name: 'launch' }, false],
      [{ name: 'jobs.launch', options: null }, false],
      [{ name: 'serve.up', options: null }, false],
      [{ name: 'jobs.launch_cluster' }, false],
      [{ name: 'serve.launch_replica' }, false],
      [{ name: 'something.new' }, false],
      [{ name: 'exec' }, true],
      [{ name: 'validate' }, true],
      [{ name: 'optimize' }, true],
      [{ name: 'jobs.launch_controller' }, true],
      [{ name: 'serve.launch_controller' }, true],
      [{ options: { dryrun: true } }, true],
      [{ atClientSide: true }, true],
      [{ user: null }, false],
    ] as const) {
      expect((await ask(asked)).allowed, JSON.stringify(asked)).toBe(allowed);
    }
    const { ask: others } = await at(SUNDAY_NOON, {
      business_hours_exec: true,
      business_hours_controllers: 'allowed',
    });
    expect((await others({ name: 'exec' })).allowed).toBe(false);
    expect((await others({ name: 'jobs.launch_cluster' })).allowed).toBe(true);
    expect((await others({ name: 'serve.launch_replica' })).allowed).toBe(true);
    expect((await others({ name: 'launch' })).allowed).toBe(false);
  });

  it('finds accelerators in every alternative, and in every form', async () => {
    const { ask } = await at(SUNDAY_NOON);
    for (const [task, allowed] of [
      ['run: a', true],
      ['resources: {cpus: 8}', true],
      ['resources: {accelerators: A100}', false],
      ['resources: {any_of: [{cpus: 2}, {accelerators: A100}]}', false],
      ['resources: {instance_type: p4d.24xlarge}', false],
      // A machine of this size has some.
      ['resources: {infra: lambda, cpus: 124}', false],
      ['resources: {any_of: [a]}', false],
    ] as const) {
      expect(await ask({ task }), task).toMatchObject({ allowed, failed: false });
    }
  });

  it('restricts only some accelerators, if they are named', async () => {
    const { ask } = await at(SUNDAY_NOON, {
      business_hours_accelerators: ['h100*', 'A100'],
      business_hours_cpu_instance_types: ['m5.*', 'n2-standard-?'],
    });
    for (const [task, allowed] of [
      ['resources: {accelerators: H100}', false],
      ['resources: {accelerators: h100-80gb}', false],
      ['resources: {accelerators: a100}', false],
      ['resources: {accelerators: A100-80GB}', true],
      ['resources: {accelerators: [T4, H100]}', false],
      ['resources: {accelerators: T4}', true],
      ['resources: {infra: lambda, accelerators: T4}', true],
      // What SkyPilot takes for one of them.
      ['resources: {accelerators: 80GB}', false],
      [`resources: {accelerators: T${'4'.repeat(5000)}}`, false],
      ['resources: {instance_type: m5.large}', true],
      ['resources: {instance_type: M5.large}', true],
      ['resources: {instance_type: m55large}', false],
      ['resources: {instance_type: n2-standard-8}', false],
    ] as const) {
      expect((await ask({ task })).allowed, task).toBe(allowed);
    }
  });

  it('restricts everything, if that is wanted', async () => {
    const { ask } = await at(SUNDAY_NOON, { business_hours_resources: 'all' });
    expect((await ask({ task: 'run: a' })).message).toMatch(/^Launches are allowed only within/);
  });

  it('restricts a part of a name that SkyPilot may complete to a restricted one', async () => {
    const { ask } = await at(SUNDAY_NOON, { business_hours_accelerators: ['H200*', '*B900'] });
    for (const [name, allowed] of [
      ['H20', false],
      ['h2.0', false],
      ['B90', false],
      ['H100', true],
      ['T4', true],
      ['mystery', true],
    ] as const) {
      expect((await ask({ task: `resources: {accelerators: "${name}:8"}` })).allowed, name).toBe(allowed);
    }
  });

  it('exempts users by name or id, and workspaces', async () => {
    const { ask } = await at(SUNDAY_NOON, {
      business_hours_users: ['lee', 'ffff0000'],
      business_hours_workspaces: ['ops', 'default'],
    });
    const user = (id: string, name: string) => ({ id, name, userType: null, preferredWorkspace: null });
    for (const [asked, allowed] of [
      [{ config: 'active_workspace: ml' }, true],
      [{ config: 'active_workspace: ml', user: user('ffff0000', 'x') }, true],
      [{ config: 'active_workspace: ml', user: user('a', 'Lee') }, false],
      [{ config: 'active_workspace: ml', user: user('sa-1f3870be', 'lee') }, false],
      [{ config: 'active_workspace: ml', user: null }, false],
      [{ config: 'active_workspace: ops', user: user('a', 'b') }, true],
      [{ config: 'active_workspace: [ops]', user: user('a', 'b') }, false],
      [{ config: 'active_workspace: null', user: user('a', 'b') }, true],
      [{ user: user('a', 'b') }, true],
    ] as const) {
      expect((await ask(asked)).allowed, JSON.stringify(asked)).toBe(allowed);
    }
  });

  it('refuses everything while the clock is broken', async () => {
    const { ask } = await at('never');
    expect(await ask()).toMatchObject({ allowed: false, failed: true });
  });
});
