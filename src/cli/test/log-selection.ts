/** Which decisions of a log are looked at. */
import { nameText } from '../../filter/account-limits.ts';
import type { Named } from '../../filter/request-names.ts';
import type { PastDecision } from './past-decision.ts';

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
