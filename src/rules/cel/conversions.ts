/** Conversions between the types of CEL. Times are written as in RFC 3339, durations as in Go. */
import { Failure } from './frame.ts';
import { type CelFunction, TEXT, textShape } from './function.ts';
import { Duration, durationOf, intOf, NONE, Optional, Timestamp, timestampOf, typeName } from './values.ts';

const NANOSECONDS = 1_000_000_000n;
/** Doubles from here on do not fit into an int. */
const INT_LIMIT = 2 ** 63;

export const CONVERSIONS: readonly (readonly [key: string, CelFunction])[] = [
  conversion('int', toInt),
  conversion('double', toDouble),
  conversion('string', toText),
  conversion('bool', toBool),
  conversion('dyn', (value) => value),
  conversion('timestamp', toTimestamp),
  conversion('duration', (value) =>
    value instanceof Duration ? value : typeof value === 'string' ? parseDuration(value) : undefined,
  ),
  ['.hasValue/0', { run: (_, value) => (value instanceof Optional ? value.value !== undefined : undefined) }],
  [
    '.value/0',
    {
      run: (_, value) =>
        value instanceof Optional && value.value !== undefined
          ? value.value
          : new Failure('the optional value is missing'),
      estimate: ([shape = TEXT]) => ({ steps: 1, shape }),
    },
  ],
];

export const OPTIONAL_FUNCTIONS: ReadonlyMap<string, CelFunction> = new Map<string, CelFunction>([
  ['.none/0', { run: () => NONE }],
  ['.of/1', { run: (_, value) => new Optional(value), estimate: ([shape = TEXT]) => ({ steps: 1, shape }) }],
]);

function conversion(name: string, convert: (value: unknown) => unknown): readonly [string, CelFunction] {
  return [
    `${name}/1`,
    {
      run: ({ meter }, value) => {
        if (typeof value === 'string') {
          meter.spend(value.length >> 4);
        }
        const converted = convert(value);
        return converted === undefined
          ? new Failure(`${name}() cannot convert ${typeName(value)}`)
          : converted;
      },
      estimate: ([shape = TEXT]) => ({
        steps: 1 + (shape.text >> 4),
        shape: name === 'dyn' ? shape : textShape(Math.max(shape.text, 40)),
      }),
    },
  ];
}

function toInt(value: unknown): unknown {
  if (typeof value === 'bigint') {
    return value;
  }
  if (typeof value === 'number') {
    return Math.abs(value) < INT_LIMIT
      ? BigInt(Math.trunc(value))
      : new Failure('the number does not fit into 64 bits');
  }
  if (typeof value === 'string') {
    return /^-?\d{1,19}$/.test(value)
      ? intOf(BigInt(value))
      : new Failure('int() got a text that is no whole number');
  }
  if (value instanceof Timestamp) {
    const seconds = value.nanos / NANOSECONDS;
    return value.nanos < 0n && value.nanos % NANOSECONDS !== 0n ? seconds - 1n : seconds;
  }
  return undefined;
}

function toDouble(value: unknown): unknown {
  if (typeof value === 'string') {
    return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/.test(value)
      ? Number(value)
      : new Failure('double() got a text that is no number');
  }
  return typeof value === 'number' ? value : typeof value === 'bigint' ? Number(value) : undefined;
}

function toText(value: unknown): unknown {
  switch (typeof value) {
    case 'string':
      return value;
    case 'bigint':
    case 'boolean':
      return String(value);
    case 'number':
      return Number.isFinite(value)
        ? String(value)
        : Number.isNaN(value)
          ? 'NaN'
          : value < 0
            ? '-Inf'
            : '+Inf';
    default:
      return value instanceof Timestamp
        ? writtenTimestamp(value)
        : value instanceof Duration
          ? writtenDuration(value)
          : undefined;
  }
}

function toBool(value: unknown): unknown {
  if (typeof value !== 'string') {
    return typeof value === 'boolean' ? value : undefined;
  }
  if (/^(?:1|t|true|TRUE|True)$/.test(value)) {
    return true;
  }
  return /^(?:0|f|false|FALSE|False)$/.test(value)
    ? false
    : new Failure('bool() got a text that is neither true nor false');
}

function toTimestamp(value: unknown): unknown {
  return value instanceof Timestamp
    ? value
    : typeof value === 'string'
      ? parseTimestamp(value)
      : typeof value === 'bigint'
        ? timestampOf(value * NANOSECONDS)
        : undefined;
}

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

function parseTimestamp(text: string): Timestamp | Failure {
  const match = TIMESTAMP.exec(text);
  const failure = () =>
    new Failure(`timestamp() needs a time such as 2027-01-31T08:00:00Z or 2027-01-31T08:00:00+01:00`);
  if (match === null) {
    return failure();
  }
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const fraction = match[7] ?? '';
  const sign = match[8];
  const hours = Number(match[9] ?? 0);
  const minutes = Number(match[10] ?? 0);
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

function parseDuration(text: string): Duration | Failure {
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

/** `2027-01-31T08:00:00Z`, with a fraction if any. */
export function writtenTimestamp({ nanos }: Timestamp): string {
  const rest = ((nanos % NANOSECONDS) + NANOSECONDS) % NANOSECONDS;
  const date = new Date(Number((nanos - rest) / 1_000_000n));
  return `${date.toISOString().slice(0, 19)}${fractionOf(rest)}Z`;
}

/** `5400s`, with a fraction if any. */
export function writtenDuration({ nanos }: Duration): string {
  const size = nanos < 0n ? -nanos : nanos;
  return `${nanos < 0n ? '-' : ''}${size / NANOSECONDS}${fractionOf(size % NANOSECONDS)}s`;
}

function fractionOf(nanos: bigint): string {
  return nanos === 0n ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`;
}
