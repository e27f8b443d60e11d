/** A line of the decision log, as far as needed to judge its request again. */

import { isMapping, jsonIn, type Mapping } from '../../base/yaml/tree.ts';
import { nameText } from '../../filter/account-limits.ts';
import type { Named, RequestNames } from '../../filter/verdict.ts';

/** With the member names of the log. */
export interface LoggedDecision {
  /** As written. */
  readonly time: string;
  readonly request_id: string;
  readonly operation: string;
  readonly project_id: string | null;
  readonly user_id: string | null;
  readonly lease_name: string | null;
  readonly allowed: boolean;
  readonly failed: boolean;
  readonly outcome: string;
  readonly filter: string | null;
  readonly message: string | null;
  readonly filters: readonly PastAnswer[];
  /** Why the log does not contain the request. */
  readonly request_left_out?: string | undefined;
}

export interface PastDecision extends LoggedDecision {
  /** In milliseconds since 1970. */
  readonly now: number;
  /** `undefined` = not in the log. */
  readonly request: PastRequest | undefined;
}

interface PastAnswer {
  readonly filter: string;
  readonly outcome: string;
  readonly audit: boolean;
  readonly message: string | null;
}

/** Not validated: the enforcement does that. */
interface PastRequest {
  readonly body: object;
  readonly names: RequestNames | undefined;
}

/** In characters: `2026-11-21T09:14:03.512Z`, with an offset, or microseconds. */
const MAX_TIME = 32;

/**
 * `undefined` = not a decision. Parsed by hand: a schema would be slower than all rules, and extra fields are
 * harmless.
 */
export function pastDecision(line: string): PastDecision | undefined {
  const read = jsonIn(line);
  if (!isMapping(read) || !isDecision(read)) {
    return undefined;
  }
  const { time, request } = read;
  // Dates from other sources may have comments of any length.
  const now = time.length > MAX_TIME ? Number.NaN : Date.parse(time);
  const asked = request === undefined ? undefined : pastRequest(request);
  // Not copied: that would take as long as parsing the line.
  return Number.isNaN(now) || (request !== undefined && asked === undefined)
    ? undefined
    : Object.assign(read, { now, request: asked });
}

function isDecision(read: Mapping): read is Mapping & LoggedDecision {
  const { request_left_out: leftOut, filters } = read;
  return (
    ['time', 'request_id', 'operation', 'outcome'].every((name) => typeof read[name] === 'string') &&
    ['allowed', 'failed'].every((name) => typeof read[name] === 'boolean') &&
    ['project_id', 'user_id', 'lease_name', 'filter', 'message'].every((name) => isTextOrNull(read[name])) &&
    Array.isArray(filters) &&
    filters.every(isAnswer) &&
    (leftOut === undefined || typeof leftOut === 'string')
  );
}

function pastRequest(request: unknown): PastRequest | undefined {
  if (!isMapping(request)) {
    return undefined;
  }
  const { names } = request;
  return names === undefined || isNames(names) ? { body: request, names } : undefined;
}

function isNames(names: unknown): names is RequestNames {
  if (!isMapping(names)) {
    return false;
  }
  const { project, user } = names;
  return (
    (user === undefined || isNamed(user)) &&
    (project === undefined ||
      (isNamed(project) &&
        Array.isArray(project.tags) &&
        project.tags.every((tag) => typeof tag === 'string')))
  );
}

function isNamed(value: unknown): value is Mapping {
  return isMapping(value) && typeof value.name === 'string' && typeof value.domain === 'string';
}

function isAnswer(value: unknown): value is PastAnswer {
  return (
    isMapping(value) &&
    typeof value.filter === 'string' &&
    typeof value.outcome === 'string' &&
    typeof value.audit === 'boolean' &&
    isTextOrNull(value.message)
  );
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}

export interface LogSelection {
  /** By id, or by `name@domain` if the log has names. `undefined` = all. */
  readonly projects: ReadonlySet<string> | undefined;
  readonly users: ReadonlySet<string> | undefined;
  /** In milliseconds since 1970, inclusive and exclusive. */
  readonly since: number | undefined;
  readonly until: number | undefined;
}

export function isSelected(
  { project_id, user_id, now, request }: PastDecision,
  { projects, users, since, until }: LogSelection,
): boolean {
  return (
    (projects === undefined || isAmong(projects, project_id, request?.names?.project)) &&
    (users === undefined || isAmong(users, user_id, request?.names?.user)) &&
    (since === undefined || now >= since) &&
    (until === undefined || now < until)
  );
}

/** As in the lists of filters: domains with `@` in the name cannot be selected. */
function isAmong(wanted: ReadonlySet<string>, id: string | null, named: Named | undefined): boolean {
  return (
    (id !== null && wanted.has(id)) ||
    (named !== undefined && named.domain !== '' && !named.domain.includes('@') && wanted.has(nameText(named)))
  );
}
