/** Formats a calendar (RFC 5545). */
import { formatInstant, type Instant } from '../../lease/dates.ts';

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
