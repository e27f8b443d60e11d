/** `GET /calendars/SECRET.ics`: a project's leases, for calendar programs. The secret replaces a token. */
import Router from '@koa/router';
import type { Context } from 'koa';
import type { Deadline } from '../../base/deadline.ts';
import { errorText, LedgerUnavailableError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { type LeaseRowView, listProjectLeases } from '../../ledger/reports/leases.ts';
import { ApiError } from '../api/route.ts';
import { accountsOf } from '../api/shown.ts';
import type { Generation } from '../configuration/generation.ts';
import { EXACT } from '../own-paths.ts';
import { stateOf } from '../request-state.ts';
import { tokenCaller } from '../users/caller.ts';
import type { UserLimiter } from '../users/user-limiter.ts';
import { type CalendarEvent, calendarText } from './icalendar.ts';
import { ledgerWithLinks, projectOfLink } from './links.ts';

/** The same for links that never existed, were revoked or have expired. */
const UNKNOWN = 'there is no such calendar, or its link has expired or was revoked';
const SECRET_FILE = /^([\w-]{43})\.ics$/;
/** In seconds. */
const RETRY_AFTER = '60';
/** How long ended leases are shown, in microseconds. */
const SHOWN_AFTER_END = 30n * 86_400_000_000n;
/** If there are more, those that were recorded last. */
const MAX_OPEN = 1000;
const MAX_ENDED = 500;

export function calendarRoutes({ line, logger }: { line: UserLimiter; logger: Logger }): Router {
  const router = new Router(EXACT);
  router.get('/calendars/:file', async (ctx: Context) => {
    const { generation, requestId } = stateOf(ctx);
    // The path holds a secret: no log, metric or span shows it.
    stateOf(ctx).route = '/calendars/{file}';
    ctx.set({
      'Cache-Control': 'no-store',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
      'X-Robots-Tag': 'noindex',
    });
    const [, secret] = SECRET_FILE.exec(ctx.params.file ?? '') ?? [];
    if (secret === undefined) {
      ctx.throw(404, UNKNOWN);
    }
    // Anyone may try secrets: all calendars share the limit of one user, so that others are still answered.
    const caller = tokenCaller('reader', 'calendar', 'calendar');
    try {
      ctx.body = await line.run(generation, caller, (deadline) => feed(secret, generation, deadline));
    } catch (thrown) {
      if (thrown instanceof LedgerUnavailableError || (thrown instanceof ApiError && thrown.status === 503)) {
        const { cause } = thrown;
        logger.warn({ request_id: requestId, error: errorText(cause ?? thrown) }, 'a calendar was not sent');
        ctx.throw(503, 'the calendar cannot be read now; please try again', {
          expose: true,
          headers: { 'Retry-After': RETRY_AFTER },
        });
      }
      if (thrown instanceof ApiError) {
        ctx.throw(thrown.status, thrown.message, { headers: thrown.headers });
      }
      throw thrown;
    }
    ctx.type = 'text/calendar; charset=utf-8';
  });
  return router;
}

async function feed(secret: string, generation: Generation, deadline: Deadline): Promise<string> {
  const ledger = await ledgerWithLinks({ generation, deadline });
  const link = await projectOfLink(ledger, secret, deadline);
  if (link === undefined) {
    throw new ApiError(404, UNKNOWN);
  }
  const { projectId, ledgerId } = link;
  const leases = await shownLeases(ledger, projectId, deadline);
  const accounts = await accountsOf({ generation, deadline }, [{ projectId }, ...leases]);
  return calendarText({
    name: `Leases of ${accounts.project(projectId).name ?? projectId}`,
    now: ledger.now(),
    events: leases.map((lease) => {
      const { id, name } = accounts.user(lease.userId);
      return eventOf(lease, ledgerId, name ?? id);
    }),
  });
}

async function shownLeases(ledger: Ledger, projectId: string, deadline: Deadline): Promise<LeaseRowView[]> {
  const from = ledger.now() - SHOWN_AFTER_END;
  const all = { projectId, after: undefined };
  const open = await listProjectLeases(ledger, { ...all, state: 'open', limit: MAX_OPEN }, deadline);
  const ended = await listProjectLeases(ledger, { ...all, state: 'ended', from, limit: MAX_ENDED }, deadline);
  // A lease may have ended between the two queries.
  return [...new Map([...open.items, ...ended.items].map((lease) => [lease.row, lease])).values()];
}

function eventOf(lease: LeaseRowView, ledgerId: string, user: string): CalendarEvent {
  const reserved = [...lease.resources].map(([type, count]) => `${count} ${type}`);
  const of = lease.leaseId === null ? [] : [`Lease: ${lease.leaseId}`];
  return {
    uid: `${lease.row}@${ledgerId}`,
    start: lease.start,
    end: lease.end,
    summary: lease.name === '' ? 'Lease' : lease.name,
    description: [...reserved, `User: ${user}`, `State: ${lease.state}`, ...of].join('\n'),
  };
}
