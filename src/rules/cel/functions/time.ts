/** Parts of times and durations: `getDayOfWeek('Europe/Berlin')`. Without a zone they are in UTC. */
import { Failure } from '../frame.ts';
import type { CelFunction } from '../function.ts';
import { Duration, Timestamp, typeName } from '../values.ts';

const MILLISECOND = 1_000_000n;
const DAY = 86_400_000;
/** As cel-go documents it: zones are at most 14 hours from UTC. */
const OFFSET = /^([+-]?)(0\d|1[0-4]):([0-5]\d)$/;

/** The offset of a time zone from UTC at a time, in milliseconds. */
type Zone = (time: number) => number;

const PARTS: readonly (readonly [name: string, part: (date: Date) => number])[] = [
  ['getFullYear', (date) => date.getUTCFullYear()],
  ['getMonth', (date) => date.getUTCMonth()],
  ['getDate', (date) => date.getUTCDate()],
  ['getDayOfMonth', (date) => date.getUTCDate() - 1],
  ['getDayOfWeek', (date) => date.getUTCDay()],
  ['getDayOfYear', dayOfYear],
  ['getHours', (date) => date.getUTCHours()],
  ['getMinutes', (date) => date.getUTCMinutes()],
  ['getSeconds', (date) => date.getUTCSeconds()],
  ['getMilliseconds', (date) => date.getUTCMilliseconds()],
];

/**
 * In nanoseconds. For durations, the results are totals, as in cel-go and so in Kubernetes. CEL's own
 * conformance cases have only the part below a second for milliseconds, and say that this will be deprecated.
 */
const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['getHours', 3_600_000n * MILLISECOND],
  ['getMinutes', 60_000n * MILLISECOND],
  ['getSeconds', 1000n * MILLISECOND],
  ['getMilliseconds', MILLISECOND],
]);

export const TIME_FUNCTIONS: readonly (readonly [key: string, CelFunction])[] = PARTS.flatMap(
  ([name, part]): [string, CelFunction][] => [
    [
      `.${name}/0`,
      {
        run: (_, value) => {
          if (value instanceof Timestamp) {
            return BigInt(part(new Date(milliseconds(value))));
          }
          const unit = UNITS.get(name);
          return value instanceof Duration && unit !== undefined
            ? value.nanos / unit
            : new Failure(`${name}() does not suit ${typeName(value)}`);
        },
        estimate: () => ({ steps: 20, shape: { text: 0, items: 0, weight: 1 } }),
      },
    ],
    [
      `.${name}/1`,
      {
        constants: [1],
        prepare: zoneOf,
        run: (frame, value, zone) => {
          frame.meter.spend(500);
          return value instanceof Timestamp
            ? BigInt(part(new Date(local(milliseconds(value), zone as Zone))))
            : new Failure(`${name}() with a time zone needs a time, got ${typeName(value)}`);
        },
        estimate: () => ({ steps: 501, shape: { text: 0, items: 0, weight: 1 } }),
      },
    ],
  ],
);

/** Rounded down. */
function milliseconds({ nanos }: Timestamp): number {
  const whole = nanos / MILLISECOND;
  return Number(nanos < 0n && nanos % MILLISECOND !== 0n ? whole - 1n : whole);
}

function local(time: number, zone: Zone): number {
  return time + zone(time);
}

function dayOfYear(date: Date): number {
  const first = new Date(date);
  first.setUTCMonth(0, 1);
  return Math.round((date.getTime() - first.getTime()) / DAY);
}

/** Maximum number of cached days for each zone: those of a year. */
const MAX_DAYS = 400;

/** Shared by all rules. Limited by the number of existing zones. */
const ZONES = new Map<string, Zone>();

/** An IANA name such as `Europe/Berlin`, or an offset such as `-08:00`. */
function zoneOf(name: unknown): Zone {
  const offset = typeof name === 'string' ? OFFSET.exec(name) : null;
  if (offset !== null) {
    const [, sign, hours = '0', minutes = '0'] = offset;
    const shift = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
    return () => shift;
  }
  const known = ZONES.get(String(name));
  if (known !== undefined) {
    return known;
  }
  try {
    // Offsets of other forms are time zones of Node.js 22, not of 20.
    const timeZone = /^[a-z]/i.test(String(name)) ? String(name) : 'none';
    const format = new Intl.DateTimeFormat('en-US', { ...CLOCK, timeZone });
    const { timeZone: key } = format.resolvedOptions();
    const zone = ZONES.get(key) ?? namedZone(format);
    ZONES.set(key, zone);
    return zone;
  } catch {
    throw new Error(`there is no time zone "${String(name)}"; expected one such as Europe/Berlin or +01:00`);
  }
}

const CLOCK = {
  calendar: 'gregory',
  numberingSystem: 'latn',
  era: 'short',
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
  minute: 'numeric',
  second: 'numeric',
  hourCycle: 'h23',
} as const;

/** Computing an offset takes microseconds: a rule with a weekday would cost more than all others. */
function namedZone(format: Intl.DateTimeFormat): Zone {
  // The offset of a whole day of UTC; `undefined` = it changes on this day.
  const days = new Map<number, number | undefined>();
  const offsetAt = (time: number) => clock(format, time) - time;
  return (time) => {
    const second = Math.floor(time / 1000) * 1000;
    const day = Math.floor(time / DAY);
    let offset = days.get(day);
    if (offset === undefined && !days.has(day)) {
      const first = offsetAt(day * DAY);
      offset = first === offsetAt((day + 1) * DAY) ? first : undefined;
      if (days.size >= MAX_DAYS) {
        days.clear();
      }
      days.set(day, offset);
    }
    return offset ?? offsetAt(second);
  };
}

function clock(format: Intl.DateTimeFormat, time: number): number {
  const parts = new Map(format.formatToParts(time).map(({ type, value }) => [type, value]));
  const part = (name: Intl.DateTimeFormatPartTypes) => Number(parts.get(name));
  const year = parts.get('era') === 'BC' ? 1 - part('year') : part('year');
  const date = new Date(0);
  date.setUTCFullYear(year, part('month') - 1, part('day'));
  date.setUTCHours(part('hour'), part('minute'), part('second'));
  return date.getTime();
}
