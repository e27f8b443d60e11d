/** A line of the decision log, as far as it is needed to judge its request again. */

import { nameText } from '../../filter/account-limits.ts';
import type { Named, RequestNames } from '../../filter/call.ts';

export interface PastDecision {
  /** As it is written. */
  readonly time: string;
  /** In milliseconds since 1970. */
  readonly now: number;
  readonly requestId: string;
  readonly operation: string;
  readonly projectId: string | null;
  readonly userId: string | null;
  readonly leaseName: string | null;
  readonly allowed: boolean;
  readonly failed: boolean;
  readonly outcome: string;
  readonly filter: string | null;
  readonly message: string | null;
  readonly filters: readonly PastAnswer[];
  /** `undefined` = it is not in the log. */
  readonly request: PastRequest | undefined;
  /** Why the request is not there, as the log says. */
  readonly leftOut: string | undefined;
}

interface PastAnswer {
  readonly filter: string;
  readonly outcome: string;
  readonly audit: boolean;
  readonly message: string | null;
}

/** Whether it is a request is for the enforcement to say. */
interface PastRequest {
  readonly body: object;
  readonly names: RequestNames | undefined;
}

/** In characters: `2026-11-21T09:14:03.512Z`, with an offset, or microseconds. */
const MAX_TIME = 32;

type Loose = Readonly<Record<string, unknown>>;

/**
 * `undefined` = the line is no decision. By hand: a schema would take longer than all rules, and a field too many does no harm here.
 */
export function pastDecision(line: string): PastDecision | undefined {
  let read: unknown;
  try {
    read = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isObject(read)) {
    return undefined;
  }
  const { time, request_id, operation, project_id, user_id, lease_name, allowed, failed } = read;
  const { outcome, filter, message, filters, request, request_left_out: leftOut } = read;
  if (
    typeof time !== 'string' ||
    typeof request_id !== 'string' ||
    typeof operation !== 'string' ||
    typeof allowed !== 'boolean' ||
    typeof failed !== 'boolean' ||
    typeof outcome !== 'string' ||
    !isTextOrNull(project_id) ||
    !isTextOrNull(user_id) ||
    !isTextOrNull(lease_name) ||
    !isTextOrNull(filter) ||
    !isTextOrNull(message) ||
    !Array.isArray(filters) ||
    !filters.every(isAnswer) ||
    !(leftOut === undefined || typeof leftOut === 'string')
  ) {
    return undefined;
  }
  // Others than ours may have comments of any length.
  const now = time.length > MAX_TIME ? Number.NaN : Date.parse(time);
  const asked = request === undefined ? undefined : pastRequest(request);
  if (Number.isNaN(now) || (request !== undefined && asked === undefined)) {
    return undefined;
  }
  // Member by member: with spreads, this object would take as long as parsing its line.
  return {
    time,
    now,
    requestId: request_id,
    operation,
    projectId: project_id,
    userId: user_id,
    leaseName: lease_name,
    allowed,
    failed,
    outcome,
    filter,
    message,
    filters,
    request: asked,
    leftOut,
  };
}

function pastRequest(request: unknown): PastRequest | undefined {
  if (!isObject(request)) {
    return undefined;
  }
  const { names } = request;
  return names === undefined || isNames(names) ? { body: request, names } : undefined;
}

function isNames(names: unknown): names is RequestNames {
  if (!isObject(names)) {
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

function isNamed(value: unknown): value is Loose {
  return isObject(value) && typeof value.name === 'string' && typeof value.domain === 'string';
}

function isAnswer(value: unknown): value is PastAnswer {
  return (
    isObject(value) &&
    typeof value.filter === 'string' &&
    typeof value.outcome === 'string' &&
    typeof value.audit === 'boolean' &&
    isTextOrNull(value.message)
  );
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}

function isObject(value: unknown): value is Loose {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export interface LogSelection {
  /** By id, or as `name@domain`, which finds only decisions whose requests are logged with names. `undefined` = all. */
  readonly projects: ReadonlySet<string> | undefined;
  readonly users: ReadonlySet<string> | undefined;
  /** In milliseconds since 1970, inclusive and exclusive. */
  readonly since: number | undefined;
  readonly until: number | undefined;
}

export function isSelected(
  { projectId, userId, now, request }: PastDecision,
  { projects, users, since, until }: LogSelection,
): boolean {
  return (
    (projects === undefined || isAmong(projects, projectId, request?.names?.project)) &&
    (users === undefined || isAmong(users, userId, request?.names?.user)) &&
    (since === undefined || now >= since) &&
    (until === undefined || now < until)
  );
}

/** As in the lists of filters: a domain whose name contains `@` cannot be named. */
function isAmong(wanted: ReadonlySet<string>, id: string | null, named: Named | undefined): boolean {
  return (
    (id !== null && wanted.has(id)) ||
    (named !== undefined && named.domain !== '' && !named.domain.includes('@') && wanted.has(nameText(named)))
  );
}
