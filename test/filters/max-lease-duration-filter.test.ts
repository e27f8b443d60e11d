import { describe, expect, it } from 'vitest';
import { ALLOWED, REJECTED, rejectedWith } from '../support/decisions.ts';
import {
  createGpuAndFloatingIp,
  createLasting,
  createPhysicalHost,
  updateExtend,
  updatePending,
} from '../support/requests.ts';
import { testFilter } from './contract.ts';
import { loadValues } from './loaded.ts';

const DAY = 86_400;

testFilter({ name: 'MaxLeaseDurationFilter', options: () => ({ max_lease_duration: 30 * DAY }) });

const load = async (options: Record<string, unknown>, now?: () => string) =>
  (await loadValues({ enabled_filters: ['MaxLeaseDurationFilter'], ...options }, {}, now)).enforcement;

async function create(options: Record<string, unknown>, request = createPhysicalHost()) {
  return (await load(options)).checkCreate(request);
}

describe('MaxLeaseDurationFilter at create', () => {
  it('allows a lease that is exactly as long as the maximum', async () => {
    expect(await create({ max_lease_duration: 2 * DAY })).toMatchObject(ALLOWED);
  });

  it('rejects a lease longer than the maximum, and names its length, the limit and whose limit it is', async () => {
    expect(await create({ max_lease_duration: 2 * DAY - 1 })).toMatchObject({
      allowed: false,
      failed: false,
      filter: 'MaxLeaseDurationFilter',
      message:
        'The lease is 172800 seconds (2 days) long; the longest allowed for any lease is 172799 seconds (1 day, 23 hours, 59 minutes, 59 seconds).',
    });
  });

  it('rejects a lease that is one microsecond too long', async () => {
    const request = createPhysicalHost();
    const lease = { ...request.lease, end_date: '2026-12-03T09:00:00.000001' };
    expect(await create({ max_lease_duration: 2 * DAY }, { ...request, lease })).toMatchObject(
      rejectedWith(expect.stringContaining('172800.000001 seconds')),
    );
  });

  it('allows a lease of any length if no limit is set', async () => {
    expect(await create({})).toMatchObject(ALLOWED);
    expect(await create({ max_lease_duration: -1 }, createGpuAndFloatingIp())).toMatchObject(ALLOWED);
  });

  it('rejects every lease with a duration if the limit is 0', async () => {
    expect(await create({ max_lease_duration: 0 }, createLasting(1))).toMatchObject(REJECTED);
    expect(await create({ max_lease_duration: 0 }, createLasting(0))).toMatchObject(ALLOWED);
  });

  it('allows exempt projects everything', async () => {
    const options = {
      max_lease_duration: 1,
      max_lease_duration_exempt_project_ids: ['a0b86a98b0d343cb948e00689182efd4'],
    };
    expect(await create(options)).toMatchObject({ allowed: true, exempt: false });
    expect(await create(options, createLasting(2))).toMatchObject(REJECTED);
  });

  it('prefers the limit of the user to that of the project, and that to the general limit', async () => {
    const options = {
      max_lease_duration: 10,
      max_lease_duration_project_limits: { climate: 100 },
      max_lease_duration_user_limits: { alice: 1000, bob: 5 },
    };
    const longest = async (user_id: string, project_id: string) => {
      const enforcement = await load(options);
      const decisions = await Promise.all(
        [5, 10, 100, 1000].map(async (seconds) => ({
          seconds,
          allowed: (await enforcement.checkCreate(createLasting(seconds, { user_id, project_id }))).allowed,
        })),
      );
      return decisions.findLast(({ allowed }) => allowed)?.seconds;
    };
    expect(await longest('carol', 'physics')).toBe(10);
    expect(await longest('carol', 'climate')).toBe(100);
    expect(await longest('alice', 'climate')).toBe(1000);
    expect(await longest('alice', 'physics')).toBe(1000);
    expect(await longest('bob', 'climate')).toBe(5);
  });

  it('removes the limit of a single project or user with -1', async () => {
    const options = { max_lease_duration: 10, max_lease_duration_project_limits: { climate: -1 } };
    expect(await create(options, createLasting(1e6))).toMatchObject(ALLOWED);
    expect(await create(options, createLasting(1e6, { project_id: 'physics' }))).toMatchObject(REJECTED);
  });

  it('accepts ids that are property names of JavaScript objects', async () => {
    for (const id of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      const request = createLasting(11, { user_id: id, project_id: id });
      expect(await create({ max_lease_duration: 10 }, request), id).toMatchObject(REJECTED);
    }
  });
});

describe('MaxLeaseDurationFilter at update, without an extension window', () => {
  it('checks the whole new lease, as Blazar does', async () => {
    const enforcement = await load({ max_lease_duration: 4 * DAY });
    expect(await enforcement.checkUpdate(updateExtend())).toMatchObject(ALLOWED);
    const strict = await load({ max_lease_duration: 4 * DAY - 1 });
    expect(await strict.checkUpdate(updateExtend())).toMatchObject(
      rejectedWith(expect.stringContaining('The lease is 345600 seconds (4 days) long')),
    );
  });

  it('takes missing dates from the current lease', async () => {
    const { context, currentLease } = updateExtend();
    const enforcement = await load({ max_lease_duration: 3 * DAY });
    const extendTo = (end_date: string) =>
      enforcement.checkUpdate({ context, currentLease, lease: { end_date } });
    expect(await extendTo('2026-12-04T09:00:00')).toMatchObject(ALLOWED);
    expect(await extendTo('2026-12-04T09:00:01')).toMatchObject(REJECTED);
    expect(
      await enforcement.checkUpdate({ context, currentLease, lease: { name: 'renamed' } }),
    ).toMatchObject(ALLOWED);
  });

  it('allows exempt projects everything', async () => {
    const enforcement = await load({
      max_lease_duration: 1,
      max_lease_duration_exempt_project_ids: [updateExtend().context.project_id],
    });
    expect(await enforcement.checkUpdate(updateExtend())).toMatchObject(ALLOWED);
  });
});

describe('MaxLeaseDurationFilter at update, with an extension window', () => {
  /** The current end of the captured lease is 2026-12-03T09:00, the new one two days later. */
  const update = async (
    now: string,
    options: Record<string, unknown>,
    lease: Record<string, unknown> = {},
  ) => {
    const enforcement = await load({ max_lease_duration_extension_window: DAY, ...options }, () => now);
    const request = updatePending();
    return enforcement.checkUpdate({ ...request, lease: { ...request.lease, ...lease } });
  };

  it('allows an extension within the window, and counts from the current end to the new one', async () => {
    expect(await update('2026-12-02T09:00:00Z', { max_lease_duration: 2 * DAY })).toMatchObject(ALLOWED);
    expect(await update('2026-12-03T09:00:00Z', { max_lease_duration: 2 * DAY })).toMatchObject(ALLOWED);
    expect(await update('2026-12-02T09:00:00Z', { max_lease_duration: 2 * DAY - 1 })).toMatchObject(
      rejectedWith(
        'The lease would be extended by 172800 seconds (2 days); the longest extension allowed for any lease is 172799 seconds (1 day, 23 hours, 59 minutes, 59 seconds).',
      ),
    );
  });

  it('rejects an extension before the window opens', async () => {
    expect(await update('2026-12-02T08:59:59Z', { max_lease_duration: 2 * DAY })).toMatchObject(
      rejectedWith(
        'The lease can be extended only within 86400 seconds (1 day) before its present end, and that is 86401 seconds (1 day, 1 second) away.',
      ),
    );
  });

  it('rejects an extension of a lease that has ended', async () => {
    expect(await update('2026-12-03T09:00:01Z', { max_lease_duration: 2 * DAY })).toMatchObject(
      rejectedWith(expect.stringContaining('it has ended')),
    );
  });

  it('enforces the window even without a limit on the length', async () => {
    expect(await update('2026-11-30T00:00:00Z', {})).toMatchObject(REJECTED);
    expect(await update('2026-12-03T00:00:00Z', {})).toMatchObject(ALLOWED);
  });

  it('always allows an update that shortens a lease or keeps its end', async () => {
    const options = { max_lease_duration: 1 };
    for (const end_date of ['2026-12-03T09:00:00', '2026-12-01T09:00:00', '2026-12-02T10:00:00']) {
      expect(await update('2026-11-21T00:00:00Z', options, { end_date }), end_date).toMatchObject(ALLOWED);
    }
  });

  it('checks the whole lease if it is moved to an earlier start', async () => {
    const lease = { start_date: '2026-11-01T09:00:00', end_date: '2026-12-03T09:00:00' };
    expect(await update('2026-12-03T00:00:00Z', { max_lease_duration: 31 * DAY }, lease)).toMatchObject(
      REJECTED,
    );
    expect(await update('2026-12-03T00:00:00Z', { max_lease_duration: 32 * DAY }, lease)).toMatchObject(
      ALLOWED,
    );
  });

  it('does not apply the window to create', async () => {
    expect(
      await create({ max_lease_duration: 2 * DAY, max_lease_duration_extension_window: 1 }),
    ).toMatchObject(ALLOWED);
  });

  it('applies the limits of users and projects to extensions too', async () => {
    const { context } = updateExtend();
    const options = { max_lease_duration: 1, max_lease_duration_user_limits: { [context.user_id]: 2 * DAY } };
    expect(await update('2026-12-03T00:00:00Z', options)).toMatchObject(ALLOWED);
  });
});
