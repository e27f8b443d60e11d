/** Times and durations as texts: RFC 3339, and durations as Go writes them. */
import { Failure } from './failure.ts';
import { Duration, durationOf, type Timestamp, timestampOf } from './values.ts';

const NANOSECONDS = 1_000_000_000n;
const TIMESTAMP =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;
const UNITS: Readonly<Record<string, bigint>> = {
  h: 3_600n * NANOSECONDS,
  m: 60n * NANOSECONDS,
  s: NANOSECONDS,
  ms: 1_000_000n,
  us: 1000n,
  µs: 1000n,
  μs: 1000n,
  ns: 1n,
};
const PART = /(\d{0,18})(?:\.(\d{0,18}))?(h|ms|m|s|us|µs|μs|ns)/y;

export function parseTimestamp(text: string): Timestamp | Failure {
  const match = TIMESTAMP.exec(text);
  const failure = () =>
    new Failure(`timestamp() needs a time such as 2027-01-31T08:00:00Z or 2027-01-31T08:00:00+01:00`);
  if (match === null) {
    return failure();
  }
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const [fraction = '', sign, hours = 0, minutes = 0] = [
    match[7],
    match[8],
    Number(match[9] ?? 0),
    Number(match[10] ?? 0),
  ];
  const midnight = new Date(0);
  midnight.setUTCFullYear(year, month - 1, day);
  if (
    year < 1 ||
    midnight.getUTCMonth() !== month - 1 ||
    midnight.getUTCDate() !== day ||
    hour > 23 ||
    minute > 59 ||
    second > 59 ||
    hours > 23 ||
    minutes > 59
  ) {
    return failure();
  }
  const shift = (sign === '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
  const seconds = midnight.getTime() / 1000 + hour * 3600 + minute * 60 + second - shift;
  return timestampOf(BigInt(seconds) * NANOSECONDS + BigInt(fraction.padEnd(9, '0') || '0'));
}

export function parseDuration(text: string): Duration | Failure {
  const failure = () => new Failure('duration() needs a text such as 36h, 1h30m or 90s');
  const sign = /^[-+]/.test(text) ? text[0] : '';
  const rest = text.slice(sign?.length ?? 0);
  if (rest === '0') {
    return new Duration(0n);
  }
  if (rest === '' || rest.length > 100) {
    return failure();
  }
  let nanos = 0n;
  PART.lastIndex = 0;
  while (PART.lastIndex < rest.length) {
    const match = PART.exec(rest);
    const [, whole = '', fraction = '', unit = ''] = match ?? [];
    const size = UNITS[unit];
    if (size === undefined || (whole === '' && fraction === '')) {
      PART.lastIndex = 0;
      return failure();
    }
    nanos += BigInt(whole || '0') * size;
    nanos += (BigInt(fraction || '0') * size) / 10n ** BigInt(fraction.length);
  }
  return durationOf(sign === '-' ? -nanos : nanos);
}

/** `2027-01-31T08:00:00Z`, with a fraction if there is one. */
export function writtenTimestamp({ nanos }: Timestamp): string {
  const rest = ((nanos % NANOSECONDS) + NANOSECONDS) % NANOSECONDS;
  const date = new Date(Number((nanos - rest) / 1_000_000n));
  return `${date.toISOString().slice(0, 19)}${fractionOf(rest)}Z`;
}

/** `5400s`, with a fraction if there is one. */
export function writtenDuration({ nanos }: Duration): string {
  const size = nanos < 0n ? -nanos : nanos;
  return `${nanos < 0n ? '-' : ''}${size / NANOSECONDS}${fractionOf(size % NANOSECONDS)}s`;
}

function fractionOf(nanos: bigint): string {
  return nanos === 0n ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`;
}
