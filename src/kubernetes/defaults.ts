/** What the defaults of policies add to a pod where it says nothing. */
import { isDeepStrictEqual } from 'node:util';
import type { Cluster, PodOrigin } from './cluster.ts';
import type { Affinity, Pod } from './pod.ts';
import { askedIn } from './rules/asked-affinities.ts';
import type { Rules } from './rules/rules.ts';

type Spec = Pod['spec'];
type Added = Partial<Spec>;

/**
 * The pod with the defaults; the same one where there is nothing to add. `judges`: all rules that the pod must fit, of which
 * `defaults` may be one.
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
 * Whether the pod itself names a scheduler or a priority class. Nobody can tell who has named the one that the API server
 * fills in: it counts as said where a policy lists it and all accept it.
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

/** What the API server has computed from another class or from none, it refuses beside one. Source: its admission plugin Priority. */
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

/** Place by place: who says something about other pods says nothing about nodes. */
function affinity({ affinity: there }: Spec, { affinities }: Rules): Added {
  const asked = new Set(askedIn(there ?? {}).map(({ place }) => place));
  const missing = askedIn(affinities.default).filter(({ place }) => !asked.has(place));
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
