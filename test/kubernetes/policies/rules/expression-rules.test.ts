import { expect, it } from 'vitest';
import {
  allows,
  describeRules,
  holds,
  rulesIn,
} from '../../../../src/kubernetes/policies/rules/expression-rules.ts';

/** A list that counts how often one of its items is read. */
function counted<Item>(items: readonly Item[]) {
  const reads = { items: 0 };
  const list = new Proxy([...items], {
    get(target, name, receiver) {
      reads.items += typeof name === 'string' && /^\d+$/.test(name) ? 1 : 0;
      return Reflect.get(target, name, receiver) as unknown;
    },
  });
  return { list, reads };
}

const NODES = Array.from({ length: 500 }, (_, index) => `node-${index}`);

it('reads the values of a rule once, however many a pod names', () => {
  const { list, reads } = counted(NODES);
  const rules = rulesIn([{ keys: ['host'], values: list }]);
  const requested = { key: 'host', operator: 'In', values: NODES };
  for (const rule of rules) {
    expect(allows(rule, requested)).toBe(true);
    expect(holds(rule, requested)).toBe(true);
    expect(holds({ ...rule, operators: undefined }, { ...requested, values: ['other'] })).toBe(false);
  }
  expect(reads.items).toBe(NODES.length);
});

it('describes the rules for a thousand refused terms once', () => {
  const { list, reads } = counted(rulesIn(NODES.map((node) => ({ keys: [node] }))));
  const text = describeRules(list);
  expect(text).toContain('node-0 with any operator');
  const { items } = reads;
  expect(describeRules(list)).toBe(text);
  expect(reads.items).toBe(items);
});
