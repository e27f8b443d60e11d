import { isDeepStrictEqual } from 'node:util';
import type { TolerationRule } from '../documents/policy-schema.ts';
import { EFFECTS } from '../documents/schema-helpers.ts';
import type { MergedPolicy } from '../merge.ts';
import type { Toleration } from '../pod.ts';
import { listed, quoted, type Reason } from './reason.ts';

/** What a rule allows; a missing or empty list means any. `TolerationRule` is one. */
export type Rule = { readonly [Part in keyof TolerationRule]?: readonly string[] | undefined };

export class TolerationRules {
  readonly default: readonly Toleration[];
  readonly #all: boolean;
  readonly #rules: readonly Rule[];
  readonly #required: readonly Rule[];
  readonly #requiring: string;
  readonly policies: readonly string[];

  constructor(merged: MergedPolicy) {
    this.default = (merged.default.tolerations ?? []).filter(
      (one, index, all) => all.findIndex((other) => isDeepStrictEqual(one, other)) === index,
    );
    const grants = merged.allowed.flatMap(({ policy, allowed: { tolerations } }) =>
      tolerations === undefined ? [] : [{ policy, tolerations }],
    );
    this.#all = grants.some(({ tolerations }) => tolerations.length === 0);
    this.#required = merged.required.tolerations ?? [];
    this.#requiring = merged.sourceOf('required', 'tolerations');
    this.#rules = [
      ...this.#required,
      ...grants.flatMap(({ tolerations }) => tolerations),
      ...this.default.map(impliedRule),
    ];
    const implied = this.default.length === 0 ? [] : [merged.sourceOf('default', 'tolerations')];
    const requiring = this.#required.length === 0 ? [] : [this.#requiring];
    this.policies = [...new Set([...requiring, ...grants.map(({ policy }) => policy), ...implied])];
  }

  get allowsAllNoSchedule(): boolean {
    return this.#allows({ operator: 'Exists', effect: 'NoSchedule' });
  }

  /** Reasons for a rejection, each with its position: what is not allowed, and what is missing. */
  judge(requested: readonly (readonly [index: number, toleration: Toleration])[]): Reason[] {
    const isMet =
      this.#required.length === 0 ||
      requested.some(([, toleration]) => this.#required.some((rule) => covers(rule, toleration)));
    const expectation = `expected ${listed(this.#required.map(describeRule), 'or')}, which is required`;
    return [
      ...requested.flatMap(([index, toleration]) => this.#judgeOne(toleration, index) ?? []),
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
 * Whether a rule covers a toleration. A toleration without a key matches all keys, without an effect all effects, and
 * with Exists all values. If a rule lists values, other operators than Equal must be listed too.
 */
export function covers(
  { keys = [], operators = [], values = [], effects = [] }: Rule,
  toleration: Toleration,
): boolean {
  const { key, effect } = toleration;
  const operator = toleration.operator || 'Equal';
  return (
    (keys.length === 0 || (isSaid(key) && keys.includes(key))) &&
    (operators.length === 0 || operators.includes(operator)) &&
    (values.length === 0 ||
      ((operator === 'Equal' || operators.length > 0) &&
        (operator === 'Exists' || values.includes(toleration.value ?? '')))) &&
    (effects.length === 0 ||
      (isSaid(effect) ? effects.includes(effect) : EFFECTS.every((one) => effects.includes(one))))
  );
}

function isSaid(value: string | null | undefined): value is string {
  return value !== undefined && value !== null && value !== '';
}

/** The rule that a default implies: exactly itself. */
export function impliedRule({ key, operator, value, effect }: Toleration): Rule {
  return {
    keys: isSaid(key) ? [key] : [],
    operators: [operator || 'Equal'],
    values: operator === 'Exists' ? [] : [value ?? ''],
    effects: isSaid(effect) ? [effect] : [],
  };
}

function describe({ key, operator, value, effect }: Toleration): string {
  const what = isSaid(key) ? quoted(key) : 'every key';
  const how = operator === 'Exists' ? 'with any value' : `${operator || 'Equal'} ${quoted(value ?? '')}`;
  return `${what} ${how}, ${isSaid(effect) ? quoted(effect) : 'every effect'}`;
}

function describeRule({ keys = [], operators = [], values = [], effects = [] }: Rule): string {
  const what = keys.length === 0 ? 'any key' : listed(keys, 'or');
  const how = operators.length === 0 ? '' : ` ${listed(operators, 'or')}`;
  const value = values.length === 0 ? '' : ` ${listed(values, 'or')}`;
  return `${what}${how}${value}, ${effects.length === 0 ? 'any effect' : listed(effects, 'or')}`;
}
