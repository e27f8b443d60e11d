/** The text of a calendar, as RFC 5545 wants it. */
import '../../support/properties.ts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toInstant } from '../../../src/lease/dates.ts';
import { type CalendarEvent, calendarText } from '../../../src/server/calendar/feed.ts';

const at = (date: string) => toInstant(date) ?? 0n;
const EVENT: CalendarEvent = {
  uid: '7@ledger',
  summary: 'run',
  description: '2 physical:host',
  start: at('2026-12-01T09:00:00.7Z'),
  end: at('2026-12-03'),
};
const written = (...events: readonly Partial<CalendarEvent>[]) =>
  calendarText({
    name: 'Leases of climate',
    now: at('2026-11-21T09:00:30Z'),
    events: events.map((event) => ({ ...EVENT, ...event })),
  });

/** The value of a property, as a program reads it. */
function readValue(text: string, name: string): string | undefined {
  const line = text
    .replaceAll('\r\n ', '')
    .split('\r\n')
    .find((one) => one.startsWith(`${name}:`));
  return line
    ?.slice(name.length + 1)
    .replaceAll(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}

describe('the text of a calendar', () => {
  it('has the times of events in UTC, to the second', () => {
    expect(written({}).split('\r\n')).toEqual([
      ...['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//blazar-enforcement//leases//EN', 'METHOD:PUBLISH'],
      ...['NAME:Leases of climate', 'X-WR-CALNAME:Leases of climate'],
      ...['REFRESH-INTERVAL;VALUE=DURATION:PT1H', 'X-PUBLISHED-TTL:PT1H'],
      ...['BEGIN:VEVENT', 'UID:7@ledger', 'DTSTAMP:20261121T090030Z'],
      ...['DTSTART:20261201T090000Z', 'DTEND:20261203T000000Z'],
      ...['SUMMARY:run', 'DESCRIPTION:2 physical:host', 'TRANSP:TRANSPARENT', 'END:VEVENT'],
      ...['END:VCALENDAR', ''],
    ]);
  });

  it('leaves out events that no calendar can hold', () => {
    const { start } = EVENT;
    expect(
      written({ end: start }, { end: start + 1n }, { end: start - 1n }, { end: 1n << 60n }),
    ).not.toContain('VEVENT');
  });

  it('has each text in one value, whatever it is, and no line that is too long', () => {
    const property = fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (summary) => {
      const text = written({ summary });
      const lines = text.split('\r\n');
      expect(text).not.toMatch(/[^\r]\n|\r[^\n]/);
      for (const line of lines) {
        expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75);
        expect(line).not.toContain('\ufffd');
      }
      expect(lines.filter((line) => line === 'END:VEVENT')).toHaveLength(1);
      const expected = summary
        .replaceAll(/\r\n|[\n\r\u2028\u2029]/g, '\n')
        .replaceAll(/[^\P{Cc}\t\n]|\p{Surrogate}/gu, '');
      expect(readValue(text, 'SUMMARY')).toBe(expected);
    });
    const hostile = [
      'a\r\nEND:VEVENT\r\nBEGIN:VALARM',
      '\\n;,',
      '\u{1f600}'.repeat(60),
      'é'.repeat(99),
      '__proto__',
    ];
    fc.assert(property, { examples: hostile.map((text) => [text]) });
  });
});
