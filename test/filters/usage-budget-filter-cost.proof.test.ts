/** What a lease costs: rates, attributes, allocations, time. On a real ledger. */
import { describe, expect, it } from 'vitest';
import { rejectedWith } from '../support/decisions.ts';
import { change, endAfter, found, hosts, lasting, refusal, withBudgets } from './usage-budgets.ts';

const FAILED = 'The lease could not be checked. Please try again later, or ask the operator.';
const ATTRIBUTE = { usage_budget_rate_attribute: 'su_factor' };
const HOUR = 3_600_000_000n;
const costs = (unitHours: string) => expect.stringContaining(`would cost ${unitHours} node-hours;`);

describe('the cost of a lease of ten hours', () => {
  it('depends on the allocated hosts, or else on the maximum', async () => {
    expect(await refusal([hosts(3)])).toEqual(costs('30'));
    expect(await refusal([hosts(3, { allocations: [] })])).toEqual(costs('30'));
    expect(await refusal([hosts(3, { allocations: null })])).toEqual(costs('30'));
    expect(await refusal([hosts(3, found(1, 1))])).toEqual(costs('20'));
    expect(await refusal([hosts(1, found(1, 1))]), 'more than the most').toEqual(costs('20'));
    expect(await refusal([hosts(9, { min: 4, ...found(1, 1) })]), 'fewer than the least').toEqual(
      costs('40'),
    );
  });

  it('is the sum of all reservations, at the rates of their types', async () => {
    const rates = { usage_budget_rates: { 'physical:host': 1, 'virtual:floatingip': 0.01, device: 2 } };
    const reservations = [
      hosts(2),
      { resource_type: 'virtual:floatingip', amount: 5 },
      { resource_type: 'device', max: 3 },
      { resource_type: 'network' },
    ];
    expect(await refusal(reservations, rates)).toEqual(costs('80.5'));
    expect(await refusal([{ resource_type: 'network' }], { usage_budget_rates: { network: 0.5 } })).toEqual(
      costs('5'),
    );
    expect(
      await refusal([{ resource_type: 'x', amount: 1 }, hosts(1)], { usage_budget_rates: { '*': 3 } }),
    ).toEqual(costs('60'));
    expect(
      await refusal([{ resource_type: 'x', amount: 1 }, hosts(1)], {
        usage_budget_rates: { '*': 3, 'physical:host': 0 },
      }),
    ).toEqual(costs('30'));
  });

  it('depends on the flavor, if it has a rate', async () => {
    const rates = {
      usage_budget_rates: { 'flavor:instance': 1, 'virtual:instance': 0.5 },
      usage_budget_flavor_rates: { large: 8, 'a1b2-c3': 0.25, free: 0 },
    };
    const instances = (amount: number, flavor_id?: unknown) => ({
      resource_type: 'flavor:instance',
      amount,
      flavor_id,
    });
    expect(await refusal([instances(2, 'large')], rates)).toEqual(costs('160'));
    expect(await refusal([instances(2, 'a1b2-c3')], rates)).toEqual(costs('5'));
    expect(await refusal([instances(2, 'unknown')], rates)).toEqual(costs('20'));
    expect(await refusal([instances(2)], rates)).toEqual(costs('20'));
    expect(await refusal([instances(2, 7)], rates), 'no text is no flavor').toEqual(costs('20'));
    expect(await refusal([instances(2, '__proto__')], rates)).toEqual(costs('20'));
    expect(await refusal([instances(2, 'free')], rates)).toBeNull();
    expect(await refusal([{ resource_type: 'virtual:instance', amount: 4, vcpus: 2 }], rates)).toEqual(
      costs('20'),
    );
  });

  it('is multiplied by the attribute of each allocation, as text or number', async () => {
    expect(await refusal([hosts(2, found('2.5', 0.5))], ATTRIBUTE)).toEqual(costs('30'));
    expect(await refusal([hosts(2, found(' 2.50 ', '0'))], ATTRIBUTE)).toEqual(costs('25'));
    expect(await refusal([hosts(2, found('2.500000000', 1))], ATTRIBUTE)).toEqual(costs('35'));
    expect(await refusal([hosts(2, found('2.5', '2.5'))], {})).toEqual(costs('20'));
    expect(await refusal([hosts(2, found(0, 0))], ATTRIBUTE)).toBeNull();
  });

  it('uses the factor 1 for allocations without the attribute', async () => {
    expect(await refusal([hosts(2, found(null, undefined))], ATTRIBUTE)).toEqual(costs('20'));
    for (const name of ['__proto__', 'constructor', 'toString']) {
      expect(await refusal([hosts(2, found(3, 3))], { usage_budget_rate_attribute: name }), name).toEqual(
        costs('20'),
      );
    }
  });

  it('uses the highest factor for hosts that are not allocated yet', async () => {
    const instances = (amount: number, ...factors: unknown[]) => ({
      resource_type: 'virtual:instance',
      amount,
      ...found(...factors),
    });
    const options = { ...ATTRIBUTE, usage_budget_rates: { 'virtual:instance': 1, 'physical:host': 1 } };
    expect(await refusal([instances(3, '2', '3')], options)).toEqual(costs('80'));
    expect(await refusal([instances(1, '3', '2')], options), 'only so many').toEqual(costs('30'));
    expect(await refusal([instances(3, '0', '0')], options)).toBeNull();
    expect(await refusal([hosts(4, { min: 3, ...found('2', '3') })], options)).toEqual(costs('80'));
  });

  it('is rounded up to a millionth, once per lease', async () => {
    const options = { ...ATTRIBUTE, usage_budget_rates: { 'physical:host': 0.000001 } };
    const { enforcement, balances } = await withBudgets(['1'], options);
    await enforcement.checkCreate(lasting(1, { reservations: [hosts(2, found('0.000001', '0.5'))] }));
    expect(balances()).toEqual({ 'usage_budget/1': 3600n });
  });

  it.each([
    ['-1'],
    ['-0.5'],
    ['+1'],
    ['abc'],
    [''],
    ['1e3'],
    ['1,5'],
    ['.5'],
    ['1.'],
    ['0x10'],
    ['2.5000001'],
    ['1234567890123456'],
    ['Infinity'],
    ['NaN'],
    [-1],
    [1e-7],
    [1e21],
    [true],
    [['2.5']],
    [{ value: 2.5 }],
  ])(
    'cannot be determined with the factor %j: the lease is refused, and the log names the place',
    async (factor) => {
      const { enforcement, logger, balances } = await withBudgets(['1000'], ATTRIBUTE);
      const lease = lasting(1, { reservations: [hosts(2, found('1', factor))] });
      for (const decision of [
        await enforcement.checkCreate(lease),
        await enforcement.commitCreate(lease),
        await enforcement.checkUpdate({
          ...lease,
          currentLease: lease.lease,
          lease: { end_date: endAfter(2) },
        }),
      ]) {
        expect(decision).toMatchObject({
          allowed: false,
          failed: true,
          filter: 'UsageBudgetFilter',
          message: FAILED,
        });
      }
      expect(balances()).toEqual({});
      const errors = logger.lines.filter(({ level }) => level === 'error');
      expect(errors).not.toEqual([]);
      for (const { fields } of errors) {
        expect(fields.error).toBe(
          `su_factor of the allocation 1: expected a number with up to six decimals, got ${JSON.stringify(factor)}`,
        );
      }
    },
  );

  it.each([[-1], [1.5], ['x'], ['1e3'], [true], [2 ** 53], [undefined]])(
    'cannot be determined for the size %j: the lease is rejected, and the place is named',
    async (size) => {
      const message =
        'The cost of the lease cannot be determined: reservations.1: expected max or amount as a whole number, 0 or more.';
      expect(await refusal([hosts(1), hosts(size, { id: 's' })])).toBe(message);
      expect(
        await refusal([hosts(1), { resource_type: 'x', amount: size }], { usage_budget_rates: { '*': 1 } }),
      ).toBe(message);
    },
  );

  it('is refused if it is too large for the database', async () => {
    const most = Number.MAX_SAFE_INTEGER;
    const { enforcement } = await withBudgets(['2500000000']);
    for (const reservations of [
      [hosts(most)],
      [hosts(most), hosts(most, { id: 's' })],
      [hosts(most, { min: most, ...found(1) })],
    ]) {
      expect(await enforcement.checkCreate(lasting(10, { reservations }))).toMatchObject(
        rejectedWith(expect.stringMatching(/takes more than can be counted/)),
      );
    }
  });

  it.each([
    ['a text for max', hosts('2')],
    ['a text for min', hosts(2, { min: '1' })],
    ['a fraction for min', hosts(2, { min: 0.5 })],
    ['more for min than for max', hosts(2, { min: 3 })],
    ['a text for an amount', { resource_type: 'virtual:instance', amount: '2' }],
    ['a text that Blazar reads as ten', { resource_type: 'virtual:floatingip', amount: '1_0' }],
  ])('cannot be determined with %s, which Blazar refuses: the lease is refused', async (_, reservation) => {
    const rates = { usage_budget_rates: { '*': 1 } };
    expect(await refusal([reservation], rates)).toMatch(
      /^The cost of the lease cannot be determined: reservations\.0: /,
    );
  });

  it('depends on the flavor only for flavor:instance', async () => {
    const rates = {
      usage_budget_rates: { 'virtual:instance': 1, 'physical:host': 1 },
      usage_budget_flavor_rates: { free: 0 },
    };
    const instances = { resource_type: 'virtual:instance', amount: 1, flavor_id: 'free' };
    expect(await refusal([instances, hosts(1, { flavor_id: 'free' })], rates)).toEqual(costs('20'));
  });

  it('uses max and the highest factor for several reservations of one type', async () => {
    const several = [hosts(4, found('1')), hosts(2, { id: 's', ...found('3') })];
    expect(await refusal(several, ATTRIBUTE)).toEqual(costs('180'));
    expect(await refusal([hosts(4, found('1'))], ATTRIBUTE)).toEqual(costs('10'));
    const most = { ...ATTRIBUTE, usage_budget_rate_attribute_max: 5 };
    expect(await refusal(several, most)).toEqual(costs('300'));
    expect(await refusal([hosts(4, found('1'))], most)).toEqual(costs('10'));
  });

  it('uses max after an update for which Blazar searches for hosts, and the allocations otherwise', async () => {
    const { enforcement, balances } = await withBudgets(['1000']);
    const lease = lasting(10, { reservations: [hosts(4, found(1))] });
    await enforcement.checkCreate(lease);
    expect(balances()).toEqual({ 'usage_budget/1': 10n * HOUR });
    const known = { ...lease, lease: { ...lease.lease, id: '1' } };
    const { reservations } = lease.lease;
    const shorter = { end_date: endAfter(5), ...(reservations && { reservations }) };
    await enforcement.checkUpdate(change(known, shorter));
    expect(balances()).toEqual({ 'usage_budget/1': 10n * HOUR });
    const longer = { end_date: endAfter(11), ...(reservations && { reservations }) };
    const made = { ...known, lease: { ...known.lease, end_date: endAfter(5) } };
    await enforcement.checkUpdate(change(made, longer));
    expect(balances()).toEqual({ 'usage_budget/1': 44n * HOUR });
  });
});
