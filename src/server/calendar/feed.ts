/**
 * `GET /calendars/SECRET.ics`: a project's leases, for calendar programs (RFC 5545). The secret replaces a
 * token.
 */
import Router from '@koa/router';
import type { Context } from 'koa';
import type { Deadline } from '../../base/deadline.ts';
import { formatInstant, type Instant } from '../../lease/dates.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { type LeaseRowView, listProjectLeases } from '../../ledger/reports/leases.ts';
import { ApiError } from '../api/route.ts';
import { accountsOf } from '../api/shown.ts';
import type { Generation } from '../configuration/generation.ts';
import { EXACT } from '../own-paths.ts';
import { stateOf } from '../request-state.ts';
import { tokenCaller } from '../users/caller.ts';
import type { UserLimiter } from '../users/user-limiter.ts';
import { ledgerWithLinks, projectOfLink } from './links.ts';

/** The same for links that never existed, were revoked or have expired. */
const UNKNOWN = 'there is no such calendar, or its link has expired or was revoked';
const SECRET_FILE = /^([\w-]{43})\.ics$/;
/** How long ended leases are shown, in microseconds. */
const SHOWN_AFTER_END = 30n * 86_400_000_000n;
/** If there are more, those that were recorded last. */
const MAX_OPEN = 1000;
const MAX_ENDED = 500;

export function calendarRoutes(line: UserLimiter): Router {
  const router = new Router(EXACT);
  router.get('/calendars/:file', async (ctx: Context) => {
    const { generation } = stateOf(ctx);
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
    ctx.body = await line.run(generation, caller, (deadline) => feed(secret, generation, deadline));
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

export interface CalendarEvent {
  /** Stays the same for the same event, whatever else changes. */
  readonly uid: string;
  readonly start: Instant;
  /** After `start`, to the second. */
  readonly end: Instant;
  readonly summary: string;
  readonly description: string;
}

interface Calendar {
  readonly name: string;
  readonly now: Instant;
  readonly events: readonly CalendarEvent[];
}

/** Leaves out events that no calendar can hold: before the year 0, after 9999, or without a length. */
export function calendarText({ name, now, events }: Calendar): string {
  const lines = [
    'BEGIN:VCALENDAR',
    'VERSION:2.0',
    'PRODID:-//blazar-enforcement//leases//EN',
    'METHOD:PUBLISH',
    `NAME:${escaped(name)}`,
    `X-WR-CALNAME:${escaped(name)}`,
    // Source: RFC 7986, and the property that Outlook reads instead.
    'REFRESH-INTERVAL;VALUE=DURATION:PT1H',
    'X-PUBLISHED-TTL:PT1H',
  ];
  const stamp = timeOf(now);
  for (const { uid, start, end, summary, description } of events) {
    const from = timeOf(start);
    const until = timeOf(end);
    if (TIME.test(from) && TIME.test(until) && from < until) {
      lines.push(
        ...['BEGIN:VEVENT', `UID:${escaped(uid)}`, `DTSTAMP:${stamp}`, `DTSTART:${from}`, `DTEND:${until}`],
        ...[`SUMMARY:${escaped(summary)}`, `DESCRIPTION:${escaped(description)}`],
        // A lease of the project does not make its members busy.
        ...['TRANSP:TRANSPARENT', 'END:VEVENT'],
      );
    }
  }
  return [...lines, 'END:VCALENDAR'].map((line) => `${folded(line)}\r\n`).join('');
}

const TIME = /^\d{8}T\d{6}Z$/;

/** `20261201T090000Z`, rounded down to the second. */
function timeOf(instant: Instant): string {
  return formatInstant(instant).replace(/\.\d+/, '').replaceAll(/[-:]/g, '');
}

/** Turns all line breaks into `\n`. Removes other control characters and halves of surrogate pairs. */
function escaped(text: string): string {
  return text
    .replaceAll(/[\\;,]/g, '\\$&')
    .replaceAll(/\r\n|[\n\r\u2028\u2029]/g, '\\n')
    .replaceAll(/[^\P{Cc}\t]|\p{Surrogate}/gu, '');
}

/** In octets, without the line break. */
const LONGEST = 75;

/** Continues a long line in the next one, after a space. Characters are not split. */
function folded(line: string): string {
  if (Buffer.byteLength(line) <= LONGEST) {
    return line;
  }
  let text = '';
  let length = 0;
  for (const character of line) {
    const octets = Buffer.byteLength(character);
    if (length + octets > LONGEST) {
      text += '\r\n ';
      length = 1;
    }
    text += character;
    length += octets;
  }
  return text;
}
