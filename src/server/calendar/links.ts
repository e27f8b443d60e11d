/** Links to the calendar of a project. Each belongs to a user. The database has only a hash of its secret. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { cursorOf, numberIn, type PageOf, type PageQuery, reading } from '../../ledger/reports/pages.ts';
import { rows, type Work } from '../../ledger/storage/database.ts';
import { NEEDED_FOR_CALENDARS } from '../../ledger/storage/rights.ts';
import { ApiError } from '../api/route.ts';
import { rowNumber } from '../api/shown.ts';
import { ledgerWith, type Requester } from '../budgets/named-accounts.ts';
import { type Caller, may } from '../users/caller.ts';
import { digest, randomText } from '../users/sessions/stored-session.ts';

const DAY = 86_400_000_000n;
/** How long a link works after its owner's last visit with the right to see the project, in microseconds. */
const LIFETIME = 30n * DAY;
/** Minimum time between renewals, so that reading does not always write. */
const RENEWED_EVERY = DAY;
/** Links from further in the future were made before a clock was set back, and have ended. */
const CLOCK_TOLERANCE = DAY / 24n;
const MAX_OF_OWNER = 20;
const LINKS = { migration: '0013-calendar-links', needed: NEEDED_FOR_CALENDARS };
/** Advisory lock: links are made one at a time, so that no owner exceeds the maximum. */
const MAKING = 7_042_615_338_120_947n;

export interface CalendarLink {
  readonly id: bigint;
  /** The label of the owner. */
  readonly who: string;
  readonly isOwn: boolean;
  /** Microseconds of the epoch. */
  readonly madeAt: bigint;
  readonly worksUntil: bigint;
}

type LinkRequest = Requester & { readonly projectId: string };

/**
 * The caller's links to the calendar of a project, which are renewed; for managers of the project and
 * operators, all its links. Oldest first.
 *
 * @throws ApiError, LedgerUnavailableError, CursorError
 */
export async function calendarLinksFor(
  request: LinkRequest,
  { limit, after }: PageQuery,
): Promise<PageOf<CalendarLink>> {
  const { caller, projectId, deadline } = request;
  const last = numberIn(after);
  const ledger = await ledgerWithLinks(request);
  const { queries } = ledger.database;
  const now = ledger.now();
  const working = queries.selectFrom('calendar_links').where(isWorking(now));
  const old = working
    .select('id')
    .where('owner', '=', caller.identity)
    .where('project_id', '=', projectId)
    .where('renewed_at', '<=', now - RENEWED_EVERY);
  const read = reading(ledger, deadline);
  if ((await read(() => rows(old.compile()))).length > 0) {
    const renewed = queries.updateTable('calendar_links').set({ renewed_at: now }).where('id', 'in', old);
    await ledger.database.transact(() => rows(renewed.compile()), deadline);
  }
  let listed = working.selectAll().where('project_id', '=', projectId);
  if (!seesAll(caller, projectId)) {
    listed = listed.where('owner', '=', caller.identity);
  }
  if (last !== undefined) {
    listed = listed.where('id', '>', last);
  }
  const sorted = listed.orderBy('id').limit(limit + 1);
  const found = await read(() => rows(sorted.compile()));
  const items = found.slice(0, limit).map((row) => ({
    id: row.id,
    who: row.who,
    isOwn: row.owner === caller.identity,
    madeAt: row.made_at,
    worksUntil: row.renewed_at + LIFETIME,
  }));
  const end = found.length > limit ? items.at(-1) : undefined;
  return { items, next: end && cursorOf([end.id]) };
}

/** Makes a link. Its path has the secret, never shown again. @throws ApiError, LedgerUnavailableError */
export async function makeCalendarLinkFor(
  request: LinkRequest,
): Promise<{ readonly link: CalendarLink; readonly path: string }> {
  const { caller, projectId, deadline } = request;
  const { identity: owner, who } = caller;
  const ledger = await ledgerWithLinks(request);
  if (caller.userId === null) {
    throw new ApiError(422, 'expected a user: a calendar link belongs to a user, not to a shared token');
  }
  const secret = randomText();
  const now = ledger.now();
  const row = { name: digest(secret), owner, who, project_id: projectId, made_at: now, renewed_at: now };
  const id = await ledger.database.transact(() => made(ledger, row), deadline);
  if (id === undefined) {
    throw new ApiError(422, `you have ${MAX_OF_OWNER} calendar links, the maximum: revoke one`);
  }
  return {
    link: { id, who, isOwn: true, madeAt: now, worksUntil: now + LIFETIME },
    path: `/calendars/${secret}.ics`,
  };
}

interface NewLink {
  readonly name: string;
  readonly owner: string;
  readonly who: string;
  readonly project_id: string;
  readonly made_at: bigint;
  readonly renewed_at: bigint;
}

/** `undefined` = the owner has the maximum number of links. */
function* made({ database: { dialect, queries } }: Ledger, row: NewLink): Work<bigint | undefined> {
  if (dialect === 'postgresql') {
    yield* rows(sql`select pg_advisory_xact_lock(${MAKING})`.compile(queries));
  }
  const over = sql<boolean>`not (${isWorking(row.made_at)})`;
  yield* rows(queries.deleteFrom('calendar_links').where(over).compile());
  const own = queries
    .selectFrom('calendar_links')
    .select(({ fn }) => fn.countAll<bigint>().as('count'))
    .where('owner', '=', row.owner);
  const [{ count } = { count: 0n }] = yield* rows(own.compile());
  if (count >= MAX_OF_OWNER) {
    return undefined;
  }
  const [inserted] = yield* rows(queries.insertInto('calendar_links').values(row).returning('id').compile());
  return inserted?.id;
}

/** Revokes the caller's link; for managers and operators, any. @throws ApiError, LedgerUnavailableError */
export async function revokeCalendarLinkFor(request: LinkRequest & { readonly id: string }): Promise<void> {
  const { caller, projectId, deadline, id } = request;
  const ledger = await ledgerWithLinks(request);
  const ofProject = ledger.database.queries
    .deleteFrom('calendar_links')
    .where('id', '=', rowNumber(id))
    .where('project_id', '=', projectId);
  const own = seesAll(caller, projectId) ? ofProject : ofProject.where('owner', '=', caller.identity);
  const revoked = await ledger.database.transact(() => rows(own.returning('id').compile()), deadline);
  if (revoked.length === 0) {
    throw new ApiError(404, 'there is no such calendar link, or it is not yours');
  }
}

/** The project of a link and the id of the ledger; `undefined` = no such link, or it is no longer valid. */
export async function projectOfLink(
  ledger: Ledger,
  secret: string,
  wait: Wait,
): Promise<{ readonly projectId: string; readonly ledgerId: string } | undefined> {
  const query = ledger.database.queries
    .selectFrom('calendar_links')
    .innerJoin('ledger', (join) => join.onTrue())
    .select(['project_id as projectId', 'ledger.id as ledgerId'])
    .where('name', '=', digest(secret))
    .where(isWorking(ledger.now()));
  return (await reading(ledger, wait)(() => rows(query.compile())))[0];
}

function isWorking(now: bigint) {
  return sql<boolean>`renewed_at > ${now - LIFETIME} and renewed_at <= ${now + CLOCK_TOLERANCE}`;
}

function seesAll(caller: Caller, projectId: string): boolean {
  return may(caller, 'set-user-budget', projectId);
}

/** @throws ApiError 404 without a ledger, 503 if it has no table for links yet; LedgerUnavailableError */
export function ledgerWithLinks(requester: Pick<Requester, 'generation' | 'deadline'>): Promise<Ledger> {
  return ledgerWith(requester, LINKS, 'calendars');
}
