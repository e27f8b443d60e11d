import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import { type CheckOptions, ConfigurationError, type Lease } from '../../src/index.ts';
import { ALLOWED, REJECTED, rejectedWith, UNCHECKED } from '../support/decisions.ts';
import {
  createLasting,
  createPhysicalHost,
  deepFreeze,
  endActive,
  updateExtend,
} from '../support/requests.ts';
import { chain, GENERIC, notes } from './chain.ts';

describe('the chain', () => {
  it('asks the filters in the order of enabled_filters', async () => {
    const heard = notes();
    const note = (name: string) => ({ create: `notes.push('${name}'); return allow();` });
    const filters = { CFilter: note('C'), AFilter: note('A'), BFilter: note('B') };
    const { create } = await chain(filters, { enabled_filters: ['BFilter', 'CFilter', 'AFilter'] });
    const decision = await create();
    expect(heard).toEqual(['B', 'C', 'A']);
    expect(decision.outcomes.map(({ filter }) => filter)).toEqual(['BFilter', 'CFilter', 'AFilter']);
  });

  it('allows if every filter allows, and returns the lease unchanged', async () => {
    const { enforcement } = await chain({
      AFilter: {},
      BFilter: { create: 'return Promise.resolve(allow());' },
    });
    const request = createPhysicalHost();
    const decision = await enforcement.checkCreate(request);
    expect(decision).toMatchObject({
      ...ALLOWED,
      operation: 'create',
      changed: false,
      message: null,
      filter: null,
      exempt: false,
      warnings: [],
    });
    expect(decision.lease).toBe(request.lease);
    expect(decision.outcomes).toMatchObject([
      { filter: 'AFilter', allowed: true, message: null, failed: false, audit: false, changed: false },
      { filter: 'BFilter', allowed: true, message: null, failed: false, audit: false, changed: false },
    ]);
    expect(decision.outcomes.every(({ milliseconds }) => milliseconds >= 0)).toBe(true);
  });

  it('stops at the first rejection', async () => {
    const heard = notes();
    const { create } = await chain({
      AFilter: { create: "return reject('not today');" },
      BFilter: { create: "notes.push('asked'); return reject('never');" },
    });
    expect(await create()).toMatchObject({ ...rejectedWith('not today'), filter: 'AFilter' });
    expect(heard).toEqual([]);
  });

  it('asks all filters with explain, and still names the first rejection', async () => {
    const { create } = await chain({
      AFilter: { create: "return reject('not today');" },
      BFilter: {},
      CFilter: { create: "throw new Error('broken');" },
    });
    const decision = await create({ explain: true });
    expect(decision).toMatchObject({ ...rejectedWith('not today'), filter: 'AFilter' });
    expect(decision.outcomes).toMatchObject([
      { filter: 'AFilter', allowed: false, message: 'not today' },
      { filter: 'BFilter', allowed: true },
      { filter: 'CFilter', allowed: false, failed: true, message: GENERIC },
    ]);
  });

  it('passes the current and the new lease to an update', async () => {
    const heard = notes();
    const { enforcement } = await chain({
      AFilter: {
        update:
          'notes.push(context.project_id, currentLease.end_date, newLease.end_date); return reject("no");',
      },
    });
    const request = updateExtend();
    expect(await enforcement.checkUpdate(request)).toMatchObject({ operation: 'update', allowed: false });
    expect(heard).toEqual([request.context.project_id, '2026-12-03T09:00:00', '2026-12-05T09:00:00']);
  });

  it('allows everything if no filter is enabled', async () => {
    const { create } = await chain({});
    expect(await create()).toMatchObject({ allowed: true, outcomes: [] });
  });
});

describe('a filter that changes the lease', () => {
  const shorten = "return allow({ ...lease, end_date: '2026-12-02T09:00:00' });";

  it('has its change accepted by every filter before it is returned', async () => {
    const heard = notes();
    const { enforcement } = await chain({
      AFilter: { create: 'notes.push(lease.end_date); return allow();' },
      BFilter: { create: shorten },
    });
    const request = deepFreeze(createPhysicalHost());
    const decision = await enforcement.checkCreate(request);
    expect(decision).toMatchObject({ allowed: true, changed: true });
    expect(decision.lease).toEqual({ ...request.lease, end_date: '2026-12-02T09:00:00' });
    expect(decision.outcomes).toMatchObject([{ changed: false }, { filter: 'BFilter', changed: true }]);
    expect(heard).toEqual(['2026-12-03T09:00:00', '2026-12-02T09:00:00']);
    expect(request).toEqual(createPhysicalHost());
  });

  it('is refused if an earlier filter does not accept the change', async () => {
    const { create } = await chain({
      AFilter: { create: "return lease.name === 'renamed' ? reject('that name is taken') : allow();" },
      BFilter: { create: "return allow({ ...lease, name: 'renamed' });" },
    });
    expect(await create()).toMatchObject({
      allowed: false,
      changed: false,
      filter: 'AFilter',
      message: 'that name is taken',
      lease: createPhysicalHost().lease,
    });
  });

  it('has changed nothing if its lease is equal', async () => {
    const heard = notes();
    const { enforcement } = await chain({
      AFilter: {
        create: 'notes.push(1); return allow({ ...lease, reservations: [...lease.reservations] });',
      },
    });
    const request = createPhysicalHost();
    const decision = await enforcement.checkCreate(request);
    expect(decision).toMatchObject({ allowed: true, changed: false });
    expect(decision.lease).toBe(request.lease);
    expect(heard).toEqual([1]);
  });

  it('returns plain values that the caller may change', async () => {
    const { create } = await chain({
      AFilter: {
        create: `const [first, ...others] = lease.reservations;
          return allow({ ...lease, reservations: [{ ...first, max: 1 }, ...others] });`,
      },
    });
    const { lease } = (await create()) as unknown as {
      lease: { reservations: { max: number; allocations: unknown[] }[] };
    };
    const [reservation] = lease.reservations;
    expect(reservation).toMatchObject({ max: 1, resource_type: 'physical:host' });
    reservation?.allocations.push({});
    expect(structuredClone(lease)).toEqual(lease);
    expect(reservation?.allocations).toHaveLength(3);
  });

  it('fails if filters keep changing the lease', async () => {
    const { create, logger } = await chain({
      AFilter: { create: "return allow({ ...lease, name: lease.name + 'a' });" },
      BFilter: {},
    });
    expect(await create()).toMatchObject({
      ...UNCHECKED,
      changed: false,
      filter: 'AFilter',
      message: GENERIC,
      lease: createPhysicalHost().lease,
    });
    expect(logger.lines).toMatchObject([{ level: 'error', fields: { filter: 'AFilter' } }]);
  });

  it('is a rejection that names the values to set if the caller cannot accept a change', async () => {
    const { create } = await chain({
      AFilter: {
        create: `const [first] = lease.reservations;
          const { before_end_date, ...rest } = lease;
          return allow({ ...rest, end_date: '2026-12-02T09:00:00', reservations: [{ ...first, max: 1 }] });`,
      },
    });
    const decision = await create({ acceptsChanges: false });
    expect(decision).toMatchObject({ allowed: false, failed: false, changed: false, filter: 'AFilter' });
    expect(decision.message).toMatch(/^The lease would be allowed with other values: /);
    for (const part of [
      'end_date = "2026-12-02T09:00:00"',
      'reservations/0/max = 1',
      'without before_end_date',
    ]) {
      expect(decision.message).toContain(part);
    }
    expect(decision.lease).toEqual(createPhysicalHost().lease);
  });
});

it('the message about a change of many values names some of them', async () => {
  const { create } = await chain({
    AFilter: {
      create:
        "return allow({ ...lease, ...Object.fromEntries(Array.from({ length: 5000 }, (_, n) => ['x' + n, 'y'.repeat(50)])) });",
    },
  });
  const { message } = await create({ acceptsChanges: false });
  expect(message).toContain('x0 = ');
  expect(message).toMatch(/ and 4980 more\.$/);
  expect(message?.length).toBeLessThan(5000);
});

describe('audit_filters', () => {
  it('are called and logged, and a rejection becomes a warning', async () => {
    const { create, logger } = await chain(
      { AFilter: { create: "return reject('too long');" }, BFilter: {} },
      { enabled_filters: ['BFilter'], audit_filters: ['AFilter'] },
    );
    expect(await create()).toMatchObject({
      allowed: true,
      message: null,
      warnings: ['AFilter (tried, not enforced) would have rejected: too long'],
      outcomes: [
        { filter: 'BFilter', audit: false },
        { filter: 'AFilter', audit: true, allowed: false, message: 'too long' },
      ],
    });
    expect(logger.lines.filter(({ message }) => message.includes('would have rejected'))).toMatchObject([
      { level: 'warn', fields: { filter: 'AFilter' } },
    ]);
  });

  it('are called after a rejection too, and their log lines name the request, the user and the lease', async () => {
    const heard = notes();
    const { enforcement, logger } = await chain(
      {
        AFilter: { update: "return reject('no');" },
        EnforcedFilter: { update: "notes.push('enforced'); return allow();" },
        BFilter: { update: "return reject('too long');" },
        CFilter: { update: "throw new Error('broken');" },
      },
      { enabled_filters: ['AFilter', 'EnforcedFilter'], audit_filters: ['BFilter', 'CFilter'] },
    );
    const request = updateExtend();
    const decision = await enforcement.checkUpdate(request, { requestId: 'req-1' });
    expect(decision).toMatchObject({ allowed: false, filter: 'AFilter', message: 'no' });
    expect(decision.outcomes.map(({ filter, allowed }) => [filter, allowed])).toEqual([
      ['AFilter', false],
      ['BFilter', false],
      ['CFilter', false],
    ]);
    expect(heard).toEqual([]);
    const { project_id, user_id } = request.context;
    const { id: lease_id, name: lease_name } = request.currentLease;
    const subject = { request_id: 'req-1', operation: 'update', project_id, user_id, lease_id, lease_name };
    const lines = logger.lines.filter(({ fields }) => 'operation' in fields);
    expect(lines.map(({ fields }) => fields)).toEqual([
      { ...subject, filter: 'BFilter' },
      { ...subject, filter: 'CFilter', error: 'broken' },
      { ...subject, filter: 'CFilter' },
    ]);
  });

  it('are not called after a rejection if the deadline has passed', async () => {
    const { enforcement } = await chain(
      { AFilter: { create: 'return new Promise(() => {});' }, BFilter: { create: "return reject('no');" } },
      { enabled_filters: ['AFilter'], audit_filters: ['BFilter'] },
    );
    const signal = AbortSignal.timeout(20);
    const { outcomes } = await enforcement.checkCreate(createPhysicalHost(), { signal });
    expect(outcomes.map(({ filter }) => filter)).toEqual(['AFilter']);
  });

  it('keep their place if they are also in enabled_filters', async () => {
    const { create } = await chain(
      { AFilter: { create: "return reject('no');" }, BFilter: {} },
      { audit_filters: ['AFilter'] },
    );
    expect(await create()).toMatchObject({
      allowed: true,
      outcomes: [
        { filter: 'AFilter', audit: true },
        { filter: 'BFilter', audit: false },
      ],
    });
  });

  it('do not refuse a lease by failing, and do not change one', async () => {
    const { create } = await chain(
      {
        AFilter: { create: "throw new Error('broken');" },
        BFilter: { create: "return allow({ ...lease, name: 'other' });" },
      },
      { audit_filters: ['AFilter', 'BFilter'] },
    );
    expect(await create()).toMatchObject({
      allowed: true,
      changed: false,
      warnings: [
        'AFilter (tried, not enforced) failed.',
        'BFilter (tried, not enforced) would have changed the lease.',
      ],
    });
  });
});

describe('exempt_projects', () => {
  it('are allowed without calling a filter, with a log line and a warning', async () => {
    const heard = notes();
    const { enforcement, logger } = await chain(
      { AFilter: { create: "notes.push('asked'); return reject('no');", update: "return reject('no');" } },
      { exempt_projects: ['climate'] },
    );
    const decision = await enforcement.checkCreate(createLasting(60));
    expect(decision).toMatchObject({
      allowed: true,
      exempt: true,
      outcomes: [],
      warnings: ['Project climate is in exempt_projects: no filter was asked.'],
    });
    const { context } = createLasting(60);
    expect(await enforcement.checkUpdate({ ...updateExtend(), context })).toMatchObject({
      allowed: true,
      exempt: true,
    });
    expect(heard).toEqual([]);
    expect(logger.lines).toMatchObject([{ level: 'info' }, { level: 'info' }]);
    expect(await enforcement.checkCreate(createLasting(60, { project_id: 'physics' }))).toMatchObject(
      REJECTED,
    );
  });

  it('still pass ends to the filters, to release what was recorded before', async () => {
    const heard = notes();
    const { enforcement } = await chain(
      { AFilter: { end: "notes.push('told');" } },
      { exempt_projects: [endActive().context.project_id] },
    );
    await enforcement.onEnd(endActive());
    expect(heard).toEqual(['told']);
  });
});

describe('onEnd', () => {
  it('tells every filter, even if others throw, fail later or never finish', async () => {
    const heard = notes();
    const { enforcement, logger } = await chain({
      AFilter: { end: "throw new Error('cause 4711');" },
      BFilter: { end: "return Promise.reject(new Error('cause 4712'));" },
      CFilter: { end: 'return new Promise(() => {});' },
      DFilter: { end: "notes.push(lease.status); lease.status = 'X';" },
      EFilter: { end: 'notes.push(lease.status);' },
    });
    const request = endActive();
    const report = await enforcement.onEnd(request, { signal: AbortSignal.timeout(50) });
    expect(heard).toEqual(['ACTIVE', 'ACTIVE']);
    expect(report).toMatchObject({ operation: 'end', failed: true });
    expect(report.outcomes.map(({ filter, allowed, failed }) => [filter, allowed, failed])).toEqual([
      ['AFilter', false, true],
      ['BFilter', false, true],
      ['CFilter', false, true],
      ['DFilter', false, true],
      ['EFilter', true, false],
    ]);
    expect(report.warnings).toHaveLength(4);
    expect(JSON.stringify(report)).not.toContain('cause');
    expect(logger.lines.map(({ fields }) => String(fields.error)).join()).toMatch(/4711.*4712/);
    expect(request).toEqual(endActive());
  });

  it('needs no dates', async () => {
    const { enforcement } = await chain({ AFilter: {} });
    const { context } = endActive();
    expect(await enforcement.onEnd({ context, lease: { id: 'x' } })).toMatchObject({
      failed: false,
      warnings: [],
    });
  });
});

describe('load', () => {
  it('logs warnings', async () => {
    const { logger } = await chain({}, { max_lease_duration: 60 });
    expect(logger.lines.map(({ level, message }) => [level, message])).toEqual([
      ['warn', 'in code: [enforcement] enabled_filters: no filter is enforced: every lease is allowed'],
      [
        'warn',
        'in code: [enforcement] max_lease_duration: has no effect: MaxLeaseDurationFilter is not in enabled_filters',
      ],
    ]);
  });

  it('refuses a filter that cannot be set up, and closes the filters before it', async () => {
    const heard = notes();
    const failure = await chain({
      AFilter: { extra: "close() { notes.push('closed'); }" },
      BFilter: { extra: "constructor(...all) { super(...all); throw new Error('no disk'); }" },
    }).catch((thrown: unknown) => thrown);
    expect(failure).toBeInstanceOf(ConfigurationError);
    expect(String(failure)).toContain('BFilter could not be set up: no disk');
    expect(heard).toEqual(['closed']);
  });

  it.each([
    [
      'typed',
      'a: z.int().default(1), a_list: z.array(z.string()).default([])',
      { a: '+5', a_list: 'x,y' },
      { a: 5, a_list: ['x', 'y'] },
    ],
    [
      'as its schema transforms them, once',
      "a_hours: z.int().default(1).transform((hours) => hours * 3600), a_name: z.string().default('').transform((name) => [name])",
      { a_hours: '2', a_name: 'x' },
      { a_hours: 7200, a_name: ['x'] },
    ],
  ])('gives a filter its options, %s, and the services', async (_, schema, config, options) => {
    const heard = notes();
    const { create } = await chain(
      {
        AFilter: {
          create: 'notes.push(this.options, Object.keys(this.services).sort()); return allow();',
          extra: `static options = z.object({ ${schema} });`,
        },
      },
      {},
      Object.entries(config).map(([name, value]) => `enforcement.${name}=${value}`),
    );
    await create();
    expect(heard).toEqual([options, ['clock', 'http', 'keystone', 'ledger', 'logger', 'outbox']]);
  });
});

describe('a request in code', () => {
  it('may contain Date and DateTime objects, which are returned unchanged', async () => {
    const heard = notes();
    const { enforcement } = await chain({
      AFilter: { create: 'notes.push(lease.start_date.getTime(), lease.end_date.toISO()); return allow();' },
    });
    const start_date = new Date('2026-12-01T09:00:00Z');
    const end_date = DateTime.fromISO('2026-12-02T09:00:00Z', { zone: 'utc' });
    const { context } = createPhysicalHost();
    const dated: Lease = { start_date, end_date };
    const decision = await enforcement.checkCreate({ context, lease: dated });
    expect(decision).toMatchObject({ allowed: true, failed: false });
    expect(decision.lease.start_date).toBe(start_date);
    expect(heard).toEqual([start_date.getTime(), '2026-12-02T09:00:00.000Z']);
  });
});

describe('the options of a call in code', () => {
  it.each([
    [{ dry_run: true }, 'dry_run: unknown option of a call; the nearest right name is "dryRun"'],
    [{ dry_run: undefined }, 'dry_run: unknown option of a call; the nearest right name is "dryRun"'],
    [{ constructor: true }, 'constructor: unknown option of a call'],
    [{ dryRun: 'true' }, 'dryRun: expected a boolean, got string'],
    [{ signal: null }, 'signal: expected an object, got null'],
  ])('are refused if they would be ignored: %o', async (options, message) => {
    const { enforcement } = await chain({ AFilter: {} });
    const wrong = options as CheckOptions;
    for (const call of [
      () => enforcement.checkCreate(createPhysicalHost(), wrong),
      () => enforcement.commitUpdate(updateExtend(), wrong),
      () => enforcement.onEnd(endActive(), wrong),
      () => enforcement.estimate(createPhysicalHost(), wrong),
    ]) {
      await expect(call()).rejects.toThrow(new TypeError(message));
    }
    await enforcement.close();
  });

  it('are the same as left out if they are undefined', async () => {
    const { enforcement } = await chain({ AFilter: { create: "return reject('no');" }, BFilter: {} });
    const undefinedOptions: Required<CheckOptions> = {
      signal: undefined,
      deadline: undefined,
      explain: undefined,
      acceptsChanges: undefined,
      dryRun: undefined,
      requestId: undefined,
      idempotencyKey: undefined,
    };
    const decision = await enforcement.checkCreate(createPhysicalHost(), undefinedOptions);
    expect(decision).toMatchObject({ allowed: false, failed: false, outcomes: [{ filter: 'AFilter' }] });
    expect(await enforcement.onEnd(endActive(), undefinedOptions)).toMatchObject({ failed: false });
  });
});

describe('concurrent requests', () => {
  it('do not affect each other', async () => {
    const { enforcement } = await chain({
      AFilter: {
        create: `return new Promise((done) => setTimeout(() => done(
          lease.n % 3 === 0 ? reject('no ' + lease.n) : allow({ ...lease, seen: lease.n })), lease.n % 5));`,
      },
    });
    const { context, lease } = createLasting(60);
    const decisions = await Promise.all(
      Array.from({ length: 60 }, (_, n) => enforcement.checkCreate({ context, lease: { ...lease, n } })),
    );
    decisions.forEach((decision, n) => {
      expect(decision).toMatchObject(
        n % 3 === 0 ? { allowed: false, message: `no ${n}` } : { lease: { n, seen: n } },
      );
    });
  });
});
