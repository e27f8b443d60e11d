/**
 * Rules for affinities. Node affinities are judged expression by expression. Affinities to other pods are judged as a
 * whole: the proposal can forbid them, but has no rules for their content.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  AFFINITY_TIMES,
  type AffinityTime,
  type AffinityRules as AllowedAffinities,
  type TermRule,
} from '../documents/policy-schema.ts';
import type { MergedPolicy } from '../merge.ts';
import type { Affinity, Expression, NodeSelectorTerm } from '../pod.ts';
import { allows, describe, describeRules, impliedRule, type Rule, rulesIn } from './expression-rules.ts';
import type { Reason } from './reason.ts';
import { isNodeName, KINDS, type Kind, NODE_NAME, requestedAffinities } from './requested-affinities.ts';
import { isOfTemplate, type Requirement, requirements, unmet } from './required-affinities.ts';

const [REQUIRED] = AFFINITY_TIMES;

/** Kinds whose terms are judged one by one. */
const NODE_PLACES: readonly string[] = AFFINITY_TIMES.map((time) => `nodeAffinity.${time}`);

/** What is allowed at one place, such as `nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution`. */
interface Place {
  all: boolean;
  readonly expressions: Rule[];
  readonly fields: Rule[];
  /** Default terms about other pods. */
  readonly terms: unknown[];
  readonly policies: Set<string>;
}

export interface AffinityOptions {
  /** A DaemonSet created the pod for one node: its controller, not the user, named the node in it. */
  readonly isForOneNode?: boolean;
}

export class AffinityRules {
  readonly default: Affinity;
  readonly #places = new Map<string, Place>();
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

  /** What is allowed at one place, and the policies that say so. */
  at(kind: Kind, time: AffinityTime): { readonly all: boolean; readonly policies: readonly string[] } {
    const place = this.#places.get(`${kind}.${time}`);
    return { all: this.#all || place?.all === true, policies: [...(place?.policies ?? [])] };
  }

  /** Reasons why a pod may not name this node. */
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

  /** An empty mapping allows everything below it. */
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
    for (const { place, terms } of requestedAffinities(this.default)) {
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
