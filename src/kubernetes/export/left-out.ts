/** What an export to ValidatingAdmissionPolicies omits. */
import { formatPath, isMapping } from '../../base/yaml/tree.ts';
import { DEFAULT_SCHEDULER } from '../policies/cluster-settings.ts';
import { mergePolicies, partsOf } from '../policies/merge.ts';
import type { SchedulingPolicy } from '../policies/policy.ts';
import { allowedTerms, KINDS, type Kind, PLACES } from '../policies/rules/expression-rules.ts';

/** Defaults: a ValidatingAdmissionPolicy changes nothing. Sorted by policy. */
export function defaultsLeftOut(policies: readonly SchedulingPolicy[]): string[] {
  return policies.flatMap((policy) =>
    partsOf(mergePolicies([policy], 'first'))
      .filter(({ path }) => path[0] === 'default')
      .map(
        ({ path, value }) =>
          `policy ${policy.name}: ${formatPath(path)} = ${JSON.stringify(value)} is not added: ${consequence(policy, path.map(String), value)}`,
      ),
  );
}

/** The effect on a pod that would have got the default. */
function consequence(
  policy: SchedulingPolicy,
  [, field, name = '', time = '']: readonly string[],
  value: unknown,
): string {
  const { required } = policy;
  switch (field) {
    case 'schedulerName':
      return accepts(policy, DEFAULT_SCHEDULER)
        ? `pods that name no scheduler get ${DEFAULT_SCHEDULER}`
        : `pods that name no scheduler get ${DEFAULT_SCHEDULER} and are refused`;
    case 'priorityClassName':
      return outcome(required.priorityClassNames !== undefined, 'pods without a priority class');
    case 'nodeSelector':
      return outcome(
        name !== '' && Object.hasOwn(required.nodeSelectors ?? {}, name),
        'pods without this label',
      );
    case 'tolerations':
      return outcome(required.tolerations !== undefined, 'pods without tolerations');
    default:
      return [
        outcome(requiresAffinity(policy, name, time), 'pods without such an affinity'),
        ...(Array.isArray(value) && value.some(isCompleted) && !allowsAffinity(policy, name, time)
          ? ['pods with it are refused, because Kubernetes completes its selector']
          : []),
      ].join('; ');
  }
}

function outcome(isRequired: boolean, pods: string): string {
  return isRequired ? `${pods} are refused` : `${pods} stay without`;
}

function accepts({ required, allowed }: SchedulingPolicy, name: string): boolean {
  const names = required.schedulerNames ?? allowed.schedulerNames;
  return (
    names !== undefined &&
    (names.includes(name) || (names.length === 0 && required.schedulerNames === undefined))
  );
}

function requiresAffinity({ required }: SchedulingPolicy, kind: string, time: string): boolean {
  const ofKind = Object.hasOwn(KINDS, kind) ? required.affinities?.[KINDS[kind as Kind]] : undefined;
  return ofKind !== undefined && (Object.keys(ofKind).length === 0 || Object.hasOwn(ofKind, time));
}

function allowsAffinity(policy: SchedulingPolicy, kind: string, time: string): boolean {
  const { affinities } = policy.allowed;
  const place = PLACES.find((one) => one.kind === kind && one.time === time);
  return (
    requiresAffinity(policy, kind, time) ||
    (affinities !== undefined && place !== undefined && allowedTerms(affinities, place) !== undefined)
  );
}

/** Policies in audit mode: a set of policies has one mode. */
export function auditLeftOut(names: readonly string[]): string[] {
  return names.map(
    (name) =>
      `policy ${name} is in audit mode and is left out: accounts that may use no other policy are refused`,
  );
}

/** Whether the API server completes the selector of such a term. */
function isCompleted(term: unknown): boolean {
  const { podAffinityTerm = term } = isMapping(term) ? term : {};
  const { matchLabelKeys, mismatchLabelKeys } = isMapping(podAffinityTerm) ? podAffinityTerm : {};
  return [matchLabelKeys, mismatchLabelKeys].some((keys) => Array.isArray(keys) && keys.length > 0);
}
