import { describe, expect, it } from 'vitest';
import { ALLOWED, REJECTED, rejectedWith } from '../support/decisions.ts';
import { giveBudgets } from '../support/ledgers.ts';
import { createGpuAndFloatingIp, createPhysicalHost } from '../support/requests.ts';
import { testFilter } from './contract.ts';
import { mistakes } from './loaded.ts';
import { hours } from './on-ledger.ts';
import { change, endAfter, hosts, lasting, refusal, withBudgets } from './usage-budgets.ts';

const { project_id: PROJECT, user_id: USER } = createPhysicalHost().context;

testFilter({
  name: 'UsageBudgetFilter',
  ledger: true,
  prepare: async (connection) => {
    await giveBudgets(connection, [
      { projectId: PROJECT, amount: '10000' },
      { projectId: PROJECT, userId: USER, amount: '10000' },
    ]);
  },
  options: () => ({ usage_budget_rate_attribute: 'su_factor' }),
});

describe('UsageBudgetFilter at create', () => {
  it('charges the captured requests, and rejects them if a millionth of a unit-hour is missing', async () => {
    for (const [request, options, cost] of [
      [createPhysicalHost(), {}, '96'],
      [createPhysicalHost(), { usage_budget_rate_attribute: 'su_factor' }, '240'],
      [createGpuAndFloatingIp(), {}, '216'],
      [createGpuAndFloatingIp(), { usage_budget_rate_attribute: 'su_factor' }, '540'],
      [
        createGpuAndFloatingIp(),
        { usage_budget_rates: { 'physical:host': 2, 'virtual:floatingip': 0.25 } },
        '486',
      ],
    ] as const) {
      const exact = await withBudgets([{ projectId: PROJECT, amount: cost }], options);
      expect(await exact.enforcement.checkCreate(request)).toMatchObject({ allowed: true, failed: false });
      expect(exact.balances(PROJECT)).toEqual({ 'usage_budget/1': hours(cost) });
      const less = await withBudgets([{ projectId: PROJECT, amount: `${Number(cost) - 1}.999999` }], options);
      expect(await less.enforcement.checkCreate(request)).toMatchObject({
        ...REJECTED,
        filter: 'UsageBudgetFilter',
      });
      expect(less.balances(PROJECT)).toEqual({});
    }
  });

  it('names the cost of the lease, what is left, and until when the budget is valid', async () => {
    const { enforcement } = await withBudgets(['100']);
    expect(await enforcement.checkCreate(lasting(60, { name: 'first' }))).toMatchObject(ALLOWED);
    expect((await enforcement.checkCreate(lasting(48, { name: 'second' }))).message).toBe(
      'The lease would cost 48 node-hours; project climate has 40 node-hours left, of a budget that is valid until 2028-01-01T00:00:00Z.',
    );
  });

  it('uses the unit of the operator in messages', async () => {
    const { enforcement } = await withBudgets(['1'], { usage_budget_unit: 'SU' });
    expect((await enforcement.checkCreate(lasting(1.5))).message).toMatch(
      /^The lease would cost 1\.5 SU; project climate has 1 SU left,/,
    );
  });

  it('rounds the cost up and what is left down, so that a refusal never looks wrong', async () => {
    const { enforcement } = await withBudgets(['0.99999'], {
      usage_budget_rates: { 'physical:host': 0.999999 },
    });
    expect((await enforcement.checkCreate(lasting(1))).message).toContain(
      'would cost 1 node-hours; project climate has 0.9999 node-hours left',
    );
  });

  it('counts whole seconds, including a partial first and last one', async () => {
    const { enforcement, balances } = await withBudgets(['1']);
    await enforcement.checkCreate(
      lasting(0, { start_date: '2026-12-01T09:00:00.999999', end_date: '2026-12-01T09:00:02.000001' }),
    );
    expect(balances()).toEqual({ 'usage_budget/1': 3_000_000n });
  });

  it('charges nothing for free resources, also without a budget', async () => {
    const { enforcement, balances } = await withBudgets([]);
    for (const reservations of [
      [],
      [hosts(0, { min: 0 })],
      [{ resource_type: 'network' }],
      [{ resource_type: 'virtual:floatingip', amount: 'whatever' }],
    ]) {
      expect(await enforcement.checkCreate(lasting(10, { reservations }))).toMatchObject(ALLOWED);
    }
    expect(await enforcement.checkCreate(lasting(0)), 'of no length').toMatchObject(ALLOWED);
    expect(balances()).toEqual({});
  });

  it('adds exactly: ten times a tenth is one', async () => {
    const { enforcement, balances } = await withBudgets(['1'], {
      usage_budget_rates: { 'physical:host': 0.1 },
    });
    for (let lease = 1; lease <= 10; lease += 1) {
      expect(await enforcement.checkCreate(lasting(1, { name: `${lease}` }))).toMatchObject(ALLOWED);
    }
    expect(balances()).toEqual({ 'usage_budget/1': hours('1') });
    expect(await enforcement.checkCreate(lasting(1 / 3600, { name: 'one second' }))).toMatchObject(REJECTED);
  });
});

it('UsageBudgetFilter at an update allows a lease from before the budgets to continue, but not at a higher cost', async () => {
  const { enforcement } = await withBudgets([]);
  const lease = lasting(10);
  expect(await enforcement.checkUpdate(change(lease, { name: 'renamed' }))).toMatchObject(ALLOWED);
  expect(await enforcement.checkUpdate(change(lease, { end_date: endAfter(9) }))).toMatchObject(ALLOWED);
  expect(await enforcement.checkUpdate(change(lease, { end_date: endAfter(11) }))).toMatchObject(
    rejectedWith('Project climate has no budget.'),
  );
});

const NAME = 'UsageBudgetFilter';

describe('the options of UsageBudgetFilter', () => {
  it.each([
    ['usage_budget_rates', 'resource type:rate'],
    ['usage_budget_flavor_rates', 'flavor id:rate'],
  ])('accept rates from 0 to a million with up to six decimals: %s', async (option, pairs) => {
    for (const [text, detail] of [
      ['a:-1', ' (see "a")'],
      ['a:1000001', ' (see "a")'],
      ['a:0.0000001', ' (it has more than six decimals)'],
      ['a:1.2345678', ' (it has more than six decimals)'],
      ['a:x', ''],
      ['a:NaN', ''],
      ['a:Infinity', ''],
      ['a:', ''],
      ['1', ' (a pair has no name or no ":")'],
      ['a:1, a:2', ' (a name is given twice)'],
      ['__proto__:1', ' (__proto__ cannot be the name of a pair)'],
    ] as const) {
      const found = await mistakes(NAME, [`${option} = ${text}`]);
      expect(found, text).toHaveLength(1);
      expect(found[0], text).toContain(`blazar.conf:3: [enforcement] ${option}: expected ${pairs} pairs`);
      expect(found[0], text).toContain(`got "${text}"${detail}`);
    }
  });

  it('accept a unit of a few words', async () => {
    for (const text of ['a'.repeat(41), 'a;b', '<b>']) {
      expect(await mistakes(NAME, [`usage_budget_unit = ${text}`]), text).toEqual([
        `blazar.conf:3: [enforcement] usage_budget_unit: expected a few words, got "${text}"`,
      ]);
    }
  });

  it('accept the name of an attribute, and true or false', async () => {
    expect(await mistakes(NAME, ['usage_budget_rate_attribute = su factor'])).toEqual([
      'blazar.conf:3: [enforcement] usage_budget_rate_attribute: expected the name of an attribute, got "su factor"',
    ]);
    expect(await mistakes(NAME, ['usage_budget_required = perhaps'])).toEqual([
      'blazar.conf:3: [enforcement] usage_budget_required: expected true or false, got "perhaps"',
    ]);
  });
});

const RATES = {
  usage_budget_rates: { 'flavor:instance': 1 },
  usage_budget_flavor_rates: { large: 8, 'm1.Tiny': 3, '7': 5 },
};
const HOUR = 3_600_000_000n;
const instances = (flavor_id: unknown, more: object = {}) => ({
  resource_type: 'flavor:instance',
  amount: 1,
  flavor_id,
  ...more,
});

describe('the rate of a flavor', () => {
  it.each([
    ['a number', 7, '50'],
    ['other letters, which a database of Nova may ignore', 'LARGE', '80'],
    ['blanks at its end, which it may ignore too', 'm1.tiny ', '30'],
    ['a flavor without a rate', 'small', '10'],
  ])('applies to an id that is %s', async (_, flavor, cost) => {
    expect(await refusal([instances(flavor)], RATES)).toContain(`would cost ${cost} node-hours;`);
  });

  it.each([['7?x'], ['7#x'], ['%37'], ['./7'], ['x/../7'], [true], [['7']], [{ id: '7' }], ['']])(
    'cannot be told for %j, which Nova may read as another id: the lease is refused',
    async (flavor) => {
      expect(await refusal([instances(flavor)], RATES)).toBe(
        'The cost of the lease cannot be determined: reservations.0: expected flavor_id as the id of a flavor.',
      );
    },
  );

  it('stays after Blazar has replaced the flavor by one of its own', async () => {
    const lease = lasting(10, { reservations: [instances('large')] });
    const resource_properties = JSON.stringify({ id: 'large', vcpus: 8 });
    const there = { id: 'r1', flavor_id: 'r1', resource_properties };
    const known = lasting(10, { id: '1', reservations: [instances('r1', there)] });
    const cheaper = [instances('r1', { ...there, resource_properties: '{"id":"small"}' })];
    for (const changes of [{}, { reservations: cheaper }]) {
      const { enforcement, balances } = await withBudgets(['1000'], RATES);
      expect(await enforcement.checkCreate(lease)).toMatchObject(ALLOWED);
      const longer = change(known, { ...known.lease, end_date: endAfter(11), ...changes });
      expect(await enforcement.checkUpdate(longer)).toMatchObject(ALLOWED);
      expect(balances()).toEqual({ 'usage_budget/1': 88n * HOUR });
    }
  });

  it('is that of the same reservation, of several that Blazar has given flavors of its own', async () => {
    const { enforcement, balances } = await withBudgets(['1000'], RATES);
    const there = (id: string, flavor: string) =>
      instances(id, { id, resource_properties: JSON.stringify({ id: flavor }) });
    const known = lasting(10, { id: '1', reservations: [there('r1', 'small'), there('r2', 'large')] });
    expect(
      await enforcement.checkUpdate(change(known, { ...known.lease, end_date: endAfter(11) })),
    ).toMatchObject(ALLOWED);
    expect(balances()).toEqual({ 'usage_budget/1': 99n * HOUR });
  });

  it('is not taken from what a user writes into a new lease', async () => {
    const written = { id: 'large', resource_properties: '{"id":"small"}' };
    expect(await refusal([instances('large', written)], RATES)).toContain('would cost 80 node-hours;');
  });
});

const JANUARY = { from: '2027-01-01', until: '2027-02-01' };
/** The last five hours of December and the first five of January. */
const OVER_NEW_YEAR = { start_date: '2026-12-31 19:00', end_date: '2027-01-01 05:00' };

describe('a project', () => {
  it('without a budget is refused leases that cost something', async () => {
    const { enforcement } = await withBudgets([{ projectId: 'physics', amount: '1000' }]);
    expect(await enforcement.checkCreate(lasting(1))).toMatchObject(
      rejectedWith('Project climate has no budget.'),
    );
    expect(await enforcement.checkCreate(lasting(1, {}, { project_id: 'physics' }))).toMatchObject(ALLOWED);
  });

  it('without a budget has no limit with usage_budget_required = false; one with a budget has', async () => {
    const options = { usage_budget_required: false };
    const { enforcement, balances } = await withBudgets([{ projectId: 'physics', amount: '1' }], options);
    expect(await enforcement.checkCreate(lasting(1000))).toMatchObject(ALLOWED);
    expect(balances()).toEqual({});
    expect(await enforcement.checkCreate(lasting(1000, {}, { project_id: 'physics' }))).toMatchObject(
      REJECTED,
    );
  });

  it('is refused leases at a time without a budget, whether or not one is required', async () => {
    for (const usage_budget_required of [true, false]) {
      const { enforcement } = await withBudgets([{ ...JANUARY, amount: '1000' }], { usage_budget_required });
      const message =
        'Project climate has no budget for a lease from 2026-12-31T19:00:00Z to 2027-01-01T05:00:00Z; it has one from 2027-01-01T00:00:00Z to 2027-02-01T00:00:00Z.';
      expect(await enforcement.checkCreate(lasting(1, OVER_NEW_YEAR))).toMatchObject({
        allowed: false,
        message,
      });
    }
  });

  it('is refused a lease that extends a second into a gap between budgets or past the last one', async () => {
    const { enforcement } = await withBudgets([
      { from: '2026-12-01', until: '2026-12-31', amount: '1000' },
      { ...JANUARY, amount: '1000' },
    ]);
    const allowed = async (start_date: string, end_date: string) =>
      (await enforcement.checkCreate(lasting(1, { start_date, end_date }), { dryRun: true })).allowed;
    expect(await allowed('2026-12-30T00:00:00', '2026-12-31T00:00:00')).toBe(true);
    expect(await allowed('2026-12-30T00:00:00', '2026-12-31T00:00:01')).toBe(false);
    expect(await allowed('2026-12-31T23:59:59', '2027-01-02T00:00:00')).toBe(false);
    expect(await allowed('2026-12-30T00:00:00', '2027-01-02T00:00:00')).toBe(false);
    expect(await allowed('2027-01-01T00:00:00', '2027-02-01T00:00:00')).toBe(true);
    expect(await allowed('2027-01-01T00:00:00', '2027-02-01T00:00:00.000001')).toBe(false);
  });
});

describe('a user', () => {
  it('with a budget is refused leases outside its time, although the project has a budget', async () => {
    const { enforcement, balances } = await withBudgets([
      '100',
      { userId: 'alice', ...JANUARY, amount: '10' },
    ]);
    expect(await enforcement.checkCreate(lasting(1))).toMatchObject(
      rejectedWith(
        'User alice in project climate has no budget for a lease from 2026-12-01T09:00:00Z to 2026-12-01T10:00:00Z; it has one from 2027-01-01T00:00:00Z to 2027-02-01T00:00:00Z.',
      ),
    );
    expect(balances()).toEqual({});
  });

  it('with a budget is limited by it even if the project needs none', async () => {
    const { enforcement } = await withBudgets([{ userId: 'alice', amount: '10' }], {
      usage_budget_required: false,
    });
    expect(await enforcement.checkCreate(lasting(11))).toMatchObject(REJECTED);
    expect(await enforcement.checkCreate(lasting(10))).toMatchObject(ALLOWED);
    expect(await enforcement.checkCreate(lasting(1000, {}, { user_id: 'bob' }))).toMatchObject(ALLOWED);
  });
});

describe('ids', () => {
  it.each(['__proto__', 'constructor', 'a/b', 'climate/user/alice', "x' OR 1=1 --", '%', '*', 'π'])(
    'with unusual characters have their own budgets: %s',
    async (id) => {
      const who = { user_id: id, project_id: id };
      const { enforcement, balances } = await withBudgets([
        '1000',
        { userId: 'alice', amount: '1000' },
        { projectId: id, amount: '10' },
        { projectId: id, userId: id, amount: '5' },
      ]);
      const judge = async (hoursLong: number, context: object) =>
        (await enforcement.checkCreate(lasting(hoursLong, {}, context), { dryRun: true })).allowed;
      expect(await judge(5, who)).toBe(true);
      expect(await judge(6, who)).toBe(false);
      expect(await judge(6, { project_id: id })).toBe(true);
      expect(await judge(11, { project_id: id })).toBe(false);
      await enforcement.checkCreate(lasting(5, {}, who));
      expect(balances(id)).toEqual({ 'usage_budget/3': hours('5'), 'usage_budget/4': hours('5') });
      expect(balances('climate')).toEqual({});
    },
  );

  it('of users with slashes have their own accounts for times without a budget', async () => {
    const { enforcement, balances } = await withBudgets(
      [
        { ...JANUARY, userId: 'a', amount: '1' },
        { ...JANUARY, userId: 'user/a', amount: '1' },
      ],
      { audit_filters: ['UsageBudgetFilter'], usage_budget_required: false },
    );
    for (const user_id of ['a', 'user/a']) {
      await enforcement.checkCreate(lasting(1, { name: user_id }, { user_id }));
    }
    expect(balances()).toEqual({
      'usage_budget/uncovered/user/a': hours('1'),
      'usage_budget/uncovered/user/user/a': hours('1'),
    });
  });
});
