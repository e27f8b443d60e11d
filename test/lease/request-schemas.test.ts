import fc from 'fast-check';
import { DateTime } from 'luxon';
import { expect, it } from 'vitest';
import { toInstant } from '../../src/lease/dates.ts';
import { DATE_PATTERN } from '../../src/lease/request-schemas.ts';

const pattern = new RegExp(DATE_PATTERN);

/** Days, weeks and hours that are valid only in some months and years, which a pattern cannot check. `24:00` is valid, `24:01` is not. */
const NOT_IN_EVERY_CALENDAR = /^\d{4}(-\d\d-(29|3[01])|\d\d(29|3[01])(?!\d)|-?366|-?W53)|^[^Tt ]+[Tt ]24/;

/** Unusual forms that luxon accepts and the pattern does not: years before 100, names of zones, offsets of a day or more. */
const READ_BUT_UNUSUAL = /^00|\[|T.*[+-]((2[4-9]|[3-9]\d)(:?\d\d)?|\d\d:?[6-9]\d)$/i;

const FORMS = [
  'yyyy-MM-dd',
  "yyyy-MM-dd'T'HH:mm",
  'yyyy-MM-dd HH:mm',
  'yyyy-MM-dd HH:mm:ss.SSS',
  "yyyy-MM-dd'T'HH:mm:ss,S",
  "yyyy-MM-dd'T'HH:mm:ss'Z'",
  "yyyy-MM-dd't'HH:mm:ssZZ",
  'yyyy-MM-ddZZ',
  "yyyy-MM-dd'T'HH:mm:ss.SSS'999'ZZZ",
  "yyyyMMdd'T'HHmmss'Z'",
  "yyyyMMdd'T'HHmm",
  'yyyy-ooo',
  "yyyyooo'T'HH",
  "kkkk-'W'WW-c'T'HH:mm:ss.SSSZZZ",
  "kkkk'W'WWc",
];

const dates = fc
  .tuple(
    fc.date({ min: new Date('0101-01-01'), max: new Date('9998-12-31'), noInvalidDate: true }),
    fc.constantFrom(...FORMS),
    fc.constantFrom('utc', 'UTC+5:30', 'UTC-11'),
  )
  .map(([date, form, zone]) => DateTime.fromJSDate(date, { zone }).toFormat(form));

it.each(FORMS)('the pattern matches the form %s', (form) => {
  const text = DateTime.fromISO('2026-12-01T09:05:07.250', { zone: 'utc' }).toFormat(form);
  expect({ text, read: toInstant(text) !== undefined, matches: pattern.test(text) }).toEqual({
    text,
    read: true,
    matches: true,
  });
});

it('the pattern matches every date that is read, even with small typing mistakes', () => {
  const changed = fc
    .tuple(
      dates,
      fc.nat(40),
      fc.nat(2),
      fc.string({ unit: fc.constantFrom(...'0129:.,-+TtZzWw ['), maxLength: 2 }),
    )
    .map(([text, at, gone, added]) => text.slice(0, at) + added + text.slice(at + gone));
  fc.assert(
    fc.property(fc.oneof(dates, changed), (text) => {
      fc.pre(!READ_BUT_UNUSUAL.test(text));
      expect({ text, matches: pattern.test(text) || toInstant(text) === undefined }).toMatchObject({
        matches: true,
      });
    }),
    { numRuns: 700 },
  );
});

it('the pattern matches only dates that are read, and days that the calendar does not have', () => {
  fc.assert(
    fc.property(fc.stringMatching(pattern), (text) => {
      fc.pre(!NOT_IN_EVERY_CALENDAR.test(text));
      expect({ text, read: toInstant(text) !== undefined }).toMatchObject({ read: true });
    }),
    { numRuns: 700 },
  );
});
