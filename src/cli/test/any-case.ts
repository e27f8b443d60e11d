/** The cases that `test` runs: what they are about decides what they may say. */
import type { z } from 'zod';
import { isMapping } from '../../yaml/tree.ts';
import { type SkypilotCase, caseSchema as taskCaseSchema } from '../skypilot/case.ts';
import { type LeaseCase, leaseCaseSchema } from './lease-case.ts';
import { type PodCase, podCaseSchema } from './pod-case.ts';

export type AnyCase =
  | { readonly kind: 'lease'; readonly written: LeaseCase }
  | { readonly kind: 'pod'; readonly written: PodCase }
  | { readonly kind: 'task'; readonly written: SkypilotCase };

const SCHEMAS = {
  lease: leaseCaseSchema.transform((written): AnyCase => ({ kind: 'lease', written })),
  pod: podCaseSchema.transform((written): AnyCase => ({ kind: 'pod', written })),
  task: taskCaseSchema.transform((written): AnyCase => ({ kind: 'task', written })),
};

/** By the first of their keys. */
const KEYS = [
  ['task', ['task', 'task_file']],
  ['pod', ['pod', 'pod_file', 'scheduling_policies', 'service_account']],
  ['lease', ['lease', 'request', 'current']],
] as const;

/** The schema for what a case has written. */
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
