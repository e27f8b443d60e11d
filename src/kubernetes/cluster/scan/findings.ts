/** The findings of a scan, by owner: 500 pods of one Deployment are one finding. */
import { compare } from '../../policies/merge.ts';
import type { Reason } from '../../policies/rules/reason.ts';
import type { Owner } from './scanned-objects.ts';

/** One pod or template, and its verdict when enforced. */
export interface Judged {
  readonly source: 'pod' | 'template';
  readonly namespace: string;
  readonly name: string;
  /** `undefined` = a pod without an owner. */
  readonly owner: Owner | undefined;
  readonly user: string;
  /** Names of the policies that the account may use. */
  readonly policies: readonly string[];
  /** Empty = it would be allowed. */
  readonly reasons: readonly Reason[];
}

/** The common parts of all pods of one owner that would be refused for the same reasons. */
export interface Refusal extends Omit<Judged, 'name' | 'owner'> {
  readonly owner: Owner;
  count: number;
  /** The names of the first ones. */
  readonly names: string[];
}

/** An owner, for reports that list all of them. */
export interface Scanned {
  readonly source: Judged['source'];
  readonly namespace: string;
  readonly owner: Owner;
  count: number;
  readonly refusals: Refusal[];
}

/** Further owners are only counted: a cluster may have hundreds of thousands of pods without an owner. */
const MAX_OWNERS = 50_000;
/** Per owner, whose pods differ little. */
const MAX_REFUSALS = 20;
const MAX_NAMES = 5;

export class Findings {
  readonly #owners = new Map<string, Scanned>();
  readonly #namespaces = new Set<string>();
  readonly #counts = { pod: { all: 0, refused: 0 }, template: { all: 0, refused: 0 } };
  readonly #mostOwners: number;
  /** Pods and templates that would be refused, but are in no refusal. */
  unlisted = 0;

  constructor(mostOwners = MAX_OWNERS) {
    this.#mostOwners = mostOwners;
  }

  add(judged: Judged): void {
    const { source, namespace, name, reasons } = judged;
    const owner = judged.owner ?? { kind: 'Pod', name };
    const isRefused = reasons.length > 0;
    this.#counts[source].all += 1;
    this.#counts[source].refused += isRefused ? 1 : 0;
    this.#namespaces.add(namespace);
    const key = JSON.stringify([source, namespace, owner.kind, owner.name]);
    const known = this.#owners.get(key);
    if (known === undefined && this.#owners.size >= this.#mostOwners) {
      this.unlisted += isRefused ? 1 : 0;
      return;
    }
    const scanned = known ?? { source, namespace, owner, count: 0, refusals: [] };
    this.#owners.set(key, scanned);
    scanned.count += 1;
    if (isRefused) {
      this.#refuse(scanned, judged, owner);
    }
  }

  /** Sorted by namespace, kind and name. */
  get owners(): readonly Scanned[] {
    return [...this.#owners.values()].sort(
      (a, b) =>
        compare(a.namespace, b.namespace) ||
        compare(a.owner.kind, b.owner.kind) ||
        compare(a.owner.name, b.owner.name) ||
        compare(a.source, b.source),
    );
  }

  get refusals(): readonly Refusal[] {
    return this.owners.flatMap(({ refusals }) => refusals);
  }

  get counts() {
    const { pod, template } = this.#counts;
    return {
      pods: pod.all,
      refusedPods: pod.refused,
      templates: template.all,
      refusedTemplates: template.refused,
      namespaces: this.#namespaces.size,
    };
  }

  #refuse({ refusals }: Scanned, { name, ...judged }: Judged, owner: Owner): void {
    const same = refusals.find((one) => isSame(one, judged));
    if (same !== undefined) {
      same.count += 1;
      if (same.names.length < MAX_NAMES) {
        same.names.push(name);
      }
    } else if (refusals.length < MAX_REFUSALS) {
      refusals.push({ ...judged, owner, count: 1, names: [name] });
    } else {
      this.unlisted += 1;
    }
  }
}

function isSame(one: Refusal, { user, reasons }: Omit<Judged, 'name'>): boolean {
  return (
    one.user === user &&
    one.reasons.length === reasons.length &&
    one.reasons.every(
      ({ field, expectation }, index) =>
        field === reasons[index]?.field && expectation === reasons[index].expectation,
    )
  );
}
