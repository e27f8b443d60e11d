import { describe, expect, it } from 'vitest';
import { mistakes } from './loaded.ts';

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
