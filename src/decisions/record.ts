/** A decision as it is logged, counted and shown: one flat object for all protocols. */
import { z } from 'zod';
import { visibleJson } from '../base/visible-text.ts';
import { REQUEST_NAMES } from '../skypilot/request/user-request.ts';

/**
 * The operations in records: Blazar's operations, SkyPilot's requests by name, SkyPilot events that bypassed
 * policies, and Kubernetes webhooks.
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

/** The side of SkyPilot that sent the request: the user's machine, or the API server and its controllers. */
export const SIDES = ['client', 'server'] as const;
export type Side = (typeof SIDES)[number];

const text = z.string().nullable();

type DeepReadonly<Value> = Value extends object
  ? { readonly [Name in keyof Value]: DeepReadonly<Value[Name]> }
  : Value;
type Written<Schema extends z.ZodType> = DeepReadonly<z.infer<Schema>>;

export const changeRecordSchema = z.object({
  /** Starts with `task` or `skypilot_config`. */
  path: z.string(),
  /** `null` = not set before. */
  before: text,
  /** `null` = removed. */
  after: text,
});
/** A value that a policy added, removed or replaced: truncated, and without secrets. */
export type ChangeRecord = Written<typeof changeRecordSchema>;

const filterRecordSchema = z.object({
  filter: z.string(),
  /** `bypassed`: the filter was not called. */
  outcome: z.enum(['allowed', 'changed', 'rejected', 'failed', 'allowed-on-error', 'bypassed']),
  audit: z.boolean(),
  message: text,
  duration_ms: z.number().nonnegative(),
  /**
   * Only for filters and policies with named rules: the rules that rejected or failed. With `audit`, a rule
   * refused nothing.
   */
  rules: z
    .array(z.object({ rule: z.string(), outcome: z.enum(['rejected', 'failed']), audit: z.boolean() }))
    .optional(),
  /** Only for SkyPilot policies that changed something, or would have. */
  changes: z.array(changeRecordSchema).optional(),
  /** Number of further changes; missing = none. */
  changes_left_out: z.int().positive().optional(),
});
/** The result of one filter. */
export type FilterRecord = Written<typeof filterRecordSchema>;
export type FilterOutcome = FilterRecord['outcome'];

/** A line of the log. Unknown fields, from later versions, are dropped. */
export const decisionRecordSchema = z.object({
  /** ISO 8601, UTC, with milliseconds. */
  time: z.iso.datetime({ precision: 3 }),
  request_id: z.string(),
  operation: z.enum(OPERATIONS),
  /** Only for SkyPilot: the side that sent the request. */
  side: z.enum(SIDES).optional(),
  /**
   * Only for SkyPilot: whether this decision counts as a launch. SkyPilot sends several requests per launch.
   */
  launch: z.boolean().optional(),
  /** For SkyPilot the workspace, if the configuration has one; for Kubernetes the namespace. */
  project_id: text,
  /** `null` = SkyPilot sent no user. For Kubernetes the service account. */
  user_id: text,
  /** Names in Keystone; `null` = unknown. Missing unless `[keystone] resolve_names` is true. */
  project_name: text.optional(),
  project_domain: text.optional(),
  user_name: text.optional(),
  user_domain: text.optional(),
  /** `null` = not in the request: Blazar sends none for a new lease. */
  lease_id: text,
  /** For SkyPilot the cluster, for Kubernetes the pod. */
  lease_name: text,
  allowed: z.boolean(),
  /**
   * `changed`: allowed in another form than requested. `audit`: allowed, but an audited filter would have
   * rejected it, or failed. `allowed-on-error`: a filter failed and the lease was allowed. `exempt`: the
   * project, or the SkyPilot user or workspace, is exempt. `bypassed`: an event without a decision that was
   * found later.
   */
  outcome: z.enum([...filterRecordSchema.shape.outcome.options, 'exempt', 'audit']),
  /** The filter or policy that caused the outcome; `null` = none. */
  filter: text,
  /** The message for the user; `null` = allowed. */
  message: text,
  failed: z.boolean(),
  warnings: z.array(z.string()),
  filters: z.array(filterRecordSchema),
  /** The generation of the configuration: 1 at the start, increased by each reload. */
  generation: z.int().positive(),
  /** From the complete request to the response, including waiting. */
  duration_ms: z.number().nonnegative(),
  /** The OpenTelemetry trace of the request; missing unless it is recorded. */
  trace_id: z.string().optional(),
});
/** One line of the decision log. Texts from the request are truncated to 255 characters, messages to 2000. */
export type DecisionRecord = Written<typeof decisionRecordSchema>;
export type DecisionOutcome = DecisionRecord['outcome'];

/** `undefined` = not a record, such as an incomplete line, or one that this version cannot read. */
export function parsedRecord(text: string): DecisionRecord | undefined;
export function parsedRecord<Value>(text: string, schema: z.ZodType<Value>): Value | undefined;
export function parsedRecord(text: string, schema: z.ZodType = decisionRecordSchema): unknown {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** `skypilot.launch (client)`: for SkyPilot with the side that sent the request. */
export function operationText({ operation, side }: DecisionRecord): string {
  return side === undefined ? operation : `${operation} (${side})`;
}

/** Needs no escaping, neither for JSON nor for readers of the log. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** The same text as `visibleJson(JSON.stringify(record))`, in the order of the fields of `DecisionRecord`. */
export function recordJson(record: DecisionRecord): string {
  const { side, launch, warnings } = record;
  return (
    // Always plain: an ISO date, an enumeration.
    `{"time":"${record.time}","request_id":${quoted(record.request_id)},"operation":"${record.operation}"` +
    (side === undefined ? '' : `,"side":"${side}"`) +
    (launch === undefined ? '' : `,"launch":${launch}`) +
    `,"project_id":${jsonText(record.project_id)},"user_id":${jsonText(record.user_id)}` +
    namesOf(record) +
    `,"lease_id":${jsonText(record.lease_id)},"lease_name":${jsonText(record.lease_name)},"allowed":${record.allowed}` +
    `,"outcome":"${record.outcome}","filter":${jsonText(record.filter)},"message":${jsonText(record.message)}` +
    `,"failed":${record.failed},"warnings":${warnings.length === 0 ? '[]' : whole(warnings)}` +
    `,"filters":${filtersJson(record.filters)},"generation":${record.generation}` +
    `,"duration_ms":${number(record.duration_ms)}${member('trace_id', record.trace_id)}}`
  );
}

function namesOf({ project_name, project_domain, user_name, user_domain }: DecisionRecord): string {
  return (
    member('project_name', project_name) +
    member('project_domain', project_domain) +
    member('user_name', user_name) +
    member('user_domain', user_domain)
  );
}

function member(name: string, value: string | null | undefined): string {
  return value === undefined ? '' : `,"${name}":${jsonText(value)}`;
}

function filtersJson(filters: readonly FilterRecord[]): string {
  let json = '';
  for (const { filter, outcome, audit, message, duration_ms, rules, changes, changes_left_out } of filters) {
    json +=
      `${json === '' ? '[' : ','}{"filter":${quoted(filter)},"outcome":"${outcome}","audit":${audit}` +
      `,"message":${jsonText(message)},"duration_ms":${number(duration_ms)}` +
      (rules === undefined ? '' : `,"rules":${whole(rules)}`) +
      (changes === undefined ? '' : `,"changes":${whole(changes)}`) +
      (changes_left_out === undefined ? '' : `,"changes_left_out":${changes_left_out}`) +
      '}';
  }
  return json === '' ? '[]' : `${json}]`;
}

function jsonText(value: string | null): string {
  return value === null ? 'null' : quoted(value);
}

function quoted(value: string): string {
  return PLAIN.test(value) ? `"${value}"` : whole(value);
}

/** For rare values. */
function whole(value: unknown): string {
  return visibleJson(JSON.stringify(value));
}

function number(value: number): string {
  return Number.isFinite(value) ? `${value}` : 'null';
}
