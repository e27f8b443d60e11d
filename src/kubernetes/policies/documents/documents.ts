/**
 * Reads scheduling policies, roles and bindings from YAML files and folders. Every problem is an error with
 * file and line. Nothing is skipped: an unread rule would not be enforced.
 */

import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Problem } from '../../../base/errors.ts';
import { formatPath, isMapping, type Path, shown } from '../../../base/yaml/tree.ts';
import { nearestName } from '../../../config/nearest.ts';
import { message, warning } from '../../admission/admission-messages.ts';
import type { Admission, PolicyRequest } from '../../admission/admission-review.ts';
import type { Binding, Role } from '../access.ts';
import { API_GROUPS, type SchedulingPolicy, schedulingPolicy } from '../policy.ts';
import { type Item, readItems } from './items.ts';
import { policySpecSchema, schemaProblems } from './policy-schema.ts';
import {
  clusterRoleBindingSchema,
  clusterRoleSchema,
  roleBindingSchema,
  roleSchema,
  subjectsIn,
} from './rbac-schema.ts';
import { aggregated, References, rulesLost, type WrittenRole } from './references.ts';
import { mapping } from './schema-helpers.ts';

const POLICY_VERSIONS = [
  ...API_GROUPS.map((group) => `${group}/v1alpha1` as const),
  // The draft uses this spelling in most places.
  'extensions/valpha1',
] as const;

const metadata = z
  .looseObject(
    {
      name: z.string('a string').min(1, 'a name').optional(),
      labels: z.record(z.string(), z.string('a string'), 'a mapping of labels').nullish(),
    },
    'a mapping',
  )
  .nullish();
const rbacVersion = z.literal('rbac.authorization.k8s.io/v1', 'rbac.authorization.k8s.io/v1');

/** The draft writes `Kind` too, and its examples have neither apiVersion nor name. */
export const policyDocument = mapping({
  apiVersion: z.enum(POLICY_VERSIONS, `one of ${POLICY_VERSIONS.join(', ')}`).optional(),
  kind: z.string().optional(),
  Kind: z.string().optional(),
  metadata,
  spec: policySpecSchema,
  /** In the output of `kubectl get -o yaml`. Not used. */
  status: z.unknown().optional(),
});

const ofRbac = { apiVersion: rbacVersion, kind: z.string('a string'), metadata };
const roleDocument = mapping({ ...ofRbac, ...roleSchema });
const clusterRoleDocument = mapping({ ...ofRbac, ...clusterRoleSchema });
const roleBindingDocument = mapping({ ...ofRbac, ...roleBindingSchema });
const clusterRoleBindingDocument = mapping({ ...ofRbac, ...clusterRoleBindingSchema });

const KINDS = ['SchedulingPolicy', 'Role', 'ClusterRole', 'RoleBinding', 'ClusterRoleBinding'] as const;

export interface PolicyDocuments {
  readonly policies: readonly SchedulingPolicy[];
  readonly roles: readonly Role[];
  readonly bindings: readonly Binding[];
  /** Errors, and warnings about references to missing objects. */
  readonly problems: readonly Problem[];
}

/** Reads files, and the `*.yaml`, `*.yml` and `*.json` files of folders. Never throws: problems are returned. */
export function readPolicyDocuments(paths: readonly string[]): PolicyDocuments {
  const documents = new Documents();
  const problems: Problem[] = [];
  for (const item of readItems(paths, (problem) => problems.push(problem))) {
    documents.add(item);
  }
  const read = documents.read();
  return { ...read, problems: [...problems, ...read.problems] };
}

const REPLACED =
  'the control plane overwrites the rules of this role with those of the ClusterRoles that it selects: rules that none of them has do not count';

class Documents {
  readonly #policies: SchedulingPolicy[] = [];
  readonly #roles: (WrittenRole & { readonly item: Item })[] = [];
  readonly #bindings: Binding[] = [];
  readonly #problems: Problem[] = [];
  readonly #references = new References();

  add(item: Item): void {
    const field = 'Kind' in item.value && !('kind' in item.value) ? 'Kind' : 'kind';
    const kind = item.value[field];
    if (field === 'kind' && 'Kind' in item.value) {
      this.#mistake(item, ['Kind'], 'expected nothing, because kind is set too');
    }
    switch (kind) {
      case 'SchedulingPolicy':
        this.#addPolicy(item);
        break;
      case 'Role':
      case 'ClusterRole':
        this.#addRole(item, kind);
        break;
      case 'RoleBinding':
      case 'ClusterRoleBinding':
        this.#addBinding(item, kind);
        break;
      default: {
        const nearest = typeof kind === 'string' ? nearestName(kind, KINDS) : '';
        const expected = `expected one of ${[...KINDS, 'List'].join(', ')}`;
        this.#mistake(item, [field], `${expected}, got ${shown(kind)}${nearest}`);
      }
    }
  }

  read(): PolicyDocuments {
    const roles = aggregated(this.#roles);
    const lost = this.#roles.flatMap((written, index) => {
      const role = roles[index];
      return role === undefined || rulesLost(written, role).length === 0
        ? []
        : [written.item.problem(['aggregationRule'], REPLACED, 'warning')];
    });
    const problems = [...this.#problems, ...lost, ...this.#references.deadEnds(this.#policies)];
    return { policies: this.#policies, roles, bindings: this.#bindings, problems };
  }

  #addPolicy(item: Item): void {
    const document = this.#parsed(item, policyDocument);
    if (document === undefined && nameOf(item) === undefined) {
      return;
    }
    const name = nameOf(item) ?? item.file.replace(/^.*\//, '').replace(/\.(ya?ml|json)$/, '');
    if (this.#isNew(item, 'SchedulingPolicy', undefined, name) && document !== undefined) {
      const group = API_GROUPS.find((one) => document.apiVersion?.startsWith(`${one}/`));
      this.#policies.push(schedulingPolicy(name, document.spec, group));
    }
  }

  #addRole(item: Item, kind: Role['kind']): void {
    const document: z.infer<typeof clusterRoleDocument> | undefined =
      kind === 'Role' ? this.#parsed(item, roleDocument) : this.#parsed(item, clusterRoleDocument);
    const identity = this.#identity(item, kind, kind === 'Role');
    if (identity === undefined || document === undefined) {
      return;
    }
    const rules = document.rules ?? [];
    const labels = document.metadata?.labels ?? {};
    const selectors =
      kind === 'ClusterRole' && document.aggregationRule
        ? (document.aggregationRule.clusterRoleSelectors ?? [])
        : undefined;
    this.#roles.push({ kind, ...identity, rules, labels, selectors, item });
    for (const [index, { apiGroups, resources, resourceNames }] of rules.entries()) {
      if (resources?.includes('schedulingpolicies') === true) {
        for (const [position, name] of (resourceNames ?? []).entries()) {
          const path = ['rules', index, 'resourceNames', position];
          const policy = { kind: 'SchedulingPolicy', namespace: undefined, name };
          this.#references.refer({ item, path, ...policy, apiGroups: apiGroups ?? [] });
        }
      }
    }
  }

  #addBinding(item: Item, kind: Binding['kind']): void {
    const schema = kind === 'RoleBinding' ? roleBindingDocument : clusterRoleBindingDocument;
    const document = this.#parsed(item, schema);
    const identity = this.#identity(item, kind, kind === 'RoleBinding');
    if (identity === undefined || document === undefined) {
      return;
    }
    const { roleRef, subjects } = document;
    this.#bindings.push({ kind, ...identity, roleRef, subjects: subjectsIn(subjects, identity.namespace) });
    const namespace = roleRef.kind === 'Role' ? identity.namespace : undefined;
    const { kind: ofRole, name } = roleRef;
    this.#references.refer({ item, path: ['roleRef', 'name'], kind: ofRole, namespace, name });
  }

  /** Checks name and namespace, and that no other object of the kind has them. */
  #identity(item: Item, kind: string, isNamespaced: boolean): Pick<Role, 'name' | 'namespace'> | undefined {
    const name = nameOf(item);
    if (name === undefined) {
      if (!isWrongName(item)) {
        this.#mistake(item, ['metadata', 'name'], 'expected a name');
      }
      return undefined;
    }
    const { metadata: written } = item.value;
    const namespace = isNamespaced && isMapping(written) ? written.namespace : undefined;
    if (isNamespaced && (typeof namespace !== 'string' || namespace === '')) {
      this.#mistake(item, ['metadata', 'namespace'], `expected a namespace, because a ${kind} is namespaced`);
      return undefined;
    }
    const place = typeof namespace === 'string' ? namespace : undefined;
    return this.#isNew(item, kind, place, name) ? { name, namespace: place } : undefined;
  }

  #isNew(item: Item, kind: string, namespace: string | undefined, name: string): boolean {
    const first = this.#references.add(item, kind, namespace, name);
    if (first !== undefined) {
      const expected = `duplicate name: a ${kind} of this name is defined at ${first}`;
      this.#mistake(item, ['metadata', 'name'], expected);
    }
    return first === undefined;
  }

  #parsed<Schema extends z.ZodType>(item: Item, schema: Schema): z.infer<Schema> | undefined {
    const parsed = schema.safeParse(item.value);
    if (parsed.success) {
      return parsed.data;
    }
    for (const issue of parsed.error.issues) {
      for (const { path, message } of schemaProblems(issue, item.value)) {
        this.#mistake(item, path, message);
      }
    }
    return undefined;
  }

  #mistake(item: Item, path: Path, message: string): void {
    this.#problems.push(item.problem(path, message));
  }
}

function nameOf({ value: { metadata: written } }: Item): string | undefined {
  const name = isMapping(written) ? written.name : undefined;
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** Not reached: the schema has rejected such a document. */
function isWrongName({ value: { metadata: written } }: Item): boolean {
  return isMapping(written)
    ? 'name' in written && written.name !== null
    : written !== undefined && written !== null;
}

/** Keeps messages within `MAX_MESSAGE`. */
const MAX_MISTAKES = 20;

/**
 * Refuses an invalid policy. The metadata of one that was stored before the webhook existed may still change,
 * with a warning: otherwise it could not lose its finalizers.
 */
export function reviewPolicy({ document, current }: Pick<PolicyRequest, 'document' | 'current'>): Admission {
  const mistake = policyMistake(document) ?? kindTwice(document);
  const admission = { allowed: true, message: null, patch: [], warnings: [] };
  if (mistake === null) {
    return admission;
  }
  const text = message(`the scheduling policy is invalid: ${mistake}`);
  return current !== undefined && isDeepStrictEqual(content(document), content(current))
    ? { ...admission, warnings: [warning(text)] }
    : { ...admission, allowed: false, message: text };
}

export function policyMistake(document: unknown): string | null {
  const parsed = policyDocument.safeParse(document);
  if (parsed.success) {
    return null;
  }
  const value = isMapping(document) ? document : {};
  const found = parsed.error.issues
    .flatMap((issue) => [...schemaProblems(issue, value)])
    .slice(0, MAX_MISTAKES)
    .map(({ path, message }) => (path.length === 0 ? message : `${formatPath(path)}: ${message}`));
  return message(found.join('; '));
}

/** The draft writes `Kind`. Files may have it instead of `kind`, which the API server requires. */
function kindTwice(document: unknown): string | null {
  return isMapping(document) && 'Kind' in document ? 'Kind: expected nothing, because kind is set too' : null;
}

function content(document: unknown): unknown {
  if (!isMapping(document)) {
    return document;
  }
  const { metadata, status, ...read } = document;
  return read;
}
