import type { MergedPolicy } from '../merge.ts';
import { listed, quoted, type Reason } from './reason.ts';

/** A requested node label. Without a value, the expression could match any value. */
export interface NodeSelector {
  readonly label: string;
  readonly value: string | undefined;
  /** The expression as written, if it is not a plain value. */
  readonly written?: string;
}

/** Accepted values; empty = any. */
interface Values {
  readonly values: ReadonlySet<string>;
  readonly policies: readonly string[];
}

export class NodeSelectorRules {
  readonly default: ReadonlyMap<string, string>;
  readonly #required = new Map<string, Values>();
  readonly #all: boolean;
  readonly #allowed = new Map<string, Values>();
  readonly #policies: readonly string[];

  constructor(merged: MergedPolicy) {
    const { required, default: defaults } = merged;
    for (const [label, values] of Object.entries(required.nodeSelectors ?? {})) {
      const policies = [merged.sourceOf('required', 'nodeSelectors', label)];
      this.#required.set(label, { values: new Set(values), policies });
    }
    this.default = new Map(Object.entries(defaults.nodeSelector ?? {}));
    const grants = [
      ...merged.allowed.flatMap(({ policy, allowed: { nodeSelectors } }) =>
        nodeSelectors === undefined ? [] : [{ policy, nodeSelectors }],
      ),
      ...[...this.default].map(([label, value]) => ({
        policy: merged.sourceOf('default', 'nodeSelector', label),
        nodeSelectors: { [label]: [value] },
      })),
    ];
    this.#all = grants.some(({ nodeSelectors }) => Object.keys(nodeSelectors).length === 0);
    const requiring = [...this.#required.values()].flatMap(({ policies }) => policies);
    this.#policies = [...new Set([...requiring, ...grants.map(({ policy }) => policy)])];
    for (const { policy, nodeSelectors } of grants) {
      for (const [label, values] of Object.entries(nodeSelectors)) {
        this.#allow(label, values, policy);
      }
    }
  }

  /** "Any value" and a list of values together mean any value. */
  #allow(label: string, values: readonly string[], policy: string): void {
    const before = this.#allowed.get(label);
    const any = values.length === 0 || before?.values.size === 0;
    this.#allowed.set(label, {
      values: new Set(any ? [] : [...(before?.values ?? []), ...values]),
      policies: [...new Set([...(before?.policies ?? []), policy])],
    });
  }

  /**
   * Reasons for a rejection: one for each wrong or missing label. A label may occur more than once. `part`: the name
   * of the attribute that holds them, for messages.
   */
  judge(selectors: readonly NodeSelector[], part: string): Reason[] {
    const reasons: Reason[] = [];
    for (const [label, required] of this.#required) {
      if (!selectors.some((selector) => selector.label === label)) {
        reasons.push(this.#reason(part, label, required, undefined));
      }
    }
    for (const selector of selectors) {
      const { label, value } = selector;
      const rule = this.#required.get(label) ?? (this.#all ? ANY : this.#allowed.get(label));
      // An expression that could match any value needs a rule that allows any.
      const fits =
        rule !== undefined && (rule.values.size === 0 || (value !== undefined && rule.values.has(value)));
      if (!fits) {
        reasons.push(this.#reason(part, label, rule, selector));
      }
    }
    return reasons;
  }

  #reason(part: string, label: string, rule: Values | undefined, selector: NodeSelector | undefined): Reason {
    const field = `${part} ${quoted(label).slice(1, -1)}`;
    const got = selector === undefined ? 'nothing' : (selector.written ?? quoted(selector.value ?? ''));
    if (rule === undefined) {
      const known = [...new Set([...this.#required.keys(), ...this.#allowed.keys()])];
      const others = known.length === 0 ? '' : `; allowed labels: ${listed(known, 'and')}`;
      return { field, expectation: `expected nothing, got ${got}${others}`, policies: this.#policies };
    }
    const { values, policies } = rule;
    const expected = values.size === 0 ? 'a value' : listed([...values], 'or');
    return { field, expectation: `expected ${expected}, got ${got}`, policies };
  }
}

const ANY: Values = { values: new Set(), policies: [] };
