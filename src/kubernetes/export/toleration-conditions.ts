/** The rules of `TolerationRules` and of `Cluster` about tolerations as CEL. */
import { SYSTEM_TOLERATION_PATTERN } from '../policies/cluster-settings.ts';
import { EFFECTS } from '../policies/documents/schema-helpers.ts';
import type { Toleration } from '../policies/pod.ts';
import { covers, impliedRule, type Rule } from '../policies/rules/toleration-rules.ts';
import {
  and,
  atom,
  type Cel,
  constant,
  equals,
  every,
  FALSE,
  isOneOf,
  not,
  or,
  relation,
  some,
  TRUE,
} from './cel.ts';
import type { UsablePolicies } from './usable-policies.ts';

/** The tolerations that the cluster has not added. */
const REQUESTED = 'variables.tolerations';

/** Whether each toleration is allowed. */
export function tolerationsCondition(policies: UsablePolicies): Cel {
  return every(
    REQUESTED,
    't',
    anyRule(policies, (rules) => or(...rules.map(coversOne))),
  );
}

/** A condition on the rules of what is allowed, required or added. */
function anyRule(policies: UsablePolicies, isOfOne: (rules: readonly Rule[]) => Cel): Cel {
  return or(
    policies.allows('tolerations', (rules) => (rules.length === 0 ? TRUE : isOfOne(rules))),
    policies.first('required', ['tolerations'], isOfOne, FALSE),
    policies.first<readonly Toleration[]>(
      'default',
      ['tolerations'],
      (added) => isOfOne(added.map(impliedRule)),
      FALSE,
    ),
  );
}

/** Whether a toleration is one of the required ones. */
export function requiredTolerationsCondition(policies: UsablePolicies): Cel {
  return policies.first<readonly Rule[]>(
    'required',
    ['tolerations'],
    (rules) => some(REQUESTED, 't', or(...rules.map(coversOne))),
    TRUE,
  );
}

/** Whether tolerating every NoSchedule taint is allowed. */
export function allowsAllNoSchedule(policies: UsablePolicies): Cel {
  return anyRule(policies, (rules) =>
    constant(rules.some((rule) => covers(rule, { operator: 'Exists', effect: 'NoSchedule' }))),
  );
}

/** Whether the toleration `t` is exactly one of these, in the notation of `system_tolerations`. */
export function isExactly(written: readonly string[]): Cel {
  return or(
    ...written.map((text) => {
      const [, key = '', value, effect = '', seconds] = SYSTEM_TOLERATION_PATTERN.exec(text) ?? [];
      return and(
        is('key', key),
        value === undefined
          ? is('operator', 'Exists')
          : and(isOneOfOrUnset('operator', ['', 'Equal']), is('value', value)),
        is('effect', effect),
        seconds === undefined ? not(atom('has(t.tolerationSeconds)')) : lasts(Number(seconds)),
      );
    }),
  );
}

/** A number that no toleration can have is omitted: it would not be CEL. */
function lasts(seconds: number): Cel {
  return Number.isSafeInteger(seconds)
    ? and(atom('has(t.tolerationSeconds)'), relation(`t.tolerationSeconds == ${seconds}`))
    : FALSE;
}

function coversOne({ keys = [], operators = [], values = [], effects = [] }: Rule): Cel {
  const isExists = is('operator', 'Exists');
  return and(
    keys.length === 0 ? TRUE : and(atom('has(t.key)'), isOneOf('t.key', keys)),
    operators.length === 0
      ? TRUE
      : isOneOfOrUnset('operator', operators.includes('Equal') ? ['', ...operators] : operators),
    values.length === 0
      ? TRUE
      : and(
          operators.length === 0 ? isOneOfOrUnset('operator', ['', 'Equal']) : TRUE,
          or(isExists, isOneOfOrUnset('value', values)),
        ),
    effects.length === 0
      ? TRUE
      : EFFECTS.every((one) => effects.includes(one))
        ? isOneOfOrUnset('effect', ['', ...effects])
        : and(atom('has(t.effect)'), isOneOf('t.effect', effects)),
  );
}

/** An unset field is the empty text. */
function is(field: string, text: string): Cel {
  return text === ''
    ? isOneOfOrUnset(field, [text])
    : and(atom(`has(t.${field})`), equals(`t.${field}`, text));
}

function isOneOfOrUnset(field: string, texts: readonly string[]): Cel {
  const isListed = isOneOf(`t.${field}`, texts);
  return texts.includes('')
    ? or(not(atom(`has(t.${field})`)), isListed)
    : and(atom(`has(t.${field})`), isListed);
}
