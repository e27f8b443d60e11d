/**
 * Roles and bindings of the cluster, followed by watch. They show which policies are worth a review, and
 * which answers are outdated. They never decide: a review does.
 */
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { Binding, Role } from '../../policies/access.ts';
import {
  type Account,
  type BoundRole,
  boundRole,
  type Grant,
  type Grants,
  grantedTo,
  grantOf,
  grantsOf,
  roleId,
  subjectsOf,
} from '../../policies/access.ts';
import { subjectsIn } from '../../policies/documents/rbac-schema.ts';
import { CLUSTER_GROUP } from '../../policies/policy.ts';
import type { ApiObject } from '../api/contract.ts';
import { elapsed } from '../api/timing.ts';
import type { Followed, ObjectListener } from './contract.ts';

/** Of subjects whose changes are remembered. With more changes than this at once, everything counts as changed. */
const MOST = 10_000;

/** The part used when reviews are created. */
export interface UseHint {
  /** Grows with each change of permissions. */
  readonly version: number;
  /** Of these names, those that the account may use by roles and bindings. `undefined` = unknown: any of them. */
  candidates(account: Account, names: readonly string[]): readonly string[] | undefined;
  /** When that last changed for an account, as `elapsed()`; `-Infinity` = not recently. */
  changedAt(account: Account): number;
}

/** A broken watch is usually restored sooner. */
const GRACE_MILLISECONDS = 3000;
/**
 * A watch proves at least every 10 s that nothing is missing. After this it is silent, which it notices
 * itself later.
 */
const SILENT_MILLISECONDS = 12_000;

export class RbacHint implements UseHint {
  /** One per kind, for its list and watch. */
  readonly listeners: Readonly<Record<RbacKind, ObjectListener>>;
  readonly #now: () => number;
  readonly #followed = new Map<RbacKind, Pick<Followed, 'following'>>();
  /** Objects that could not be read: while there are any, nothing is certain. */
  readonly #unreadable = new Map<string, string>();
  /** Roles about policies, which are few among those of a cluster. */
  readonly #roles = new Map<string, Grant>();
  /** All of them, since their roles may change. */
  readonly #given = new Map<string, BoundRole>();
  #grants: Grants = new Map();
  /** When a role or binding changed that is not yet in `#grants`. */
  #touchedAt: number | undefined;
  #version = 0;
  #everythingAt = Number.NEGATIVE_INFINITY;
  /** By subject, the last changed one last. */
  readonly #changedAt: LRUCache<string, number>;

  /** `now`: a monotonic clock in milliseconds. `most`: see `MOST`. */
  constructor({ now = elapsed, most = MOST }: { readonly now?: () => number; readonly most?: number } = {}) {
    this.#now = now;
    this.#changedAt = new LRUCache({
      max: most,
      dispose: (at, _, reason) => {
        this.#everythingAt = reason === 'evict' ? at : this.#everythingAt;
      },
    });
    const ofRoles = (kind: 'roles' | 'clusterroles') =>
      this.#listener(kind, this.#roles, (object) => {
        const grant = grantOf(roleIn(kind, object), CLUSTER_GROUP);
        return grant !== 'all' && grant.size === 0 ? undefined : grant;
      });
    const ofBindings = (kind: 'rolebindings' | 'clusterrolebindings') =>
      this.#listener(kind, this.#given, (object) => boundRole(bindingIn(kind, object)));
    this.listeners = {
      roles: ofRoles('roles'),
      clusterroles: ofRoles('clusterroles'),
      rolebindings: ofBindings('rolebindings'),
      clusterrolebindings: ofBindings('clusterrolebindings'),
    };
  }

  get version(): number {
    this.#refresh();
    return this.#version;
  }

  /** Why permissions are unknown, for the log; `undefined` = known. */
  get problem(): string | undefined {
    for (const kind of RBAC_KINDS) {
      const following = this.#followed.get(kind)?.following;
      if (following === undefined || !following.hasList) {
        return `${kind} are not listed${following?.problem === undefined ? '' : `: ${following.problem}`}`;
      }
      const { problem, currentAt = Number.NEGATIVE_INFINITY } = following;
      const age = this.#now() - currentAt;
      if (age > SILENT_MILLISECONDS || (problem !== undefined && age > GRACE_MILLISECONDS)) {
        return `${kind} are not followed: ${problem ?? 'the watch is silent'}`;
      }
    }
    const [unreadable] = this.#unreadable.values();
    return unreadable === undefined ? undefined : `${unreadable} cannot be read`;
  }

  follow(kind: RbacKind, followed: Pick<Followed, 'following'>): void {
    this.#followed.set(kind, followed);
  }

  candidates(account: Account, names: readonly string[]): readonly string[] | undefined {
    if (this.problem !== undefined) {
      return undefined;
    }
    this.#refresh();
    const granted = grantedTo(this.#grants, subjectsOf(account));
    return granted === 'all' ? names : names.filter((name) => granted.has(name));
  }

  changedAt(account: Account): number {
    this.#refresh();
    let latest = this.#everythingAt;
    for (const subject of subjectsOf(account)) {
      latest = Math.max(latest, this.#changedAt.peek(subject) ?? latest);
    }
    return latest;
  }

  /** Evaluates all bindings again, once for many changes, and only after changes that concern policies. */
  #refresh(): void {
    const at = this.#touchedAt;
    if (at === undefined) {
      return;
    }
    this.#touchedAt = undefined;
    const before = this.#grants;
    this.#grants = grantsOf(this.#roles, this.#given.values());
    for (const subject of new Set([...before.keys(), ...this.#grants.keys()])) {
      const isAsBefore =
        isSameSet(before.get(subject), this.#grants.get(subject)) ||
        isSame(grantedTo(before, [subject]), grantedTo(this.#grants, [subject]));
      if (!isAsBefore) {
        this.#version += 1;
        this.#changedAt.set(subject, at);
      }
    }
  }

  /** `read`: what is kept of an object; `undefined` = nothing. */
  #listener<Kept extends Grant | BoundRole>(
    kind: RbacKind,
    kept: Map<string, Kept>,
    read: (object: ApiObject) => Kept | undefined,
  ): ObjectListener {
    let known = new Set<string>();
    const keep = (id: string, next: Kept | undefined) => {
      const before = kept.get(id);
      if (next === undefined) {
        kept.delete(id);
      } else {
        kept.set(id, next);
      }
      if (this.#speaksOfPolicies(before) || this.#speaksOfPolicies(next)) {
        this.#touchedAt = this.#now();
      }
    };
    const remove = (id: string) => {
      this.#unreadable.delete(id);
      known.delete(id);
      keep(id, undefined);
    };
    const set = (object: ApiObject) => {
      const id = idOf(kind, object);
      try {
        keep(id, read(object));
        this.#unreadable.delete(id);
      } catch {
        remove(id);
        const { namespace = '', name } = object.metadata;
        this.#unreadable.set(id, `${kind} ${namespace} ${name}`);
      }
      known.add(id);
    };
    return {
      changed: set,
      removed: (object) => remove(idOf(kind, object)),
      replaced: (objects) => {
        const gone = known;
        known = new Set();
        for (const object of objects) {
          gone.delete(idOf(kind, object));
          set(object);
        }
        for (const id of gone) {
          remove(id);
        }
      },
    };
  }

  #speaksOfPolicies(kept: Grant | BoundRole | undefined): boolean {
    return kept !== undefined && (kept === 'all' || 'has' in kept || this.#roles.has(kept.role));
  }
}

/** A role's id, as in its bindings. */
function idOf(kind: RbacKind, { metadata: { name, namespace } }: ApiObject): string {
  return roleId(ROLES[kind] ?? kind, namespace, name);
}

const ROLES: Partial<Record<RbacKind, string>> = { roles: 'Role', clusterroles: 'ClusterRole' };

function isSame(one: Grant, other: Grant): boolean {
  return one === 'all' || other === 'all' ? one === other : isSameSet(one, other);
}

function isSameSet<Item>(one: ReadonlySet<Item> | undefined, other: ReadonlySet<Item> | undefined): boolean {
  return one?.size === other?.size && [...(one ?? [])].every((item) => other?.has(item));
}

/** Roles and bindings as an API server sends them. Source: Kubernetes API, rbac.authorization.k8s.io/v1. */

export const RBAC_PATH = '/apis/rbac.authorization.k8s.io/v1';
export const RBAC_KINDS = ['roles', 'clusterroles', 'rolebindings', 'clusterrolebindings'] as const;
export type RbacKind = (typeof RBAC_KINDS)[number];

// Lenient: the stored object counts, also with fields unknown here.
const metadata = z.object({ name: z.string(), namespace: z.string().optional() });
const texts = z.array(z.string()).nullish();
const rule = z.object({ apiGroups: texts, resources: texts, resourceNames: texts, verbs: texts });
const roleSchema = z.object({ metadata, rules: z.array(rule).nullish() });

const subject = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ServiceAccount'), name: z.string(), namespace: z.string().nullish() }),
  z.object({ kind: z.enum(['User', 'Group']), name: z.string() }),
]);
const bindingSchema = z.object({
  metadata,
  roleRef: z.object({ kind: z.enum(['Role', 'ClusterRole']), name: z.string() }),
  subjects: z.array(subject).nullish(),
});

/** @throws ZodError */
export function roleIn(kind: 'roles' | 'clusterroles', object: unknown): Role {
  const { metadata, rules } = roleSchema.parse(object);
  return { kind: kind === 'roles' ? 'Role' : 'ClusterRole', ...identity(metadata), rules: rules ?? [] };
}

/** @throws ZodError */
export function bindingIn(kind: 'rolebindings' | 'clusterrolebindings', object: unknown): Binding {
  const { metadata, roleRef, subjects } = bindingSchema.parse(object);
  return {
    kind: kind === 'rolebindings' ? 'RoleBinding' : 'ClusterRoleBinding',
    ...identity(metadata),
    roleRef,
    subjects: subjectsIn(subjects, metadata.namespace),
  };
}

function identity({ name, namespace }: z.infer<typeof metadata>) {
  return { name, namespace };
}
