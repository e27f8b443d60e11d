/** Affinities as a pod writes them, in few words. */

interface Expression {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

/** `arch In amd64 arm64`, `zone Exists` */
export function expression(text: string): Expression {
  const [key = '', operator = '', ...values] = text.split(' ');
  return { key, operator, ...(values.length > 0 && { values }) };
}

/** What a pod requires of nodes: alternatives, each with the expressions of one list. */
export function requiring(...terms: readonly (readonly string[])[]) {
  return {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: terms.map((term) => ({ matchExpressions: term.map(expression) })),
      },
    },
  };
}

/** What a pod prefers of nodes. */
export function preferring(...terms: readonly (readonly string[])[]) {
  return {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: terms.map((term) => ({
        weight: 1,
        preference: { matchExpressions: term.map(expression) },
      })),
    },
  };
}

/** Terms that are not looked into, at one time of one kind. */
export function ofPods(
  kind: 'podAffinity' | 'podAntiAffinity',
  time: 'required' | 'preferred',
  ...topologies: readonly string[]
) {
  const terms = topologies.map((topologyKey) => ({ topologyKey }));
  return {
    [kind]: {
      [`${time}DuringSchedulingIgnoredDuringExecution`]:
        time === 'required' ? terms : terms.map((podAffinityTerm) => ({ weight: 1, podAffinityTerm })),
    },
  };
}

/** The spec of a pod with an affinity, as a line of a table. */
export function wants(affinity: unknown): string {
  return `affinity: ${JSON.stringify(affinity)}`;
}

/** The spec of a policy whose `section` has these affinities, as a line of a table. */
export function affinitiesIn(section: 'allowed' | 'required', affinities: unknown): string {
  return `${section}: {affinities: ${JSON.stringify(affinities)}}`;
}
