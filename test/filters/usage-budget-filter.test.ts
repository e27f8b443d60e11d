import { describe, expect, it } from 'vitest';
import { ALLOWED, REJECTED, rejectedWith } from '../support/decisions.ts';
import { giveBudgets } from '../support/ledgers.ts';
import { createGpuAndFloatingIp, createPhysicalHost } from '../support/requests.ts';
import { testFilter } from './contract.ts';
import { hours } from './on-ledger.ts';
import { change, endAfter, hosts, lasting, withBudgets } from './usage-budgets.ts';

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
