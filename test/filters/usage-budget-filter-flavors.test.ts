/** The flavor of an instance, as Blazar and Nova understand it, decides what it costs. */
import { describe, expect, it } from 'vitest';
import { ALLOWED } from '../support/decisions.ts';
import { change, endAfter, lasting, refusal, withBudgets } from './usage-budgets.ts';

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
    const { enforcement, balances } = await withBudgets(['1000'], RATES);
    const lease = lasting(10, { reservations: [instances('large')] });
    expect(await enforcement.checkCreate(lease)).toMatchObject(ALLOWED);
    const resource_properties = JSON.stringify({ id: 'large', vcpus: 8 });
    const there = { id: 'r1', flavor_id: 'r1', resource_properties };
    const known = lasting(10, { id: '1', reservations: [instances('r1', there)] });
    const cheaper = [instances('r1', { ...there, resource_properties: '{"id":"small"}' })];
    for (const changes of [{}, { reservations: cheaper }]) {
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
