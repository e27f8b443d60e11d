/** Conversions between the types of CEL. */
import { parseDuration, parseTimestamp, writtenDuration, writtenTimestamp } from './date-texts.ts';
import { Failure } from './failure.ts';
import type { CelFunction } from './function.ts';
import { TEXT, textShape } from './shape.ts';
import { Duration, intOf, NONE, Optional, Timestamp, timestampOf, typeName } from './values.ts';

const NANOSECONDS = 1_000_000_000n;
/** From here on a double may stand for another whole number than the one that was meant. */
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
  ['none/0', { run: () => NONE }],
  ['of/1', { run: (_, value) => new Optional(value), estimate: ([shape = TEXT]) => ({ steps: 1, shape }) }],
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
