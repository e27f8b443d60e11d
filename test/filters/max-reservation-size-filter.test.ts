import { describe, expect, it } from 'vitest';
import { RESOURCE_TYPES } from '../../src/config/names.ts';
import type { Context, Decision, Lease, Reservation } from '../../src/index.ts';
import { createGpuAndFloatingIp, createPhysicalHost, updateExtend } from '../support/requests.ts';
import { testFilter } from './contract.ts';
import { loadFilter, mistakes, NOW } from './loaded.ts';

const NAME = 'MaxReservationSizeFilter';

testFilter({
  name: NAME,
  options: () => ({ max_reservation_size: { 'physical:host': 2, 'virtual:floatingip': 1 } }),
});

/** `null` = it is allowed. */
type Message = string | null;
type Reservations = readonly unknown[] | null | undefined;

function expectMessage({ failed, filter, message }: Decision, expected: Message): void {
  expect({ failed, filter, message }).toEqual({
    failed: false,
    filter: expected === null ? null : NAME,
    message: expected,
  });
}

const tooMuch = (asked: number, type: string, most: number, whose = 'any lease') =>
  `The lease reserves up to ${asked} of ${type}; the most allowed for ${whose} is ${most}.`;
const hostsTooMany = (asked: number, most: number) => tooMuch(asked, 'physical:host', most);
const halfway = (asked: number, most: number) =>
  `If the change failed halfway, the lease could reserve up to ${asked} of physical:host; the most allowed for any lease is ${most}. Make reservations smaller first, then others larger.`;
const unknownSize = (index: number) =>
  `The size of the lease cannot be determined: reservations.${index}: expected max or amount as a whole number, 0 or more.`;

const hosts = (max: unknown, more: object = {}) => ({ resource_type: 'physical:host', min: 1, max, ...more });
const of = (resource_type: string, amount: unknown) => ({ resource_type, amount });

/** The captured request with other reservations, of alice in the project climate. */
async function create(
  lines: readonly string[],
  reservations: Reservations,
  context: Partial<Context> = {},
): Promise<Decision> {
  const { context: captured, lease } = createPhysicalHost();
  return (await loadFilter(NAME, lines)).checkCreate({
    context: { ...captured, user_id: 'alice', project_id: 'climate', ...context },
    lease: { ...lease, reservations: reservations as Reservation[] },
  });
}

const generally = (sizes: string) => [`max_reservation_size = ${sizes}`, 'resource_types = constructor'];

describe('MaxReservationSizeFilter at create', () => {
  it.each<[string, Lease['reservations'], Message]>([
    ['physical:host:2', createPhysicalHost().lease.reservations, null],
    ['physical:host:1', createPhysicalHost().lease.reservations, hostsTooMany(2, 1)],
    ['physical:host:1, virtual:floatingip:1', createGpuAndFloatingIp().lease.reservations, null],
    [
      'physical:host:1, virtual:floatingip:0',
      createGpuAndFloatingIp().lease.reservations,
      tooMuch(1, 'virtual:floatingip', 0),
    ],
  ])('allows exactly the limit in the captured requests, and rejects one unit more: %s', async (...row) => {
    const [sizes, reservations, expected] = row;
    expectMessage(await create(generally(sizes), reservations), expected);
  });

  it.each(RESOURCE_TYPES.flatMap((type) => [[type, 'amount'] as const, [type, 'max'] as const]))(
    'counts %s by %s',
    async (type, field) => {
      const reserve = (count: number) => [{ resource_type: type, [field]: count }];
      expectMessage(await create(generally(`${type}:3`), reserve(3)), null);
      expectMessage(await create(generally(`${type}:3`), reserve(4)), tooMuch(4, type, 3));
    },
  );

  const both = [hosts(2), of('virtual:floatingip', 5), hosts(1)];
  const networks = [{ resource_type: 'network' }, of('network', null)];
  const most = Number.MAX_SAFE_INTEGER;
  const tenAllocations = Array.from({ length: 9 }, (_, id) => ({ id }));
  const others = ['physical:hosts', 'Physical:Host', 'physical', 'host', ':host', 'physical:host '];

  it.each<[string, string, Reservations, Message]>([
    ['the maximum, not the minimum', 'physical:host:2', [hosts(3)], hostsTooMany(3, 2)],
    ['not the allocations', 'physical:host:2', [hosts(2, { min: 9, allocations: tenAllocations })], null],
    ['the sum of a type', 'physical:host:3, virtual:floatingip:5', both, null],
    ['the sum of a type', 'physical:host:2, virtual:floatingip:5', both, hostsTooMany(3, 2)],
    ['each type', 'physical:host:3, virtual:floatingip:4', both, tooMuch(5, 'virtual:floatingip', 4)],
    ['the larger of max and amount', 'physical:host:4', [hosts(2, { amount: 5 })], hostsTooMany(5, 4)],
    ['the larger of max and amount', 'physical:host:5', [hosts(2, { amount: 5 })], null],
    ['the larger of max and amount', 'physical:host:4', [hosts(5, { amount: 2 })], hostsTooMany(5, 4)],
    ['the larger, as a text', 'physical:host:4', [hosts('5', { amount: 2 })], hostsTooMany(5, 4)],
    ['max if amount is null', 'physical:host:2', [hosts(2, { amount: null })], null],
    ['amount if max is null', 'physical:host:1', [hosts(null, { amount: 2 })], hostsTooMany(2, 1)],
    ['a text', 'physical:host:4', [hosts('2'), hosts('02')], null],
    ['a text', 'physical:host:3', [hosts('2'), hosts('02')], hostsTooMany(4, 3)],
    ['a text with blanks', 'physical:host:3', [hosts(' 2 '), hosts(' 2 ')], hostsTooMany(4, 3)],
    ['a network without an amount as one', 'network:2', networks, null],
    ['a network without an amount as one', 'network:1', networks, tooMuch(2, 'network', 1)],
    ['networks', 'network:2', [of('network', 3)], tooMuch(3, 'network', 2)],
    ['a network with the amount 0 as one', 'network:0', [of('network', 0)], tooMuch(1, 'network', 0)],
    ['no size but of networks', 'physical:host:1', [hosts(1), hosts(undefined)], unknownSize(1)],
    ['null as no size', 'physical:host:1', [hosts(1), hosts(null, { amount: null })], unknownSize(1)],
    ['up to the largest exact number', `physical:host:${most}`, [hosts(most)], null],
    ['the limit 0', 'physical:host:0', [hosts(1)], hostsTooMany(1, 0)],
    ['the limit 0', 'physical:host:0', [hosts(0)], null],
    ['no reservations', 'physical:host:0', [], null],
    ['null as no reservations', 'physical:host:0', null, null],
    ['a lease without reservations', 'physical:host:0', undefined, null],
    ['no type that is not listed', 'physical:host:1', [of('virtual:instance', 1e6)], null],
    ['no type with -1', 'physical:host:-1', [hosts(1e6)], null],
    ['no type that looks alike', 'physical:host:1', others.map((type) => of(type, 9)), null],
    ['constructor', 'constructor:1', [of('constructor', 2)], tooMuch(2, 'constructor', 1)],
    ['constructor', 'constructor:1', [of('constructor', 1)], null],
  ])('counts %s: %s, %j', async (_, sizes, reservations, expected) => {
    expectMessage(await create(generally(sizes), reservations), expected);
  });

  it('limits nothing by default', async () => {
    expectMessage(await create([], [hosts(1e6)]), null);
  });

  it('rejects sums that are too large for an exact number, without failing', async () => {
    const decision = await create(generally(`physical:host:${most}`), [hosts(most), hosts(most)]);
    expect(decision).toMatchObject({ allowed: false, failed: false });
  });

  it.each<[string, unknown]>([
    ['negative', -1],
    ['a negative text', '-1'],
    ['a fraction', 1.5],
    ['a fraction as text', '1.5'],
    ['NaN', Number.NaN],
    ['infinite', Number.POSITIVE_INFINITY],
    ['too large for an exact number', 2 ** 53],
    ['a huge text', '9007199254740993'],
    ['a text of a thousand digits', '9'.repeat(1000)],
    ['an exponent', '1e3'],
    ['hexadecimal', '0x10'],
    ['an empty text', ''],
    ['true', true],
    ['a list', [1]],
    ['an object', { valueOf: 1 }],
  ])('rejects a count that is %s, whatever the other count is', async (_, count) => {
    const lines = generally('physical:host:100, network:100');
    for (const one of [
      hosts(count),
      hosts(count, { amount: 1 }),
      hosts(1, { amount: count }),
      of('network', count),
    ]) {
      expectMessage(await create(lines, [one]), unknownSize(0));
    }
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'mistake'])(
    'accepts the type %s, a property name of JavaScript objects',
    async (type) => {
      expectMessage(await create(generally('physical:host:1'), [of(type, 9), hosts(1)]), null);
      expectMessage(await create(generally('physical:host:1'), [of(type, 9), hosts(2)]), hostsTooMany(2, 1));
    },
  );
});

describe('limits for users and projects', () => {
  const LINES = [
    'max_reservation_size = physical:host:10, network:1',
    'max_reservation_size_project_limits = climate/physical:host:20, a/b/physical:host:5',
    'max_reservation_size_user_limits = alice/physical:host:30, bob/physical:host:2',
  ];
  const general = 'max_reservation_size = physical:host:10';
  const project = (count: number) => `max_reservation_size_project_limits = climate/physical:host:${count}`;
  const user = (count: number) => `max_reservation_size_user_limits = alice/physical:host:${count}`;

  it.each<[string, string, number, (readonly string[])?]>([
    ['carol', 'physics', 10],
    ['carol', 'climate', 20],
    ['alice', 'climate', 30],
    ['alice', 'physics', 30],
    ['bob', 'climate', 2],
    ['carol', 'a/b', 5],
    ['carol', 'a', 10],
    // A project with the name of a user is not that user.
    ['climate', 'alice', 10],
    // -1 removes each separately.
    ['alice', 'climate', 31, [general, project(-1)]],
    ['alice', 'physics', 10, [general, project(-1)]],
    ['alice', 'climate', 31, [general, project(20), user(-1)]],
    ['bob', 'climate', 20, [general, project(20), user(-1)]],
    ['alice', 'climate', 2, [general, project(-1), user(2)]],
    ['alice', 'climate', 5, ['max_reservation_size = physical:host:-1', project(5)]],
  ])('%s in %s may reserve at most %d', async (user_id, project_id, most, lines = LINES) => {
    const asked = [0, 2, 3, 5, 6, 10, 11, 20, 21, 30, 31];
    const answers = await Promise.all(
      asked.map(async (count) => (await create(lines, [hosts(count)], { user_id, project_id })).allowed),
    );
    expect(asked[answers.lastIndexOf(true)]).toBe(most);
  });

  it.each<[Partial<Context>, Reservations, Message]>([
    [{}, [of('network', 2), hosts(30)], tooMuch(2, 'network', 1)],
    [{}, [hosts(31)], tooMuch(31, 'physical:host', 30, 'user alice')],
    [{ user_id: 'carol' }, [hosts(21)], tooMuch(21, 'physical:host', 20, 'project climate')],
  ])('apply to their type, and are named in the rejection: %j', async (context, reservations, expected) => {
    expectMessage(await create(LINES, reservations, context), expected);
  });
});

describe('MaxReservationSizeFilter at update', () => {
  const two = { id: 'h', resource_type: 'physical:host', min: 1, max: 2 };
  const second = { ...two, id: 'i', max: 3 };
  const ip = { id: 'f', resource_type: 'virtual:floatingip', amount: 1 };
  const nine = { ...two, max: 9 };
  const broken = { ...two, max: 'many' };
  const update = async (sizes: string, current: readonly unknown[] | null, lease: Lease) => {
    const { context, currentLease } = updateExtend();
    return (await loadFilter(NAME, generally(sizes))).checkUpdate({
      context,
      currentLease: { ...currentLease, reservations: current as Reservation[] },
      lease,
    });
  };
  const toMax = (max: unknown, id = 'h') => ({ id, max });

  it.each(['physical:host:2', 'physical:host:1', 'physical:host:0'])(
    'allows the captured extension, even if the lease is over a new limit: %s',
    async (sizes) => {
      expectMessage(await (await loadFilter(NAME, generally(sizes))).checkUpdate(updateExtend()), null);
    },
  );

  it.each<[Lease]>([
    [{}],
    [{ end_date: '2026-12-05' }],
    [{ end_date: '2026-12-05', reservations: [] }],
    [JSON.parse('{"reservations": null}')],
  ])('allows an update of the dates alone: %j', async (lease) => {
    expectMessage(await update('physical:host:1', [two], lease), null);
  });

  it.each<[string, string, readonly unknown[] | null, readonly unknown[], Message]>([
    ['growth to the limit', 'physical:host:4', [two], [toMax(4)], null],
    ['growth to the limit', 'physical:host:4', [two], [toMax('4')], null],
    ['growth', 'physical:host:4', [two], [toMax(5)], hostsTooMany(5, 4)],
    ['what is too large to stay', 'physical:host:3', [nine], [toMax(9)], null],
    ['what is too large to shrink', 'physical:host:3', [nine], [toMax(8)], null],
    ['what is too large to grow', 'physical:host:3', [nine], [toMax(10)], hostsTooMany(10, 3)],
    [
      ...(['each type', 'physical:host:1, virtual:floatingip:1', [two, ip]] as const),
      ...([[toMax(0), { id: 'f', amount: 2 }], tooMuch(2, 'virtual:floatingip', 1)] as const),
    ],
    [
      ...(['each type', 'physical:host:1, virtual:floatingip:2', [two, ip]] as const),
      ...([[toMax(0), { id: 'f', amount: 2 }], null] as const),
    ],
    ['what is left out', 'physical:host:6', [two, second], [toMax(3)], null],
    ['what is left out', 'physical:host:5', [two, second], [toMax(3)], hostsTooMany(6, 5)],
    ['hosts that move', 'physical:host:7', [two, second], [toMax(4), toMax(1, 'i')], null],
    ['hosts that move', 'physical:host:6', [two, second], [toMax(4), toMax(1, 'i')], halfway(7, 6)],
    ['hosts that move', 'physical:host:1', [two, second], [toMax(4), toMax(1, 'i')], halfway(7, 1)],
    ['hosts that move back', 'physical:host:5', [two, second], [toMax(1), toMax(4, 'i')], null],
    ['two that shrink', 'physical:host:1', [two, second], [toMax(1), toMax(1, 'i')], null],
    ['another type', 'physical:host:7', [two, second, ip], [toMax(4), { ...ip, id: 'i' }], null],
    ['another type', 'physical:host:6', [two, second, ip], [toMax(4), { ...ip, id: 'i' }], halfway(7, 6)],
    ['an added one', 'physical:host:3', [two], [hosts(1)], null],
    ['an added one', 'physical:host:2', [two], [hosts(1)], hostsTooMany(3, 2)],
    ['an added one with an id', 'physical:host:3', [two], [hosts(1, { id: 'new' })], null],
    ['an added one with an id', 'physical:host:2', [two], [hosts(1, { id: 'new' })], hostsTooMany(3, 2)],
    ['an added network', 'network:0', [two], [{ resource_type: 'network' }], tooMuch(1, 'network', 0)],
    ['everything as new', 'physical:host:1', [], [hosts(2)], hostsTooMany(2, 1)],
    ['everything as new', 'physical:host:1', null, [hosts(2)], hostsTooMany(2, 1)],
    ['a wrong count', 'physical:host:9', [two, ip], [{ id: 'f', amount: 1 }, toMax('many')], unknownSize(1)],
    ['null', 'physical:host:9', [two], [toMax(null)], unknownSize(0)],
    ['instead of a wrong count', 'physical:host:2', [broken], [toMax(2)], null],
    ['instead of a wrong count', 'physical:host:2', [broken], [toMax(3)], hostsTooMany(3, 2)],
  ])('judges %s: %s, %j', async (_, sizes, current, reservations, expected) => {
    expectMessage(await update(sizes, current, { reservations: reservations as Reservation[] }), expected);
  });

  it('refuses a request that names a reservation twice', async () => {
    const lease = { reservations: [toMax(2), toMax(2)] };
    await expect(update('physical:host:4', [two], lease)).rejects.toThrow('lease.reservations.1.id');
  });

  it('applies the limits of users and projects', async () => {
    const request = updateExtend();
    const { user_id, project_id } = request.context;
    const lease = { reservations: [{ ...request.lease.reservations?.[0], max: 3 }] };
    const ask = async (...lines: readonly string[]) =>
      (await loadFilter(NAME, ['max_reservation_size = physical:host:2', ...lines])).checkUpdate({
        ...request,
        lease,
      });
    expectMessage(await ask(), hostsTooMany(3, 2));
    expectMessage(await ask(`max_reservation_size_project_limits = ${project_id}/physical:host:3`), null);
    expectMessage(await ask(`max_reservation_size_user_limits = ${user_id}/physical:host:3`), null);
  });
});

it.each([
  ['max_reservation_size', 'physical:host:1.5', 'resource type:count', ''],
  ['max_reservation_size', 'physical:host', 'resource type:count', ''],
  ['max_reservation_size', 'physical:host:-2', 'resource type:count', ' (see "physical:host")'],
  ...(['project', 'user'] as const).flatMap((who) =>
    [
      ['physical:host:10', 'physical:host'],
      ['climate/:10', 'climate/'],
      ['/physical:host:10', '/physical:host'],
      ['climate/physical:host:-2', 'climate/physical:host'],
    ].map(([text, name]) => [
      `max_reservation_size_${who}_limits`,
      text,
      `${who} id/resource type:count`,
      ` (see "${name}")`,
    ]),
  ),
])(
  'the options of MaxReservationSizeFilter %s refuses %j, with file, line and text',
  async (option, text, pairs, detail) => {
    expect(await mistakes(NAME, [`${option} = ${text}`])).toEqual([
      `blazar.conf:3: [enforcement] ${option}: expected ${pairs} pairs with commas between them, each value a whole number or -1, got "${text}"${detail}`,
    ]);
  },
);

it('of changes of a lease that are asked for at once, allows one: Blazar would add the hosts of all', async () => {
  let now = NOW;
  const enforcement = await loadFilter(NAME, ['max_reservation_size = physical:host:4'], { now: () => now });
  const { context, currentLease } = updateExtend();
  const sized = (max: number) => ({ ...currentLease, reservations: [hosts(max, { id: 'h' })] });
  const grow = (from: number, to: number, options = {}) =>
    enforcement.checkUpdate({ context, currentLease: sized(from), lease: sized(to) }, options);
  const answers = await Promise.all([grow(1, 3), grow(1, 3), grow(1, 3, { dryRun: true }), grow(1, 2)]);
  const again = 'Another change of this lease was allowed a moment ago: try again in a minute.';
  expect(answers.map(({ message }) => message)).toEqual([null, again, null, again]);
  expect(answers[1]).toMatchObject({
    filter: NAME,
    failed: false,
    outcomes: [{ allowed: false, message: again }],
  });
  // The request shows that Blazar has made the change.
  expectMessage(await grow(3, 4), null);
  expectMessage(await grow(3, 4), again);
  now = '2026-11-21T09:00:59.500Z';
  expectMessage(await grow(3, 4), again);
  // Blazar has not made it: the hosts were not free.
  now = '2026-11-21T09:01:30.500Z';
  expectMessage(await grow(3, 4), null);
});
