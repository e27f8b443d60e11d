import type { MergedPolicy } from '../merge.ts';
import { listed, quoted, type Reason } from './reason.ts';

type NameField = 'schedulerName' | 'priorityClassName';

const LIST = { schedulerName: 'schedulerNames', priorityClassName: 'priorityClassNames' } as const;

/** Rules for the scheduler or the priority class of a pod. */
export class NameRules {
  readonly field: NameField;
  /** Added to pods that have none. */
  readonly default: string | undefined;
  readonly required: readonly string[] | undefined;
  readonly #all: boolean;
  /** The policy that allows each name. */
  readonly #allowed = new Map<string, string>();
  /** The policy that requires names, otherwise those that allow some. */
  readonly policies: readonly string[];

  constructor(field: NameField, merged: MergedPolicy) {
    const list = LIST[field];
    this.field = field;
    this.default = merged.default[field];
    this.required = merged.required[list];
    const grants = merged.allowed.filter(({ allowed }) => allowed[list] !== undefined);
    this.#all = grants.some(({ allowed }) => allowed[list]?.length === 0);
    for (const { policy, allowed } of grants) {
      for (const name of allowed[list] ?? []) {
        this.#allowed.set(name, policy);
      }
    }
    const implied =
      this.default === undefined ? [] : [[this.default, merged.sourceOf('default', field)] as const];
    for (const [name, policy] of implied) {
      this.#allowed.set(name, this.#allowed.get(name) ?? policy);
    }
    this.policies =
      this.required === undefined
        ? [...new Set([...grants.map(({ policy }) => policy), ...implied.map(([, policy]) => policy)])]
        : [merged.sourceOf('required', list)];
  }

  /** Whether any name is allowed and none is required. */
  get allowsAll(): boolean {
    return this.#all && this.required === undefined;
  }

  accepts(name: string): boolean {
    return this.required === undefined ? this.#all || this.#allowed.has(name) : this.required.includes(name);
  }

  /** Whether a policy lists the name, instead of allowing all names. */
  lists(name: string): boolean {
    return this.required === undefined ? this.#allowed.has(name) : this.required.includes(name);
  }

  /** `undefined` = the pod names none. `free`: a name that counts as none, unless one is required. */
  judge(name: string | undefined, free?: string): Reason[] {
    const { field, required } = this;
    const isSaid = name !== undefined && !(name === free && required === undefined);
    if (isSaid ? this.accepts(name) : required === undefined) {
      return [];
    }
    const got = name === undefined ? 'nothing' : quoted(name);
    if (required !== undefined) {
      const expectation = `expected ${listed(required, 'or')}, got ${got}`;
      return [{ field, expectation, policies: this.policies }];
    }
    const names = [...this.#allowed.keys()];
    const expected = names.length === 0 ? 'nothing' : listed(names, 'or');
    return [{ field, expectation: `expected ${expected}, got ${got}`, policies: this.policies }];
  }
}
