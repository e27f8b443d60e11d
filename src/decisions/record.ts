/** A decision as it is logged, counted and shown: one flat object for all protocols. */
import { z } from 'zod';
import { REQUEST_NAMES } from '../skypilot/request/user-request.ts';

/**
 * The operations in records: those of Blazar, SkyPilot's requests by their names, what got past SkyPilot's policies, and the webhooks of
 * Kubernetes.
 */
export const OPERATIONS = [
  'create',
  'update',
  'commit-create',
  'commit-update',
  'end',
  ...REQUEST_NAMES.map((name) => `skypilot.${name}` as const),
  'skypilot.other',
  'skypilot.bypass',
  'kubernetes.admission',
  'kubernetes.validation',
] as const;

export type RecordedOperation = (typeof OPERATIONS)[number];

/** The side of SkyPilot that asks: the user's machine, or the API server and its controllers. */
export const SIDES = ['client', 'server'] as const;
export type Side = (typeof SIDES)[number];

const text = z.string().nullable();

type DeepReadonly<Value> = Value extends object
  ? { readonly [Name in keyof Value]: DeepReadonly<Value[Name]> }
  : Value;
type Written<Schema extends z.ZodType> = DeepReadonly<z.infer<Schema>>;

export const changeRecordSchema = z.object({
  /** Begins with `task` or `skypilot_config`. */
  path: z.string(),
  /** `null` = there was none. */
  before: text,
  /** `null` = there is none. */
  after: text,
});
/** A value that a policy added, removed or replaced: cut, and without secrets. */
export type ChangeRecord = Written<typeof changeRecordSchema>;

const filterRecordSchema = z.object({
  filter: z.string(),
  /** `bypassed`: it was not asked. */
  outcome: z.enum(['allowed', 'changed', 'rejected', 'failed', 'allowed-on-error', 'bypassed']),
  audit: z.boolean(),
  message: text,
  duration_ms: z.number().nonnegative(),
  /** Only for filters and policies that judge by rules with names: those that said no. With `audit`, a rule refused nothing. */
  rules: z
    .array(z.object({ rule: z.string(), outcome: z.enum(['rejected', 'failed']), audit: z.boolean() }))
    .optional(),
  /** Only for policies of SkyPilot that changed something, or would have. */
  changes: z.array(changeRecordSchema).optional(),
  /** How many more changes there were; missing = none. */
  changes_left_out: z.int().positive().optional(),
});
/** The answer of one filter. */
export type FilterRecord = Written<typeof filterRecordSchema>;
export type FilterOutcome = FilterRecord['outcome'];

/** A line of the log. Unknown fields, which a later version may add, are dropped. */
export const decisionRecordSchema = z.object({
  /** ISO 8601, UTC, with milliseconds. */
  time: z.iso.datetime({ precision: 3 }),
  request_id: z.string(),
  operation: z.enum(OPERATIONS),
  /** Only for SkyPilot: which side of it asked. */
  side: z.enum(SIDES).optional(),
  /** Only for SkyPilot: whether this is the decision that counts for a launch. SkyPilot asks several times about each. */
  launch: z.boolean().optional(),
  /** For SkyPilot the workspace, if the configuration names one; for Kubernetes the namespace. */
  project_id: text,
  /** `null` if SkyPilot does not name the user; for Kubernetes the service account. */
  user_id: text,
  /** What Keystone calls project and user; `null` = it does not tell. Missing unless `[keystone] resolve_names` is true. */
  project_name: text.optional(),
  project_domain: text.optional(),
  user_name: text.optional(),
  user_domain: text.optional(),
  /** `null` if the request has none: Blazar sends none for a new lease. */
  lease_id: text,
  /** For SkyPilot the cluster, for Kubernetes the pod. */
  lease_name: text,
  allowed: z.boolean(),
  /**
   * `changed`: allowed in another form than requested. `audit`: allowed, but an audited filter would have rejected it, or failed.
   * `allowed-on-error`: a filter failed and let it through. `exempt`: the project, or the SkyPilot user or workspace, is exempt.
   * `bypassed`: nobody was asked, and it was found later.
   */
  outcome: z.enum([...filterRecordSchema.shape.outcome.options, 'exempt', 'audit']),
  /** The filter or policy that caused the outcome; `null` = none. */
  filter: text,
  /** The message for the user; `null` if allowed. */
  message: text,
  failed: z.boolean(),
  warnings: z.array(z.string()),
  filters: z.array(filterRecordSchema),
  /** The number of the configuration that decided: 1 since the start, one more with each reload. */
  generation: z.int().positive(),
  /** From the whole request to the answer, waiting included. */
  duration_ms: z.number().nonnegative(),
  /** The trace of OpenTelemetry that the request is part of; missing unless it is recorded. */
  trace_id: z.string().optional(),
});
/** One line of the decision log. Texts from the request are cut at 255 characters, messages at 2000. */
export type DecisionRecord = Written<typeof decisionRecordSchema>;
export type DecisionOutcome = DecisionRecord['outcome'];

/** `undefined` = the text is no record, such as a line that was cut off, or one that this version cannot read. */
export function parsedRecord(text: string): DecisionRecord | undefined;
export function parsedRecord<Value>(text: string, schema: z.ZodType<Value>): Value | undefined;
export function parsedRecord(text: string, schema: z.ZodType = decisionRecordSchema): unknown {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
