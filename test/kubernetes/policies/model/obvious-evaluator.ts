/**
 * What becomes of a pod, said once more: slowly, from the documents as they are written, with nothing of src/kubernetes.
 * Source: the proposal "Scheduling Policy" of Kubernetes, and how docs/kubernetes.md reads it.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  type Applying,
  alone,
  merge,
  type PolicyDocument,
  read,
  type Strategy,
} from '../documents/obvious-documents.ts';
import {
  askedAt,
  isAffinityAllowed,
  isAffinityEnough,
  type PodAffinities,
  REQUIRED,
} from './obvious-affinities.ts';

export interface ObviousPod {
  readonly spec: PodSpec;
}

interface PodSpec {
  readonly schedulerName?: string | null;
  readonly nodeName?: string | null;
  readonly priorityClassName?: string | null;
  readonly priority?: number | null;
  readonly preemptionPolicy?: string | null;
  readonly nodeSelector?: Labels | null;
  readonly tolerations?: readonly PodToleration[] | null;
  readonly affinity?: PodAffinities | null;
}

type Labels = Readonly<Record<string, string>>;

interface PodToleration {
  readonly key?: string | null;
  readonly operator?: string | null;
  readonly value?: string | null;
  readonly effect?: string | null;
  readonly tolerationSeconds?: number | null;
}

/** An absent or empty part means any. */
interface TolerationRule {
  readonly keys?: readonly string[];
  readonly operators?: readonly string[];
  readonly values?: readonly string[];
  readonly effects?: readonly string[];
}

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

interface ObviousOptions {
  readonly addDefaults: boolean;
  readonly isForOneNode?: boolean;
}

/** Whether the pod may be, and what becomes of it. */
export function evaluate(
  documents: readonly PolicyDocument[],
  strategy: Strategy,
  pod: ObviousPod,
  options: ObviousOptions,
): { readonly allowed: boolean; readonly pod: ObviousPod } {
  const policies = [...documents].sort((a, b) => (a.name < b.name ? -1 : 1)).map(({ spec }) => read(spec));
  const together = merge(policies, strategy);
  const judges = strategy === 'intersection' && policies.length > 0 ? policies.map(alone) : [together];
  for (const judge of judges) {
    const withItsDefaults = options.addDefaults ? complete(pod, judge, [judge], options) : pod;
    if (!isAllowed(withItsDefaults, judge, options)) {
      return { allowed: false, pod };
    }
  }
  const completed = options.addDefaults ? complete(pod, together, judges, options) : pod;
  const allowed = judges.every((judge) => isAllowed(completed, judge, options));
  return { allowed, pod: allowed ? completed : pod };
}

function complete(
  { spec, ...rest }: ObviousPod,
  applying: Applying,
  judges: readonly Applying[],
  options: ObviousOptions,
): ObviousPod {
  const completed: { -readonly [Field in keyof PodSpec]: PodSpec[Field] } = { ...spec };
  const scheduler = applying.default.schedulerName as string | undefined;
  const isTheApiServers =
    spec.schedulerName === 'default-scheduler' &&
    !(
      judges.every((judge) => isNameAllowed('scheduler', 'default-scheduler', judge)) &&
      judges.some((judge) => isDefaultSchedulerListed(judge))
    );
  if (scheduler !== undefined && (!spec.schedulerName || isTheApiServers)) {
    completed.schedulerName = scheduler;
  }
  const priorityClass = applying.default.priorityClassName as string | undefined;
  if (priorityClass !== undefined && !spec.priorityClassName) {
    completed.priorityClassName = priorityClass;
    delete completed.priority;
    delete completed.preemptionPolicy;
  }
  for (const [label, value] of Object.entries((applying.default.nodeSelector ?? {}) as Labels)) {
    if (!Object.hasOwn(spec.nodeSelector ?? {}, label)) {
      completed.nodeSelector = { ...completed.nodeSelector, [label]: value };
    }
  }
  if ((spec.tolerations ?? []).every((one) => isOfTheSystem(one, options))) {
    for (const toleration of (applying.default.tolerations ?? []) as PodToleration[]) {
      const there = completed.tolerations ?? [];
      if (!there.some((one) => isDeepStrictEqual(one, toleration))) {
        completed.tolerations = [...there, toleration];
      }
    }
  }
  for (const [kind, times] of Object.entries((applying.default.affinity ?? {}) as PodAffinities)) {
    for (const [time, value] of Object.entries(times ?? {})) {
      if (askedAt(spec.affinity, kind, time).length === 0) {
        const ofKind = { ...completed.affinity?.[kind], [time]: value };
        completed.affinity = { ...completed.affinity, [kind]: ofKind };
      }
    }
  }
  return { ...rest, spec: completed };
}

/** With all others it would not be the choice of the pod. */
function isDefaultSchedulerListed({ required, allowed, default: defaults }: Applying): boolean {
  const must = required.schedulerNames as string[] | undefined;
  const lists = (allowed.schedulerNames ?? []) as string[][];
  return must !== undefined
    ? must.includes('default-scheduler')
    : defaults.schedulerName === 'default-scheduler' ||
        lists.some((list) => list.includes('default-scheduler'));
}

function isAllowed({ spec }: ObviousPod, applying: Applying, options: ObviousOptions): boolean {
  const isForOneNode = options.isForOneNode === true;
  const asked = (spec.tolerations ?? []).filter((one) => !isOfTheSystem(one, options));
  const mustTolerate = applying.required.tolerations as TolerationRule[] | undefined;
  return (
    isNameAllowed('scheduler', spec.schedulerName, applying) &&
    isNameAllowed('priorityClass', spec.priorityClassName, applying) &&
    isNodeAllowed(spec.nodeName, applying) &&
    areLabelsAllowed(spec.nodeSelector ?? {}, applying) &&
    asked.every((one) => isTolerationAllowed(one, applying)) &&
    (mustTolerate === undefined ||
      asked.some((one) => mustTolerate.some((rule) => isTolerationWithin(one, rule)))) &&
    isAffinityAllowed(spec.affinity ?? {}, applying, isForOneNode) &&
    isAffinityEnough(spec.affinity ?? {}, applying, isForOneNode)
  );
}

function isNameAllowed(
  what: 'scheduler' | 'priorityClass',
  name: string | null | undefined,
  { required, allowed, default: defaults }: Applying,
): boolean {
  const must = required[`${what}Names`] as string[] | undefined;
  if (must !== undefined) {
    return must.includes(name ?? '');
  }
  const lists = (allowed[`${what}Names`] ?? []) as string[][];
  return (
    !name ||
    name === defaults[`${what}Name`] ||
    lists.some((list) => list.length === 0 || list.includes(name))
  );
}

/** Such a pod passes by every scheduler and every taint, and asks for that node by its name. */
function isNodeAllowed(name: string | null | undefined, applying: Applying): boolean {
  const { required, allowed } = applying;
  const lists = (allowed.schedulerNames ?? []) as string[][];
  const areSchedulersPassed =
    required.schedulerNames === undefined && lists.some((list) => list.length === 0);
  const field = { key: 'metadata.name', operator: 'In', values: [name ?? ''] };
  const affinity = { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [{ matchFields: [field] }] } } };
  const taints = { operator: 'Exists', effect: 'NoSchedule' };
  return (
    !name ||
    (areSchedulersPassed &&
      isAffinityAllowed(affinity, applying, false) &&
      isTolerationAllowed(taints, applying))
  );
}

function areLabelsAllowed(labels: Labels, { required, allowed, default: defaults }: Applying): boolean {
  type Rules = Readonly<Record<string, readonly string[]>>;
  const must = (required.nodeSelectors ?? {}) as Rules;
  const may = (allowed.nodeSelectors ?? []) as Rules[];
  const added = (defaults.nodeSelector ?? {}) as Labels;
  const fits = (values: readonly string[], value: string) => values.length === 0 || values.includes(value);
  const own = <Value>(mapping: Readonly<Record<string, Value>>, name: string): Value | undefined =>
    Object.hasOwn(mapping, name) ? mapping[name] : undefined;
  const isThere = Object.keys(must).every((label) => own(labels, label) !== undefined);
  const isEachAllowed = Object.entries(labels).every(([label, value]) => {
    const values = own(must, label);
    return values !== undefined
      ? fits(values, value)
      : own(added, label) === value ||
          may.some((rules) => Object.keys(rules).length === 0 || fits(own(rules, label) ?? ['\n'], value));
  });
  return isThere && isEachAllowed;
}

/** With the defaults of `[kubernetes] system_tolerations` and `daemon_set_tolerations`. */
function isOfTheSystem(
  { key, operator, effect, tolerationSeconds }: PodToleration,
  { isForOneNode = false }: ObviousOptions,
): boolean {
  const seconds = tolerationSeconds ?? undefined;
  const isGone = key === 'node.kubernetes.io/not-ready' || key === 'node.kubernetes.io/unreachable';
  const pressures = [
    'disk-pressure',
    'memory-pressure',
    'pid-pressure',
    'unschedulable',
    'network-unavailable',
  ];
  const isPressed = pressures.some((pressure) => key === `node.kubernetes.io/${pressure}`);
  return (
    operator === 'Exists' &&
    ((isGone && effect === 'NoExecute' && seconds === 300) ||
      (isForOneNode && isGone && effect === 'NoExecute' && seconds === undefined) ||
      (isForOneNode && isPressed && effect === 'NoSchedule' && seconds === undefined))
  );
}

function isTolerationAllowed(toleration: PodToleration, applying: Applying): boolean {
  const { key, value, effect } = toleration;
  const operator = toleration.operator || 'Equal';
  const lists = (applying.allowed.tolerations ?? []) as TolerationRule[][];
  const must = (applying.required.tolerations ?? []) as TolerationRule[];
  const isCovered = (rule: TolerationRule) => isTolerationWithin(toleration, rule);
  const isAsDefault = (one: PodToleration) =>
    (!one.key || one.key === key) &&
    (one.operator || 'Equal') === operator &&
    (operator === 'Exists' || (one.value ?? '') === (value ?? '')) &&
    (!one.effect || one.effect === effect);
  return (
    must.some(isCovered) ||
    lists.some((rules) => rules.length === 0 || rules.some(isCovered)) ||
    ((applying.default.tolerations ?? []) as PodToleration[]).some(isAsDefault)
  );
}

function isTolerationWithin(
  toleration: PodToleration,
  { keys = [], operators = [], values = [], effects = [] }: TolerationRule,
): boolean {
  const { key, value, effect } = toleration;
  const operator = toleration.operator || 'Equal';
  const keyFits = keys.length === 0 || keys.includes(key || '\n');
  const operatorFits = operators.length === 0 || operators.includes(operator);
  const isNamed = operator === 'Equal' || operators.includes(operator);
  const valueFits =
    values.length === 0 || (isNamed && (operator === 'Exists' || values.includes(value ?? '')));
  const asked = effect ? [effect] : EFFECTS;
  const effectFits = effects.length === 0 || asked.every((one) => effects.includes(one));
  return keyFits && operatorFits && valueFits && effectFits;
}
