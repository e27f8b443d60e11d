import { describe, expect, it, vi } from 'vitest';
import { allow, type Call, type Lease, reject, withinDeadline } from '../../src/index.ts';
import { createPhysicalHost, endActive, updateExtend } from '../support/requests.ts';
import { chain, GENERIC, notes } from './chain.ts';

/** Writable, for filters that ignore the contract. */
type Writable = { -readonly [Name in keyof Lease]: unknown } & {
  reservations: { max: number; allocations: unknown[] }[];
};
type Hook = (lease: Writable, context: Record<string, unknown>, call: Call) => unknown;

const EXPECTED = '; expected allow(), allow(lease) or reject(message)';

const throwing = (value: unknown) => () => {
  throw value;
};

const unreadable = () => {
  throw new Error('this cannot be read');
};

/** An error with a property as it should not be. */
function errorWith(name: string, property: PropertyDescriptor): Error {
  return Object.defineProperty(new Error('cause 4711'), name, property);
}

/** What a filter throws, and the error in the log. */
const THROWN: readonly [what: string, thrown: unknown, error: string][] = [
  ['an error', new Error('cause 4711'), 'cause 4711'],
  ['a text', 'cause 4711', 'cause 4711'],
  ['a text of a hundred million characters', 'cause 4711'.padEnd(100_000_000), 'cause 4711'],
  ['undefined', undefined, 'undefined'],
  ['null', null, 'null'],
  ['a symbol', Symbol('cause'), 'Symbol(cause)'],
  ['an object without a text', Object.create(null), 'the error has no text'],
  [
    'a proxy that cannot be read',
    new Proxy(new Error('cause'), { getPrototypeOf: unreadable, has: unreadable, get: unreadable }),
    'the error has no text',
  ],
  ['an error whose message cannot be read', errorWith('message', { get: unreadable }), 'has no text'],
  ['an error whose message is an object', errorWith('message', { value: {} }), '[object Object]'],
  ['an error whose message is a number', errorWith('message', { value: 4711n }), '4711'],
  ['an error whose rules cannot be read', errorWith('rules', { get: unreadable }), 'cause 4711'],
  ['an error whose stack cannot be read', errorWith('stack', { get: unreadable }), 'cause 4711'],
  ['an error whose stack is an object', errorWith('stack', { value: { toJSON: unreadable } }), 'cause 4711'],
];

/** The failure → the hook that causes it, and the error in the log. */
const FAILURES: readonly [doing: string, hook: Hook, error: string][] = [
  ...THROWN.map(
    ([what, thrown, error]) => [`throws ${what}`, throwing(thrown), error] satisfies [string, Hook, string],
  ),
  ['rejects its promise', () => Promise.reject(new Error('cause 4711')), 'cause 4711'],
  [
    'rejects its promise later',
    () => new Promise((_, fail) => setTimeout(() => fail(new Error('cause 4711')), 5)),
    'cause 4711',
  ],
  ['returns undefined', () => undefined, `checkCreate returned undefined${EXPECTED}`],
  ['resolves to undefined', () => Promise.resolve(), `checkCreate resolved to undefined${EXPECTED}`],
  ['returns true', () => true, 'checkCreate returned true;'],
  ['returns null', () => null, 'checkCreate returned null;'],
  ['returns a text', () => 'allowed', 'checkCreate returned "allowed";'],
  ['returns a long text', () => 'x'.repeat(99), `checkCreate returned "${'x'.repeat(40)}…";`],
  ['returns a list', () => [true], 'checkCreate returned a list;'],
  ['returns a function', () => allow, 'checkCreate returned a function;'],
  ['returns an empty object', () => ({}), 'checkCreate returned an object without attributes;'],
  ['returns allowed as a text', () => ({ allowed: 'true', a: 1 }), 'returned an object with allowed, a;'],
  ['returns allowed as 1', () => ({ allowed: 1 }), 'checkCreate returned an object with allowed;'],
  ['rejects without a message', () => ({ allowed: false }), 'returned a rejection without a message;'],
  ['rejects with an empty message', () => reject(''), 'returned a rejection without a message;'],
  [
    'rejects with an object as the message',
    () => ({ allowed: false, message: { text: 1 } }),
    'returned a rejection without a message;',
  ],
  ['returns null as the lease', () => ({ allowed: true, lease: null }), 'cannot be used: lease: expected an'],
  ['returns a list as the lease', () => allow([] as never), 'lease: expected an object'],
  ['returns a lease without dates', () => allow({}), 'cannot be used: lease.start_date: expected an'],
  [
    'returns a lease that ends before it starts',
    (lease) => allow({ ...lease, end_date: '2000-01-01T00:00:00' } as Lease),
    'cannot be used: lease.end_date: expected a date that is not before start_date',
  ],
  [
    'returns a lease that JSON cannot hold',
    (lease) => allow({ ...lease, name: 10n } as Lease),
    'cannot be used: Do not know how to serialize a BigInt',
  ],
  [
    'returns a lease with a wrong date',
    (lease) => allow({ ...lease, end_date: 'tomorrow' } as Lease),
    'checkCreate returned a changed lease that cannot be used: lease.end_date: expected an ISO 8601 date',
  ],
  ...(
    [
      ['writes to the lease', (lease) => Object.assign(lease, { end_date: '2027-01-01T00:00:00' })],
      ['writes to a reservation', (lease) => Object.assign(lease.reservations[0] ?? {}, { max: 99 })],
      ['adds a reservation in place', (lease) => lease.reservations.push({ max: 1, allocations: [] })],
      ['deletes an attribute', (lease) => Reflect.deleteProperty(lease, 'name')],
      ['defines an attribute', (lease) => Object.defineProperty(lease, 'x', { value: 1 })],
      ['sets a prototype', (lease) => Object.setPrototypeOf(lease, {})],
      ['sorts allocations in place', (lease) => lease.reservations[0]?.allocations.reverse()],
      ['writes to the context', (_, context) => Object.assign(context, { project_id: 'exempt' })],
    ] satisfies [string, Hook][]
  ).map(
    ([doing, write]) =>
      [
        doing,
        (lease: Writable, context: Record<string, unknown>) => {
          write(lease, context);
          return allow();
        },
        'a filter tried to change the request in place',
      ] as [string, Hook, string],
  ),
];

describe('a filter that fails', () => {
  it.each(FAILURES)('refuses the lease when it %s', async (_, hook, error) => {
    const create = 'return globalThis.hook(lease, context, call);';
    const { enforcement, logger } = await chain({ AFilter: { create } });
    vi.stubGlobal('hook', hook);
    const request = createPhysicalHost();
    const decision = await enforcement.checkCreate(request);
    expect(decision).toMatchObject({ allowed: false, failed: true, filter: 'AFilter', message: GENERIC });
    expect(JSON.stringify(decision)).not.toContain('cause');
    expect(request).toEqual(createPhysicalHost());
    expect(logger.lines.filter(({ level }) => level === 'error')).toMatchObject([
      {
        message: 'filter failed',
        fields: { filter: 'AFilter', operation: 'create', error: expect.stringContaining(error) },
      },
    ]);
  });

  it.each(THROWN)('is reported when it throws %s at the end of a lease', async (_, thrown, error) => {
    const { enforcement, logger } = await chain({ AFilter: { end: 'throw globalThis.thrown;' } });
    vi.stubGlobal('thrown', thrown);
    expect(await enforcement.onEnd(endActive())).toMatchObject({ failed: true });
    expect(logger.lines[0]?.fields.error).toContain(error);
    for (const { fields } of logger.lines) {
      expect(fields).toEqual(JSON.parse(JSON.stringify(fields)));
      expect(JSON.stringify(fields).length).toBeLessThan(20_000);
    }
  });

  it('refuses an update if it changes the current lease in place', async () => {
    const { enforcement } = await chain({
      AFilter: { update: "currentLease.end_date = '2027-01-01T00:00:00'; return allow();" },
    });
    const request = updateExtend();
    expect(await enforcement.checkUpdate(request)).toMatchObject({ allowed: false, failed: true });
    expect(request).toEqual(updateExtend());
  });

  it('names the hook of an update', async () => {
    const { enforcement, logger: ofUpdate } = await chain({ AFilter: { update: 'return 7;' } });
    await enforcement.checkUpdate(updateExtend());
    expect(ofUpdate.lines[0]?.fields.error).toBe(`checkUpdate returned 7${EXPECTED}`);
  });
});

describe('a request that is repeated', () => {
  const LINES = 40;

  it('leaves thirty lines a minute of each filter that fails, and the first of each cause', async () => {
    const failing = {
      create:
        'if (globalThis.failing === this.constructor.name) throw new Error(globalThis.cause); return allow();',
    };
    const { create, enforcement, logger } = await chain(
      { AFilter: failing, BFilter: failing, TriedFilter: { create: "return reject('no');" } },
      { audit_filters: ['TriedFilter'] },
    );
    const fail = (name: string, cause: string) => {
      vi.stubGlobal('failing', name);
      vi.stubGlobal('cause', cause);
      return create();
    };
    for (let count = 0; count < LINES; count += 1) {
      await fail('AFilter', 'away');
    }
    await fail('AFilter', 'another cause');
    await fail('BFilter', 'away');
    await enforcement.close();
    const seen = (filter: string) => logger.lines.filter(({ fields }) => fields.filter === filter);
    const shown = (filter: string) =>
      seen(filter)
        .filter(({ level }) => level !== 'debug')
        .slice(30);
    const more = 'more than are logged of this filter';
    expect(shown('AFilter')).toMatchObject([
      { fields: { error: 'another cause' }, message: 'filter failed' },
      { level: 'error', fields: { suppressed: 10 }, message: more },
    ]);
    expect(seen('BFilter')[0]).toMatchObject({ fields: { error: 'away' }, message: 'filter failed' });
    expect(shown('TriedFilter')).toMatchObject([
      { level: 'warn', fields: { suppressed: 12 }, message: more },
    ]);
  });
});

describe('the deadline of the caller', () => {
  it.each([
    ['never answers', 'return new Promise(() => {});'],
    [
      'allows the lease when the deadline has passed',
      "return new Promise((done) => call.signal.addEventListener('abort', () => done(allow())));",
    ],
  ])('refuses the lease if a filter %s, and the next filter is not called', async (_, create) => {
    const { create: check, logger } = await chain({ AFilter: { create }, BFilter: {} });
    const decision = await check({ signal: AbortSignal.timeout(20), explain: true });
    expect(decision).toMatchObject({ allowed: false, failed: true, filter: 'AFilter', message: GENERIC });
    expect(decision.outcomes[1]).toMatchObject({ filter: 'BFilter', allowed: false, failed: true });
    expect(logger.lines[0]?.fields.error).toMatch(/timeout/);
  });

  it('refuses nothing if an audited filter never answers: the others have half of the time', async () => {
    const { create } = await chain(
      {
        AFilter: { create: 'return new Promise(() => {});' },
        BFilter: { create: 'return Promise.resolve(allow());', extra: 'commitCreate() { return allow(); }' },
      },
      { audit_filters: ['AFilter'] },
    );
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
    const decision = withinDeadline(10, (deadline) => create({ deadline }));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await decision).toMatchObject({ allowed: true, outcomes: [{ failed: true }, { failed: false }] });
  });

  it('refuses the lease if it passes before a filter is called', async () => {
    const { create } = await chain({ AFilter: {} });
    expect(await create({ signal: AbortSignal.abort() })).toMatchObject({ allowed: false, failed: true });
  });

  it('is passed to every filter as a signal, and leaves no listener on it', async () => {
    const heard = notes();
    const { create } = await chain({
      AFilter: { create: 'notes.push(call.signal); return Promise.resolve(allow());' },
    });
    const { signal } = new AbortController();
    const add = vi.spyOn(signal, 'addEventListener');
    const remove = vi.spyOn(signal, 'removeEventListener');
    await create({ signal });
    expect(heard).toEqual([signal]);
    expect(add).toHaveBeenCalledTimes(1);
    expect(remove.mock.calls.map(([, listener]) => listener)).toEqual(
      add.mock.calls.map(([, listener]) => listener),
    );
  });
});
