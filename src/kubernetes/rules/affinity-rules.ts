/**
 * Which affinities a pod may, must and by default does have. Those to nodes are judged expression by expression, those to
 * other pods as a whole: the proposal means to keep them from being used, not to look into them.
 */
import { isDeepStrictEqual } from 'node:util';
import type { MergedPolicy } from '../merge.ts';
import type { Affinity, Expression, NodeSelectorTerm } from '../pod.ts';
import {
  AFFINITY_TIMES,
  type AffinityTime,
  type AffinityRules as AllowedAffinities,
  type TermRule,
} from '../policy-schema.ts';
import {
  allows,
  describe,
  describeRule,
  describeRules,
  holds,
  impliedRule,
  type Rule,
  rulesIn,
} from './expression-rules.ts';
import { listed, type Reason } from './reason.ts';

const [REQUIRED, PREFERRED] = AFFINITY_TIMES;

/** The kinds as a pod writes them, and as a policy does. */
const KINDS = {
  nodeAffinity: 'nodeAffinities',
  podAffinity: 'podAffinities',
  podAntiAffinity: 'podAntiAffinities',
} as const;

type Kind = keyof typeof KINDS;

/** Those whose terms are looked into. */
const NODE_PLACES: readonly string[] = AFFINITY_TIMES.map((time) => `nodeAffinity.${time}`);

/** What may stand at one place, such as `nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution`. */
interface Place {
  all: boolean;
  readonly expressions: Rule[];
  readonly fields: Rule[];
  /** Of other pods: terms that are a default. */
  readonly terms: unknown[];
  readonly policies: Set<string>;
}

/** What must stand at one place, or at any of one kind; of no terms, something. */
interface Requirement {
  readonly kind: Kind;
  readonly time: AffinityTime | undefined;
  readonly terms: readonly (readonly Rule[])[];
  readonly policy: string;
}

/** What a pod asks for at one place. */
interface Asked {
  readonly place: string;
  readonly terms: readonly unknown[];
}

export interface AffinityOptions {
  /** The pod is one that a DaemonSet made for one node: that the node is named in it was not asked for. */
  readonly isForOneNode?: boolean;
}

export class AffinityRules {
  readonly default: Affinity;
  readonly #places = new Map<string, Place>();
  readonly #requirements: readonly Requirement[];
  /** Also of kinds that nobody here knows. */
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

  /** Why this can't be had: what is not allowed, and what is missing. */
  judge(affinity: Affinity, options: AffinityOptions): Reason[] {
    const asked = askedIn(affinity);
    return [
      ...(this.#all ? [] : asked.flatMap(({ place, terms }) => this.#judgePlace(place, terms, options))),
      ...this.#requirements.flatMap((requirement) => unmet(requirement, asked)),
    ];
  }

  #place(kind: Kind, time: AffinityTime, policy: string): Place {
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

  /** Where a mapping is empty, everything below it is allowed. */
  #allow(rules: AllowedAffinities, policy: string): void {
    const isAll = Object.keys(rules).length === 0;
    this.#all ||= isAll;
    for (const [kind, plural] of Object.entries(KINDS) as [Kind, (typeof KINDS)[Kind]][]) {
      const ofKind = isAll ? {} : rules[plural];
      if (ofKind === undefined) {
        continue;
      }
      const isAllOfKind = Object.keys(ofKind).length === 0;
      for (const time of AFFINITY_TIMES) {
        const ofTime: { nodeSelectorTerms?: TermRule[] | undefined } | undefined = isAllOfKind
          ? {}
          : ofKind[time];
        if (ofTime === undefined) {
          continue;
        }
        const place = this.#place(kind, time, policy);
        const terms = ofTime.nodeSelectorTerms ?? [];
        place.all ||= terms.length === 0;
        for (const term of terms) {
          const isAllOfTerm = Object.keys(term).length === 0;
          place.expressions.push(...rulesIn(isAllOfTerm ? [] : term.matchExpressions));
          place.fields.push(...rulesIn(isAllOfTerm ? [] : term.matchFields));
        }
      }
    }
  }

  #allowDefault(merged: MergedPolicy): void {
    for (const { place, terms } of askedIn(this.default)) {
      const [kind, time] = place.split('.') as [Kind, AffinityTime];
      const allowed = this.#place(kind, time, merged.sourceOf('default', 'affinity', kind, time));
      if (kind !== 'nodeAffinity') {
        allowed.terms.push(...terms);
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
      return terms.flatMap((term, index) =>
        place?.terms.some((one) => isDeepStrictEqual(one, term)) === true
          ? []
          : [refuse(`[${index}]`, place === undefined ? 'nothing' : 'the default', 'another term')],
      );
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
      const judge = (list: string, rules: readonly Rule[], asked: readonly Expression[]) => {
        const refused = [...asked.entries()].filter(
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

/** What the pod says nothing about is left out. Kinds and times that nobody here knows are asked for like others. */
export function askedIn(affinity: Affinity): Asked[] {
  return Object.entries(affinity).flatMap(([kind, times]: [string, unknown]) => {
    if (typeof times !== 'object') {
      return times === undefined ? [] : [{ place: kind, terms: [times] }];
    }
    return Object.entries(times ?? {}).flatMap(([time, value]) => {
      const terms = termsOf(kind, time, value);
      return terms.length === 0 ? [] : [{ place: `${kind}.${time}`, terms }];
    });
  });
}

function termsOf(kind: string, time: string, value: unknown): readonly unknown[] {
  if (value === undefined || value === null) {
    return [];
  }
  if (kind === 'nodeAffinity' && time === REQUIRED) {
    return (value as { nodeSelectorTerms?: NodeSelectorTerm[] | null }).nodeSelectorTerms ?? [];
  }
  if (kind === 'nodeAffinity' && time === PREFERRED) {
    return (value as { preference: NodeSelectorTerm }[]).map(({ preference }) => preference);
  }
  return Array.isArray(value) ? value : [value];
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
 * The scheduler takes any one of the required terms, so each must hold what is required; of preferences it is enough that
 * there is one.
 */
function unmet({ kind, time, terms, policy }: Requirement, asked: readonly Asked[]): Reason[] {
  const found = asked.filter(
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

/** As the DaemonSet controller writes it. */
function isNodeName({ key, operator, values }: Expression): boolean {
  return key === 'metadata.name' && operator === 'In' && values?.length === 1;
}
