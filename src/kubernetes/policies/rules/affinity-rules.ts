/**
 * Rules for affinities. Node affinities are checked expression by expression. Affinities to other pods are
 * checked as a whole: the proposal can forbid them, but has no rules for their content.
 */
import { isDeepStrictEqual } from 'node:util';
import { isMapping, type Mapping } from '../../../base/yaml/tree.ts';
import {
  AFFINITY_TIMES,
  type AffinityTime,
  type AffinityRules as AllowedAffinities,
  type TermRule,
} from '../documents/policy-schema.ts';
import type { MergedPolicy } from '../merge.ts';
import type { Affinity, Expression, NodeSelectorTerm } from '../pod.ts';
import {
  allowedTerms,
  allows,
  describe,
  describeRule,
  describeRules,
  expressionRules,
  holds,
  impliedRule,
  isNodeName,
  KINDS,
  type Kind,
  NODE_NAME,
  PLACES,
  type RequestedAffinity,
  type Rule,
  requestedAffinities,
  rulesIn,
} from './expression-rules.ts';
import { listed, type Reason } from './reason.ts';

const [REQUIRED, PREFERRED] = AFFINITY_TIMES;

const NODE_PLACES: readonly string[] = AFFINITY_TIMES.map((time) => `nodeAffinity.${time}`);

/** What is allowed at one place, such as `nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution`. */
interface AllowedAt {
  all: boolean;
  readonly expressions: Rule[];
  readonly fields: Rule[];
  /** Default terms about other pods, as `comparableTerm` has them. */
  readonly terms: unknown[];
  readonly policies: Set<string>;
}

interface AffinityOptions {
  /** A DaemonSet created the pod for one node: its controller, not the user, set the node's name. */
  readonly isForOneNode?: boolean;
}

export class AffinityRules {
  readonly default: Affinity;
  readonly #places = new Map<string, AllowedAt>();
  readonly #requirements: readonly Requirement[];
  /** Includes unknown kinds. */
  #all = false;

  constructor(merged: MergedPolicy) {
    this.default = merged.default.affinity ?? {};
    for (const { policy, allowed } of merged.allowed) {
      if (allowed.affinities !== undefined) {
        this.#allow(allowed.affinities, policy);
      }
    }
    this.#requirements = requirements(merged);
    for (const { kind, time, terms, policy } of this.#requirements) {
      for (const one of time === undefined ? AFFINITY_TIMES : [time]) {
        const place = this.#place(kind, one, policy);
        place.all ||= terms.length === 0;
        place.expressions.push(...terms.flat());
      }
    }
    this.#allowDefault(merged);
  }

  /** Reasons for a rejection: what is not allowed, and what is missing. */
  judge(affinity: Affinity, options: AffinityOptions): Reason[] {
    const requested = requestedAffinities(affinity);
    return [
      ...(this.#all ? [] : requested.flatMap(({ place, terms }) => this.#judgePlace(place, terms, options))),
      ...this.#requirements
        .filter(({ kind, time }) => !(options.isForOneNode === true && isOfTemplate(kind, time, requested)))
        .flatMap((requirement) => unmet(requirement, requested)),
    ];
  }

  /** What is allowed at one place, and by which policies. */
  at(kind: Kind, time: AffinityTime): { readonly all: boolean; readonly policies: readonly string[] } {
    const place = this.#places.get(`${kind}.${time}`);
    return { all: this.#all || place?.all === true, policies: [...(place?.policies ?? [])] };
  }

  judgeNode(name: string): Reason | undefined {
    const { all, policies } = this.at('nodeAffinity', REQUIRED);
    const requested = { key: NODE_NAME, operator: 'In', values: [name] };
    const rules = this.#places.get(`nodeAffinity.${REQUIRED}`)?.fields ?? [];
    if (all || rules.some((rule) => allows(rule, requested))) {
      return undefined;
    }
    const expected = rules.length === 0 ? 'nothing' : describeRules(rules);
    return { field: 'nodeName', expectation: `expected ${expected}, got ${describe(requested)}`, policies };
  }

  #place(kind: Kind, time: AffinityTime, policy: string): AllowedAt {
    const name = `${kind}.${time}`;
    const place = this.#places.get(name) ?? {
      all: false,
      expressions: [],
      fields: [],
      terms: [],
      policies: new Set(),
    };
    place.policies.add(policy);
    this.#places.set(name, place);
    return place;
  }

  #allow(rules: AllowedAffinities, policy: string): void {
    this.#all ||= Object.keys(rules).length === 0;
    for (const { kind, time } of PLACES) {
      const terms = allowedTerms(rules, { kind, time });
      if (terms !== undefined) {
        const place = this.#place(kind, time, policy);
        place.all ||= terms.length === 0;
        place.expressions.push(...expressionRules(terms, 'matchExpressions'));
        place.fields.push(...expressionRules(terms, 'matchFields'));
      }
    }
  }

  #allowDefault(merged: MergedPolicy): void {
    for (const { place, terms } of requestedAffinities(this.default)) {
      const [kind, time] = place.split('.') as [Kind, AffinityTime];
      const allowed = this.#place(kind, time, merged.sourceOf('default', 'affinity', kind, time));
      if (kind !== 'nodeAffinity') {
        allowed.terms.push(...terms.map(comparableTerm));
        continue;
      }
      for (const term of terms as readonly NodeSelectorTerm[]) {
        allowed.expressions.push(...(term.matchExpressions ?? []).map(impliedRule));
        allowed.fields.push(...(term.matchFields ?? []).map(impliedRule));
      }
    }
  }

  #judgePlace(name: string, terms: readonly unknown[], { isForOneNode }: AffinityOptions): Reason[] {
    const place = this.#places.get(name);
    if (place?.all === true) {
      return [];
    }
    const policies = [...(place?.policies ?? [])];
    const refuse = (at: string, expected: string, got: string): Reason => ({
      field: `affinity.${name}${at}`,
      expectation: `expected ${expected}, got ${got}`,
      policies,
    });
    if (!NODE_PLACES.includes(name)) {
      return terms.flatMap((term, index) => {
        const asked = comparableTerm(term);
        return place?.terms.some((one) => isDeepStrictEqual(one, asked)) === true
          ? []
          : [refuse(`[${index}]`, place === undefined ? 'nothing' : 'the default', 'another term')];
      });
    }
    return (terms as readonly NodeSelectorTerm[]).flatMap((term, index) => {
      const at = name.endsWith(REQUIRED) ? `.nodeSelectorTerms[${index}]` : `[${index}].preference`;
      const expressions = term.matchExpressions ?? [];
      const fields = (term.matchFields ?? []).filter(
        (field) => !(isForOneNode === true && isNodeName(field)),
      );
      if (place === undefined && isForOneNode !== true) {
        return [refuse(at, 'nothing', 'a term')];
      }
      const judge = (list: string, rules: readonly Rule[], requested: readonly Expression[]) => {
        const refused = [...requested.entries()].filter(
          ([, expression]) => !rules.some((rule) => allows(rule, expression)),
        );
        const expected = refused.length === 0 || rules.length === 0 ? 'nothing' : describeRules(rules);
        return refused.map(([position, expression]) =>
          refuse(`${at}.${list}[${position}]`, expected, describe(expression)),
        );
      };
      return [
        ...judge('matchExpressions', place?.expressions ?? [], expressions),
        ...judge('matchFields', place?.fields ?? [], fields),
      ];
    });
  }
}

/** A requirement at one place, or for any place of a kind. Without terms, anything satisfies it. */
interface Requirement {
  readonly kind: Kind;
  readonly time: AffinityTime | undefined;
  readonly terms: readonly (readonly Rule[])[];
  readonly policy: string;
}

function requirements(merged: MergedPolicy): Requirement[] {
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
function unmet(
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
 * Whether the DaemonSet controller replaced the required affinity by the node's name. The template, which had
 * it, is checked separately.
 */
function isOfTemplate(
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

/**
 * A term in the one form in which a policy's and a pod's are compared. The API server drops empty lists. After
 * mutating webhooks, and since Kubernetes 1.31, it merges the labels of the pod that `matchLabelKeys` names into
 * the selector.
 */
export function comparableTerm(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(comparableTerm);
  }
  return isMapping(value) ? comparableMembers(value) : value;
}

function comparableMembers(value: Mapping): Mapping {
  const { labelSelector: selector } = value;
  const own =
    isMapping(selector) && Array.isArray(selector.matchExpressions)
      ? {
          ...value,
          labelSelector: { ...selector, matchExpressions: unmerged(selector.matchExpressions, value) },
        }
      : value;
  return Object.fromEntries(
    Object.entries(own)
      .filter(([name, one]) => !isEmpty(one, name))
      .map(([name, one]) => [name, comparableTerm(one)]),
  );
}

/** An empty `labelSelector` or `namespaceSelector` selects everything, a missing one nothing. */
function isEmpty(value: unknown, name: string): boolean {
  return Array.isArray(value)
    ? value.length === 0
    : name === 'matchLabels' && isMapping(value) && Object.keys(value).length === 0;
}

/** Expressions without those that were merged, whatever their value: users choose the labels of their pods. */
function unmerged(
  expressions: readonly unknown[],
  { matchLabelKeys, mismatchLabelKeys }: Mapping,
): unknown[] {
  // Sets, since a pod may have very many of both.
  const keys = new Map<unknown, ReadonlySet<unknown>>([
    ['In', new Set(Array.isArray(matchLabelKeys) ? matchLabelKeys : [])],
    ['NotIn', new Set(Array.isArray(mismatchLabelKeys) ? mismatchLabelKeys : [])],
  ]);
  return expressions.filter((one) => {
    const { key, operator, values } = isMapping(one) ? one : {};
    return !(keys.get(operator)?.has(key) === true && Array.isArray(values) && values.length === 1);
  });
}
