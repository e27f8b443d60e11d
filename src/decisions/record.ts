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

/** The answer of one filter. `bypassed`: it was not asked. */
export type FilterOutcome = 'allowed' | 'changed' | 'rejected' | 'failed' | 'allowed-on-error' | 'bypassed';

export type DecisionOutcome = FilterOutcome | 'exempt' | 'audit';

/** One line of the decision log. Texts from the request are cut at 255 characters, messages at 2000. */
export interface DecisionRecord {
  /** ISO 8601, UTC, with milliseconds. */
  readonly time: string;
  readonly request_id: string;
  readonly operation: RecordedOperation;
  /** Only for SkyPilot: which side of it asked. */
  readonly side?: Side | undefined;
  /** Only for SkyPilot: whether this is the decision that counts for a launch. SkyPilot asks several times about each. */
  readonly launch?: boolean | undefined;
  /** For SkyPilot the workspace, if the configuration names one; for Kubernetes the namespace. */
  readonly project_id: string | null;
  /** `null` if SkyPilot does not name the user; for Kubernetes the service account. */
  readonly user_id: string | null;
  /** What Keystone calls project and user; `null` = it does not tell. Missing unless `[keystone] resolve_names` is true. */
  readonly project_name?: string | null | undefined;
  readonly project_domain?: string | null | undefined;
  readonly user_name?: string | null | undefined;
  readonly user_domain?: string | null | undefined;
  /** `null` if the request has none: Blazar sends none for a new lease. */
  readonly lease_id: string | null;
  /** For SkyPilot the cluster, for Kubernetes the pod. */
  readonly lease_name: string | null;
  readonly allowed: boolean;
  /**
   * `changed`: allowed in another form than requested. `audit`: allowed, but an audited filter would have rejected it, or failed.
   * `allowed-on-error`: a filter failed and let it through. `exempt`: the project, or the SkyPilot user or workspace, is exempt.
   * `bypassed`: nobody was asked, and it was found later.
   */
  readonly outcome: DecisionOutcome;
  /** The filter or policy that caused the outcome; `null` = none. */
  readonly filter: string | null;
  /** The message for the user; `null` if allowed. */
  readonly message: string | null;
  readonly failed: boolean;
  readonly warnings: readonly string[];
  readonly filters: readonly FilterRecord[];
  /** The number of the configuration that decided: 1 since the start, one more with each reload. */
  readonly generation: number;
  /** From the whole request to the answer, waiting included. */
  readonly duration_ms: number;
  /** The trace of OpenTelemetry that the request is part of; missing unless it is recorded. */
  readonly trace_id?: string | undefined;
}

/** The side of SkyPilot that asks: the user's machine, or the API server and its controllers. */
export const SIDES = ['client', 'server'] as const;
export type Side = (typeof SIDES)[number];

/** A value that a policy added, removed or replaced: cut, and without secrets. */
export interface ChangeRecord {
  /** Begins with `task` or `skypilot_config`. */
  readonly path: string;
  /** `null` = there was none. */
  readonly before: string | null;
  /** `null` = there is none. */
  readonly after: string | null;
}

/** Only for policies of SkyPilot that changed something, or would have. */
export interface RecordedChanges {
  readonly changes?: readonly ChangeRecord[] | undefined;
  /** How many more changes there were; missing = none. */
  readonly changes_left_out?: number | undefined;
}

export const changeRecordSchema = z.object({
  path: z.string(),
  before: z.string().nullable(),
  after: z.string().nullable(),
}) satisfies z.ZodType<ChangeRecord>;

export interface FilterRecord extends RecordedChanges {
  readonly filter: string;
  readonly outcome: FilterOutcome;
  readonly audit: boolean;
  readonly message: string | null;
  readonly duration_ms: number;
  /** Only for filters and policies that judge by rules with names: those that said no. */
  readonly rules?: readonly RuleRecord[] | undefined;
}

/** A rule that rejected the request or failed; with `audit`, it refused nothing. */
export interface RuleRecord {
  readonly rule: string;
  readonly outcome: 'rejected' | 'failed';
  readonly audit: boolean;
}

const filterRecordSchema = z.object({
  filter: z.string(),
  outcome: z.enum(['allowed', 'changed', 'rejected', 'failed', 'allowed-on-error', 'bypassed']),
  audit: z.boolean(),
  message: z.string().nullable(),
  duration_ms: z.number().nonnegative(),
  rules: z
    .array(z.object({ rule: z.string(), outcome: z.enum(['rejected', 'failed']), audit: z.boolean() }))
    .optional(),
  changes: z.array(changeRecordSchema).optional(),
  changes_left_out: z.int().positive().optional(),
}) satisfies z.ZodType<FilterRecord>;

/** A line of the log. Unknown fields, which a later version may add, are dropped. */
export const decisionRecordSchema = z.object({
  time: z.iso.datetime({ precision: 3 }),
  request_id: z.string(),
  operation: z.enum(OPERATIONS),
  side: z.enum(SIDES).optional(),
  launch: z.boolean().optional(),
  project_id: z.string().nullable(),
  user_id: z.string().nullable(),
  project_name: z.string().nullish(),
  project_domain: z.string().nullish(),
  user_name: z.string().nullish(),
  user_domain: z.string().nullish(),
  lease_id: z.string().nullable(),
  lease_name: z.string().nullable(),
  allowed: z.boolean(),
  outcome: z.enum([...filterRecordSchema.shape.outcome.options, 'exempt', 'audit']),
  filter: z.string().nullable(),
  message: z.string().nullable(),
  failed: z.boolean(),
  warnings: z.array(z.string()),
  filters: z.array(filterRecordSchema),
  generation: z.int().positive(),
  duration_ms: z.number().nonnegative(),
  trace_id: z.string().optional(),
}) satisfies z.ZodType<DecisionRecord>;

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
