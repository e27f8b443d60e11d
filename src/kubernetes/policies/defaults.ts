/** Adds the defaults of policies to a pod. */
import { isDeepStrictEqual } from 'node:util';
import type { Cluster, PodOrigin } from './cluster-settings.ts';
import type { Affinity, Pod } from './pod.ts';
import { requestedAffinities } from './rules/requested-affinities.ts';
import type { Rules } from './rules/rules.ts';

type Spec = Pod['spec'];
type Added = Partial<Spec>;

/**
 * The pod with the defaults, or the same object if there is nothing to add. `judges`: the rules of all policies that
 * the pod must satisfy; `defaults` may be one of them.
 */
export function withDefaults(
  pod: Pod,
  defaults: Rules,
  judges: readonly Rules[],
  cluster: Cluster,
  origin: PodOrigin,
): Pod {
  const { spec } = pod;
  const added: Added = {
    ...scheduler(spec, defaults, judges, cluster),
    ...priorityClass(spec, defaults, judges, cluster),
    ...nodeSelector(spec, defaults),
    ...tolerations(spec, defaults, cluster, origin),
    ...affinity(spec, defaults),
  };
  const names = Object.keys(added);
  if (names.length === 0) {
    return pod;
  }
  const completed = { ...spec, ...added };
  for (const name of names.filter((one) => added[one] === undefined)) {
    delete completed[name];
  }
  return { ...pod, spec: completed };
}

/**
 * Whether the pod itself chose a scheduler or a priority class. A name that the API server might have filled in
 * counts as chosen if one policy lists it and all policies accept it.
 */
function isSaid(
  field: 'schedulerName' | 'priorityClassName',
  spec: Spec,
  judges: readonly Rules[],
  { filledIn }: Cluster,
): boolean {
  const name = spec[field] || undefined;
  if (name === undefined || name !== filledIn[field]) {
    return name !== undefined;
  }
  const rules = judges.map((judge) => judge.names[field]);
  return rules.every((one) => one.accepts(name)) && rules.some((one) => one.lists(name));
}

function scheduler(spec: Spec, { names }: Rules, judges: readonly Rules[], cluster: Cluster): Added {
  const { default: added } = names.schedulerName;
  return added === undefined || added === spec.schedulerName || isSaid('schedulerName', spec, judges, cluster)
    ? {}
    : { schedulerName: added };
}

/**
 * Removes the fields that the API server computed from another priority class: it rejects a pod whose fields do not
 * match its class. Source: its admission plugin Priority.
 */
function priorityClass(spec: Spec, { names }: Rules, judges: readonly Rules[], cluster: Cluster): Added {
  const { default: added } = names.priorityClassName;
  if (
    added === undefined ||
    added === spec.priorityClassName ||
    isSaid('priorityClassName', spec, judges, cluster)
  ) {
    return {};
  }
  return {
    priorityClassName: added,
    ...('priority' in spec && { priority: undefined }),
    ...('preemptionPolicy' in spec && { preemptionPolicy: undefined }),
  };
}

function nodeSelector({ nodeSelector: there }: Spec, { nodeSelectors }: Rules): Added {
  const missing = [...nodeSelectors.default].filter(([label]) => !Object.hasOwn(there ?? {}, label));
  return missing.length === 0 ? {} : { nodeSelector: { ...there, ...Object.fromEntries(missing) } };
}

function tolerations(spec: Spec, rules: Rules, cluster: Cluster, origin: PodOrigin): Added {
  const there = spec.tolerations ?? [];
  const { default: defaults } = rules.tolerations;
  if (defaults.length === 0 || there.some((one) => !cluster.hasAdded(one, origin))) {
    return {};
  }
  const missing = defaults.filter((one) => !there.some((other) => isDeepStrictEqual(one, other)));
  return missing.length === 0 ? {} : { tolerations: [...there, ...missing] };
}

/** Merges by kind: affinities to other pods leave room for a default affinity to nodes. */
function affinity({ affinity: there }: Spec, { affinities }: Rules): Added {
  const requested = new Set(requestedAffinities(there ?? {}).map(({ place }) => place));
  const missing = requestedAffinities(affinities.default).filter(({ place }) => !requested.has(place));
  if (missing.length === 0) {
    return {};
  }
  const completed: Record<string, Record<string, unknown>> = { ...(there as object) };
  const defaults = affinities.default as Readonly<Record<string, Record<string, unknown>>>;
  for (const { place } of missing) {
    const [kind = '', time = ''] = place.split('.');
    completed[kind] = { ...completed[kind], [time]: defaults[kind]?.[time] };
  }
  return { affinity: completed as Affinity };
}
