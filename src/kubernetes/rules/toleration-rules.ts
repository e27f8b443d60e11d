import { isDeepStrictEqual } from 'node:util';
import type { MergedPolicy } from '../merge.ts';
import type { Toleration } from '../pod.ts';
import type { TolerationRule } from '../policy-schema.ts';
import { type Listed, listedOf } from './listed.ts';
import { quoted, type Reason } from './reason.ts';

const ALL_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** What a rule allows. */
interface Rule {
  readonly keys: Listed;
  readonly operators: Listed;
  readonly values: Listed;
  readonly effects: Listed;
}

/** Which taints of nodes a pod may and by default does tolerate. */
export class TolerationRules {
  readonly default: readonly Toleration[];
  readonly #all: boolean;
  readonly #rules: readonly Rule[];
  readonly #policies: readonly string[];

  constructor(merged: MergedPolicy) {
    this.default = (merged.default.tolerations ?? []).filter(
      (one, index, all) => all.findIndex((other) => isDeepStrictEqual(one, other)) === index,
    );
    const grants = merged.allowed.flatMap(({ policy, allowed: { tolerations } }) =>
      tolerations === undefined ? [] : [{ policy, tolerations }],
    );
    this.#all = grants.some(({ tolerations }) => tolerations.length === 0);
    this.#rules = [
      ...grants.flatMap(({ tolerations }) => tolerations.map(ruleOf)),
      ...this.default.map(impliedRule),
    ];
    const implied = this.default.length === 0 ? [] : [merged.sourceOf('default', 'tolerations')];
    this.#policies = [...new Set([...grants.map(({ policy }) => policy), ...implied])];
  }

  /** `index`: where it stands in the pod. */
  judge(toleration: Toleration, index: number): Reason | undefined {
    if (this.#all || this.#rules.some((rule) => covers(rule, toleration))) {
      return undefined;
    }
    const rules = this.#rules.length;
    const expected = rules === 0 ? 'nothing' : 'one that is allowed';
    return {
      field: `tolerations[${index}]`,
      expectation: `expected ${expected}, got ${describe(toleration)}`,
      policies: this.#policies,
    };
  }
}

/**
 * Whether a rule is as broad as a toleration, which without a key is for taints of all keys, without an effect for all
 * effects, and with Exists for all values. Where a rule lists values, an operator that asks for others must be named by it.
 */
function covers({ keys, operators, values, effects }: Rule, toleration: Toleration): boolean {
  const { key, effect } = toleration;
  const operator = toleration.operator || 'Equal';
  return (
    (keys === undefined || (isSaid(key) && keys.includes(key))) &&
    (operators === undefined || operators.includes(operator)) &&
    (values === undefined ||
      ((operator === 'Equal' || operators !== undefined) &&
        (operator === 'Exists' || values.includes(toleration.value ?? '')))) &&
    (effects === undefined ||
      (isSaid(effect) ? effects.includes(effect) : ALL_EFFECTS.every((one) => effects.includes(one))))
  );
}

function isSaid(value: string | null | undefined): value is string {
  return value !== undefined && value !== null && value !== '';
}

function ruleOf({ keys, operators, values, effects }: TolerationRule): Rule {
  return {
    keys: listedOf(keys),
    operators: listedOf(operators),
    values: listedOf(values),
    effects: listedOf(effects),
  };
}

/** Of a default: as broad as it is itself. */
function impliedRule({ key, operator, value, effect }: Toleration): Rule {
  return {
    keys: isSaid(key) ? [key] : undefined,
    operators: [operator || 'Equal'],
    values: operator === 'Exists' ? undefined : [value ?? ''],
    effects: isSaid(effect) ? [effect] : undefined,
  };
}

function describe({ key, operator, value, effect }: Toleration): string {
  const what = isSaid(key) ? quoted(key) : 'every key';
  const how = operator === 'Exists' ? 'with any value' : `${operator || 'Equal'} ${quoted(value ?? '')}`;
  return `${what} ${how}, ${isSaid(effect) ? quoted(effect) : 'every effect'}`;
}
