/** A decision as a row of the table `decisions`, and back. */
import type { AskedTime } from '../recent.ts';
import { type DecisionRecord, decisionRecordSchema } from '../record.ts';
import type { StoredDecision } from './contract.ts';

/** What is written. Numbers of 64 bits are texts, since the rows go through JSON. */
export interface NewRow {
  /** Microseconds of the epoch; a record has milliseconds. */
  readonly at: number;
  readonly request_id: string;
  readonly operation: string;
  readonly outcome: string;
  readonly project_id: string | null;
  readonly user_id: string | null;
  readonly lease_id: string | null;
  readonly project_label: string | null;
  readonly user_label: string | null;
  readonly asked_start: string | null;
  readonly asked_end: string | null;
  readonly concerns: string | null;
  readonly record: string;
}

/** The columns that a search reads. */
export interface ReadRow {
  readonly id: bigint;
  readonly at: bigint;
  readonly asked_start: bigint | null;
  readonly asked_end: bigint | null;
  readonly replica: string;
  readonly record: string;
}

/** Ids are shorter; an index of PostgreSQL holds about 2,700 bytes. */
const LONGEST = 255;
/** What PostgreSQL, or no database, stores. */
export const UNKEPT = /\0|\p{Surrogate}/u;
const EVERY_UNKEPT = /\0|\p{Surrogate}/gu;
/** NUL, or half of a surrogate pair, in JSON. May also match what only looks like it. */
const UNKEPT_IN_JSON = /\\u(?:0000|d[89a-f])/;

/** A row in JSON. What no database keeps is replaced in its record, and cannot be looked for: different texts must not become equal. */
export function rowJson(record: DecisionRecord, asked: AskedTime | undefined): string {
  const json = JSON.stringify(record);
  const row: NewRow = {
    at: Date.parse(record.time) * 1000,
    request_id: replaced(record.request_id),
    operation: record.operation,
    outcome: record.outcome,
    project_id: keyOf(record.project_id),
    user_id: keyOf(record.user_id),
    lease_id: keyOf(record.lease_id),
    project_label: labelOf(record.project_name, record.project_domain),
    user_label: labelOf(record.user_name, record.user_domain),
    asked_start: asked === undefined ? null : String(asked.start),
    asked_end: asked === undefined ? null : String(asked.end),
    concerns: concernsOf(record),
    record: UNKEPT_IN_JSON.test(json) ? JSON.stringify(storable(record)) : json,
  };
  return JSON.stringify(row);
}

/** Text that a later version wrote, and this one cannot read, is left out. */
export function storedDecision({ id, asked_start, asked_end, replica, record }: ReadRow): StoredDecision[] {
  const parsed = parsedRecord(record);
  const asked =
    asked_start === null || asked_end === null ? undefined : { start: asked_start, end: asked_end };
  return parsed === undefined ? [] : [{ id, record: parsed, asked, replica }];
}

function parsedRecord(text: string): DecisionRecord | undefined {
  try {
    return decisionRecordSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** `null` for a text that is not kept whole: a record has at most `LONGEST` characters of it, and "…". */
function keyOf(text: string | null): string | null {
  return text === null || text.length > LONGEST || UNKEPT.test(text) ? null : text;
}

function labelOf(name: string | null | undefined, domain: string | null | undefined): string | null {
  return name && domain ? keyOf(`${name}@${domain}`) : null;
}

/** As `--filter` selects: filters that decided, and those that did anything but allow. */
function concernsOf({ filter, filters }: DecisionRecord): string | null {
  let names: Set<string> | undefined;
  if (filter !== null) {
    names = new Set([shortened(filter)]);
  }
  for (const one of filters) {
    if (one.outcome !== 'allowed') {
      names ??= new Set();
      names.add(shortened(one.filter));
    }
  }
  return names === undefined ? null : JSON.stringify([...names]);
}

function shortened(name: string): string {
  return replaced(name.slice(0, LONGEST));
}

function storable(value: unknown): unknown {
  if (typeof value === 'string') {
    return replaced(value);
  }
  if (Array.isArray(value)) {
    return value.map(storable);
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, storable(item)]))
    : value;
}

function replaced(text: string): string {
  return UNKEPT.test(text) ? text.replace(EVERY_UNKEPT, '\ufffd') : text;
}
