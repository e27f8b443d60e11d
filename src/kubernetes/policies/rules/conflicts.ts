/** Finds requirements that no pod can meet, because several policies must all be satisfied. */
import type { MergedPolicy } from '../merge.ts';
import { listed, type Reason } from './reason.ts';

interface RequiredValues {
  readonly policy: string;
  /** Empty = any. */
  readonly values: readonly string[];
}

/**
 * One reason for each field whose required values have nothing in common. It names the first two such policies, or
 * all.
 */
export function conflicts(policies: readonly MergedPolicy[]): Reason[] {
  const byField = new Map<string, RequiredValues[]>();
  const add = (field: string, policy: string, values: readonly string[] | undefined) => {
    if (values !== undefined && values.length > 0) {
      byField.set(field, [...(byField.get(field) ?? []), { policy, values }]);
    }
  };
  for (const { policies: names, required } of policies) {
    const policy = names[0] ?? '';
    add('schedulerName', policy, required.schedulerNames);
    add('priorityClassName', policy, required.priorityClassNames);
    for (const [label, values] of Object.entries(required.nodeSelectors ?? {})) {
      add(`nodeSelector ${label}`, policy, values);
    }
  }
  return [...byField].flatMap(([field, all]) => conflict(field, all));
}

function conflict(field: string, all: readonly RequiredValues[]): Reason[] {
  let common = new Set(all[0]?.values);
  for (const [index, { values, policy }] of all.entries()) {
    common = new Set(values.filter((value) => index === 0 || common.has(value)));
    if (common.size === 0) {
      const other = all.find((one) => !one.values.some((value) => values.includes(value)));
      const two = other === undefined ? all.slice(0, index + 1) : [other, { policy, values }];
      const wishes = two.map((one) => `${one.policy} requires ${listed(one.values, 'or')}`);
      return [
        {
          field,
          expectation: `conflicting requirements: ${listed(wishes, 'and')}`,
          policies: two.map((one) => one.policy),
        },
      ];
    }
  }
  return [];
}
