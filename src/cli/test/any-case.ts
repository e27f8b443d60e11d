/** Cases of `test`. Their subject decides which keys they may have. Lease cases have their own file. */
import { z } from 'zod';
import { isMapping } from '../../base/yaml/tree.ts';
import {
  EXPECTATION,
  expectationOf,
  expectedText,
  isoTime,
  mapping,
  names,
  text,
} from '../cases/expected.ts';
import { type LeaseCase, leaseCaseSchema } from './lease-case.ts';

const podExpectation = expectationOf(
  'pod',
  {
    policy: names('the name of a policy').optional(),
    field: text('a field of the spec, such as nodeSelector').optional(),
    warning: expectedText.optional(),
    pod_paths: mapping.optional(),
  },
  ['policy', 'field'],
  ['pod_paths'],
);
export type PodExpectation = z.infer<typeof podExpectation>;

const podCaseSchema = z
  .strictObject(
    {
      name: text('a name').optional(),
      /** A pod, or an object with a template of one. Without `kind`: a pod. */
      pod: mapping.optional(),
      pod_file: text('a path').optional(),
      namespace: text('a name').optional(),
      service_account: text('a name').optional(),
      /** The sender of the request, for rules. For most pods, a controller. */
      user: z
        .union(
          [
            text('a name').transform((name) => ({ name, groups: [] })),
            z.strictObject({ name: text('a name'), groups: z.array(text('a name')).default([]) }),
          ],
          'expected a name, or a mapping with name and groups',
        )
        .optional(),
      now: isoTime.optional(),
      /** The existing pod, for an update. */
      current: mapping.optional(),
      /** Files and folders beside the case, instead of the configured ones. */
      scheduling_policies: z.array(text('a path')).min(1, 'expected at least one path').optional(),
      expect: podExpectation,
    },
    'expected a mapping with pod and expect',
  )
  .superRefine(({ pod, pod_file, current }, context) => {
    if (current !== undefined && pod === undefined) {
      context.addIssue({ code: 'custom', path: ['current'], message: 'expected pod beside current' });
    }
    if ((pod === undefined) === (pod_file === undefined)) {
      context.addIssue({ code: 'custom', message: 'expected pod or pod_file' });
    }
  });

export type PodCase = z.infer<typeof podCaseSchema>;

const userSchema = z.union([
  text('id:name').transform((written) => {
    const [id = '', ...name] = written.split(':');
    return { id, name: name.length === 0 ? id : name.join(':') };
  }),
  z.strictObject({ id: text('an id'), name: text('a name') }),
]);

const requestSchema = z.strictObject({
  name: text('the name of a request, such as launch').optional(),
  cluster_name: text('a name').optional(),
  idle_minutes: z.int('expected a whole number of minutes').optional(),
  down: z.boolean('expected true or false').optional(),
  dry_run: z.boolean('expected true or false').optional(),
  client_side: z.boolean('expected true or false').optional(),
  user: userSchema.optional(),
  workspace: text('a name').optional(),
  client_version: text('a version in quotes, such as "0.13.0"').optional(),
  client_api_version: z.int('expected a whole number').optional(),
});

const taskExpectation = expectationOf(
  'request',
  {
    task: mapping.optional(),
    task_paths: mapping.optional(),
    skypilot_config: mapping.optional(),
    skypilot_config_paths: mapping.optional(),
    idempotent: z.boolean('expected true or false').optional(),
  },
  [],
  ['task', 'task_paths', 'skypilot_config', 'skypilot_config_paths', 'idempotent'],
);
export type TaskExpectation = z.infer<typeof taskExpectation>;

const taskCaseSchema = z
  .strictObject(
    {
      name: text('a name').optional(),
      task: z
        .union([mapping, z.array(mapping).min(1)], 'expected a mapping, or a list of them for a pipeline')
        .optional(),
      task_file: text('a path').optional(),
      skypilot_config: mapping.optional(),
      request: requestSchema.optional(),
      policies: z.array(text('a policy')).min(1, 'expected at least one policy').optional(),
      options: mapping.optional(),
      now: isoTime.optional(),
      network: z.boolean('expected true or false').default(false),
      expect: z.union([taskExpectation, z.array(taskExpectation).min(1)], EXPECTATION),
    },
    'expected a mapping with task and expect',
  )
  .superRefine(({ task, task_file }, context) => {
    if ((task === undefined) === (task_file === undefined)) {
      context.addIssue({ code: 'custom', message: 'expected task or task_file' });
    }
  });

export type SkypilotCase = z.infer<typeof taskCaseSchema>;

export type AnyCase =
  | { readonly kind: 'lease'; readonly written: LeaseCase }
  | { readonly kind: 'pod'; readonly written: PodCase }
  | { readonly kind: 'task'; readonly written: SkypilotCase };

const SCHEMAS = {
  lease: leaseCaseSchema.transform((written): AnyCase => ({ kind: 'lease', written })),
  pod: podCaseSchema.transform((written): AnyCase => ({ kind: 'pod', written })),
  task: taskCaseSchema.transform((written): AnyCase => ({ kind: 'task', written })),
};

/** The first key that a case has decides. */
const KEYS = [
  ['task', ['task', 'task_file']],
  ['pod', ['pod', 'pod_file', 'scheduling_policies', 'service_account']],
  ['lease', ['lease', 'request', 'current']],
] as const;

export function schemaOfCase(value: unknown): z.ZodType<AnyCase> {
  const keys = isMapping(value) ? Object.keys(value) : [];
  const [kind] = KEYS.find(([, names]) => keys.some((key) => names.some((name) => name === key))) ?? [
    'lease',
  ];
  return SCHEMAS[kind];
}

/** For `skypilot test`. */
export function schemaOfTask(): z.ZodType<AnyCase> {
  return SCHEMAS.task;
}
