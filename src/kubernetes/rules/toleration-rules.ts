import { isDeepStrictEqual } from 'node:util';
import type { MergedPolicy } from '../merge.ts';
import type { Toleration } from '../pod.ts';
import type { TolerationRule } from '../policy-schema.ts';
import { type Listed, listedOf } from './listed.ts';
import { listed, quoted, type Reason } from './reason.ts';

const ALL_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** What a rule allows. */
interface Rule {
  readonly keys: Listed;
  readonly operators: Listed;
  readonly values: Listed;
  readonly effects: Listed;
}

/** Which taints of nodes a pod may, must and by default does tolerate. */
export class TolerationRules {
  readonly default: readonly Toleration[];
  readonly #all: boolean;
  readonly #rules: readonly Rule[];
  /** One of these must be there. */
  readonly #required: readonly Rule[];
  /** The one that requires some. */
  readonly #requiring: string;
  /** All that allow some. */
  readonly policies: readonly string[];

  constructor(merged: MergedPolicy) {
    this.default = (merged.default.tolerations ?? []).filter(
      (one, index, all) => all.findIndex((other) => isDeepStrictEqual(one, other)) === index,
    );
    const grants = merged.allowed.flatMap(({ policy, allowed: { tolerations } }) =>
      tolerations === undefined ? [] : [{ policy, tolerations }],
    );
    this.#all = grants.some(({ tolerations }) => tolerations.length === 0);
    this.#required = (merged.required.tolerations ?? []).map(ruleOf);
    this.#requiring = merged.sourceOf('required', 'tolerations');
    this.#rules = [
      ...this.#required,
      ...grants.flatMap(({ tolerations }) => tolerations.map(ruleOf)),
      ...this.default.map(impliedRule),
    ];
    const implied = this.default.length === 0 ? [] : [merged.sourceOf('default', 'tolerations')];
    const requiring = this.#required.length === 0 ? [] : [this.#requiring];
    this.policies = [...new Set([...requiring, ...grants.map(({ policy }) => policy), ...implied])];
  }

  /** Whether the taints of every node may be tolerated that keep new pods away. */
  get allowsAllNoSchedule(): boolean {
    return this.#allows({ operator: 'Exists', effect: 'NoSchedule' });
  }

  /** Why these can't be had, each with its place in the pod: what is not allowed, and what is missing. */
  judge(asked: readonly (readonly [index: number, toleration: Toleration])[]): Reason[] {
    const isMet =
      this.#required.length === 0 ||
      asked.some(([, toleration]) => this.#required.some((rule) => covers(rule, toleration)));
    const expectation = `expected ${listed(this.#required.map(describeRule), 'or')}, which is required`;
    return [
      ...asked.flatMap(([index, toleration]) => this.#judgeOne(toleration, index) ?? []),
      ...(isMet ? [] : [{ field: 'tolerations', expectation, policies: [this.#requiring] }]),
    ];
  }

  #allows(toleration: Toleration): boolean {
    return this.#all || this.#rules.some((rule) => covers(rule, toleration));
  }

  #judgeOne(toleration: Toleration, index: number): Reason | undefined {
    if (this.#allows(toleration)) {
      return undefined;
    }
    const rules = this.#rules.length;
    const expected = rules === 0 ? 'nothing' : 'one that is allowed';
    return {
      field: `tolerations[${index}]`,
      expectation: `expected ${expected}, got ${describe(toleration)}`,
      policies: this.policies,
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

function describeRule({ keys, operators, values, effects }: Rule): string {
  const what = keys === undefined ? 'any key' : listed(keys, 'or');
  const how = operators === undefined ? '' : ` ${listed(operators, 'or')}`;
  const value = values === undefined ? '' : ` ${listed(values, 'or')}`;
  return `${what}${how}${value}, ${effects === undefined ? 'any effect' : listed(effects, 'or')}`;
}
