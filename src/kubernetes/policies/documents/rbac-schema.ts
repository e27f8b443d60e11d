/** The parts of RBAC documents about the use of policies. Source: Kubernetes API, rbac.authorization.k8s.io/v1. */
import { z } from 'zod';
import { mapping } from './schema-helpers.ts';

const texts = z.array(z.string('a string'), 'a list').nullish();

const rule = mapping({
  apiGroups: texts,
  resources: texts,
  resourceNames: texts,
  nonResourceURLs: texts,
  verbs: texts,
});

function subject<Namespace extends z.ZodType>(namespace: Namespace) {
  return z.discriminatedUnion(
    'kind',
    [
      mapping({
        kind: z.literal('ServiceAccount'),
        name: z.string('a string').min(1, 'a non-empty string'),
        namespace,
        apiGroup: z.literal('', 'an empty string').nullish(),
      }),
      ...(['User', 'Group'] as const).map((kind) =>
        mapping({
          kind: z.literal(kind),
          name: z.string('a string').min(1, 'a non-empty string'),
          apiGroup: z.literal('rbac.authorization.k8s.io', 'rbac.authorization.k8s.io').nullish(),
        }),
      ),
    ],
    { error: ({ code }) => (code === 'invalid_union' ? 'one of ServiceAccount, User, Group' : 'a mapping') },
  );
}

const anywhere = subject(z.string('a string, because a service account is namespaced').min(1, 'a namespace'));
/** Default namespace: the binding's. */
const inItsNamespace = subject(z.string('a string').nullish());

export const roleSchema = { rules: z.array(rule, 'a list').nullish() };

const labelSelector = mapping({
  matchLabels: z.record(z.string(), z.string('a string'), 'a mapping of labels').nullish(),
  matchExpressions: z
    .array(
      mapping({
        key: z.string('a string'),
        operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist'], 'one of In, NotIn, Exists, DoesNotExist'),
        values: texts,
      }),
      'a list',
    )
    .nullish(),
});

export const clusterRoleSchema = {
  ...roleSchema,
  aggregationRule: mapping({ clusterRoleSelectors: z.array(labelSelector, 'a list').nullish() }).nullish(),
};

function bindingSchema<const Kinds extends readonly [string, ...string[]], Subjects extends z.ZodType>(
  kinds: Kinds,
  subject: Subjects,
) {
  return {
    subjects: z.array(subject, 'a list').nullish(),
    roleRef: mapping({
      apiGroup: z.literal('rbac.authorization.k8s.io', 'rbac.authorization.k8s.io').nullish(),
      kind: z.enum(kinds, kinds.length === 1 ? kinds[0] : `one of ${kinds.join(', ')}`),
      name: z.string('a string').min(1, 'a non-empty string'),
    }),
  };
}

export const roleBindingSchema = bindingSchema(['Role', 'ClusterRole'], inItsNamespace);
export const clusterRoleBindingSchema = bindingSchema(['ClusterRole'], anywhere);

export type Rule = z.infer<typeof rule>;
export type LabelSelector = z.infer<typeof labelSelector>;
export type Subject = z.infer<typeof anywhere>;

/** A service account without a namespace is in that of its binding. */
export function subjectsIn(
  subjects: readonly z.infer<typeof inItsNamespace>[] | null | undefined,
  namespace = '',
): Subject[] {
  return (subjects ?? []).map((one) =>
    one.kind === 'ServiceAccount' ? { ...one, namespace: one.namespace || namespace } : one,
  );
}
