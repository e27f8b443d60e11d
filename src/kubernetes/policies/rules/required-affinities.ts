/** Rules for the affinities that a pod must have. */

import { AFFINITY_TIMES, type AffinityTime, type TermRule } from '../documents/policy-schema.ts';
import type { MergedPolicy } from '../merge.ts';
import type { NodeSelectorTerm } from '../pod.ts';
import { describeRule, holds, type Rule, rulesIn } from './expression-rules.ts';
import { listed, type Reason } from './reason.ts';
import { isNodeName, KINDS, type Kind, type RequestedAffinity } from './requested-affinities.ts';

const [REQUIRED, PREFERRED] = AFFINITY_TIMES;

/** A requirement at one place, or for any place of a kind. Without terms, anything satisfies it. */
export interface Requirement {
  readonly kind: Kind;
  readonly time: AffinityTime | undefined;
  readonly terms: readonly (readonly Rule[])[];
  readonly policy: string;
}

export function requirements(merged: MergedPolicy): Requirement[] {
  const { affinities = {} } = merged.required;
  return (Object.entries(KINDS) as [Kind, (typeof KINDS)[Kind]][]).flatMap(([kind, plural]) => {
    const ofKind = affinities[plural];
    if (ofKind === undefined) {
      return [];
    }
    const times = AFFINITY_TIMES.filter((time) => ofKind[time] !== undefined);
    return (times.length === 0 ? [undefined] : times).map((time): Requirement => {
      const ofTime: { nodeSelectorTerms?: TermRule[] | undefined } | undefined =
        time === undefined ? undefined : ofKind[time];
      return {
        kind,
        time,
        terms: (ofTime?.nodeSelectorTerms ?? []).map(({ matchExpressions }) => rulesIn(matchExpressions)),
        policy: merged.sourceOf('required', 'affinities', plural, ...(time === undefined ? [] : [time])),
      };
    });
  });
}

/**
 * The scheduler may choose any of the required terms, so each must satisfy the requirement. For preferences, one is
 * enough.
 */
export function unmet(
  { kind, time, terms, policy }: Requirement,
  requested: readonly RequestedAffinity[],
): Reason[] {
  const found = requested.filter(
    ({ place }) => place === `${kind}.${time}` || (time === undefined && place.startsWith(`${kind}.`)),
  );
  const field = `affinity.${kind}${time === undefined ? '' : `.${time}`}`;
  const policies = [policy];
  if (found.length === 0) {
    return [{ field, expectation: `expected ${describeTerms(terms)}, got nothing`, policies }];
  }
  if (terms.length === 0) {
    return [];
  }
  const there = found.flatMap((one) => one.terms) as NodeSelectorTerm[];
  const isMet = (term: NodeSelectorTerm) =>
    terms.some((rules) =>
      rules.every((rule) => (term.matchExpressions ?? []).some((expression) => holds(rule, expression))),
    );
  const isEnough = time === REQUIRED ? there.every(isMet) : there.some(isMet);
  if (isEnough) {
    return [];
  }
  const where = time === REQUIRED ? ' in each of the terms, which are alternatives' : '';
  return [{ field, expectation: `expected ${describeTerms(terms)}${where}`, policies }];
}

function describeTerms(terms: readonly (readonly Rule[])[]): string {
  return terms.length === 0
    ? 'a term'
    : listed(
        terms.map((rules) => rules.map(describeRule).join(' with ')),
        'or',
      );
}

/**
 * Whether the DaemonSet controller replaced the required affinity by the name of the node. The template, which had
 * it, is judged separately.
 */
export function isOfTemplate(
  kind: Kind,
  time: AffinityTime | undefined,
  requested: readonly RequestedAffinity[],
): boolean {
  const terms = requested.find(({ place }) => place === `nodeAffinity.${REQUIRED}`)?.terms ?? [];
  return (
    kind === 'nodeAffinity' &&
    time !== PREFERRED &&
    terms.length > 0 &&
    (terms as readonly NodeSelectorTerm[]).every(
      ({ matchExpressions, matchFields }) =>
        (matchExpressions ?? []).length === 0 && matchFields?.length === 1 && matchFields.every(isNodeName),
    )
  );
}
