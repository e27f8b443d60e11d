/**
 * YAML as PyYAML reads it: version 1.1, in which `yes`, `012`, `1:30`, `2026-11-21` and `~` are not texts.
 * SkyPilot and OpenStack tools use it, so values must mean the same here. Texts that PyYAML would read as
 * another type are quoted.
 *
 * The 1.1 of the `yaml` package differs from PyYAML's: it reads `y` as true and `1e3` as a number. Source:
 * PyYAML 6, `resolver.py` and `constructor.py`.
 */
import {
  type CollectionTag,
  type DocumentOptions,
  type ParseOptions,
  Scalar,
  type ScalarTag,
  type SchemaOptions,
  type ToStringOptions,
} from 'yaml';

const TRUE = ['yes', 'true', 'on'];
const FALSE = ['no', 'false', 'off'];

/** All lower case, all upper case, or the first letter upper case. */
function inThreeCases(words: readonly string[]): RegExp {
  const forms = words.flatMap((word) => [
    word,
    word.toUpperCase(),
    word.charAt(0).toUpperCase() + word.slice(1),
  ]);
  return new RegExp(`^(?:${forms.join('|')})$`);
}

/** Writes values as they were read, so that `0x1F`, `1.50` and twenty digits are preserved. */
function asWritten({ source, value }: Scalar): string {
  return source ?? plainText(value);
}

const nullTag: ScalarTag = {
  tag: 'tag:yaml.org,2002:null',
  default: true,
  test: /^(?:~|null|Null|NULL)?$/,
  identify: (value) => value === null,
  resolve: () => new Scalar(null),
  stringify: ({ source }) => source ?? 'null',
};

const boolTag: ScalarTag = {
  tag: 'tag:yaml.org,2002:bool',
  default: true,
  test: inThreeCases([...TRUE, ...FALSE]),
  identify: (value) => typeof value === 'boolean',
  resolve: (text) => new Scalar(TRUE.includes(text.toLowerCase())),
  stringify: asWritten,
};

const intTag: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*(?::[0-5]?[0-9])*|0x[0-9a-fA-F_]+)$/,
  identify: (value) => typeof value === 'bigint' || Number.isInteger(value),
  resolve: (text, onError) => new Scalar(readInteger(text, onError)),
  stringify: asWritten,
};

const floatTag: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  test: /^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
  identify: (value) => typeof value === 'number',
  resolve: (text) => new Scalar(readFloat(text)),
  stringify: asWritten,
};

/** A scalar that is neither a text nor a number, with its source text. */
export class Special {
  readonly kind: 'moment' | 'merge';
  readonly text: string;

  constructor(kind: Special['kind'], text: string) {
    this.kind = kind;
    this.text = text;
  }
}

/** As Python's `datetime`: no year 0, no second 60, UTC offsets of less than a day. */
function isMoment(text: string): boolean {
  const [, zoneHours = '0', zoneMinutes = '0'] = /[-+](\d{1,2})(?::(\d{2}))?$/.exec(text.slice(10)) ?? [];
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = text.split(/\D+/, 6).map(Number);
  const days = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
  const isDay = year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= days;
  return (
    isDay && hour < 24 && minute < 60 && second < 60 && Number(zoneHours) * 60 + Number(zoneMinutes) < 24 * 60
  );
}

/** A date or a time. The reader decides what value it becomes. */
const timestampTag: ScalarTag = {
  tag: 'tag:yaml.org,2002:timestamp',
  default: true,
  test: /^[0-9]{4}-(?:[0-9]{2}-[0-9]{2}|[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)$/,
  identify: (value) => value instanceof Special && value.kind === 'moment',
  resolve: (text, onError) =>
    isMoment(text) ? new Special('moment', text) : onError('a date that does not exist'),
  stringify: ({ value }) => (value as Special).text,
};

/** `<<: *base`: merges the members of another mapping into this one. */
const mergeTag: ScalarTag = {
  tag: 'tag:yaml.org,2002:merge',
  default: true,
  test: /^<<$/,
  identify: (value) => value instanceof Special && value.kind === 'merge',
  resolve: (text) => new Special('merge', text),
  stringify: ({ value }) => (value as Special).text,
};

/** PyYAML has a type for this character, but cannot construct its value. */
const valueTag: ScalarTag = {
  tag: 'tag:yaml.org,2002:value',
  default: true,
  test: /^=$/,
  resolve: (_, onError) => onError('a lone "="'),
};

/** The text tag of the package, with `textForm` to write it. */
function textTag(own: ScalarTag): ScalarTag {
  return own.stringify === undefined ? own : { ...own, stringify: textForm(own.stringify) };
}

function isTextTag(tag: ScalarTag | CollectionTag): tag is ScalarTag {
  return tag.tag === 'tag:yaml.org,2002:str';
}

const plainTags = [nullTag, boolTag, intTag, floatTag, timestampTag, mergeTag, valueTag];

/** For `new Document` and `new Composer`. */
export const dialect = {
  version: '1.1',
  schema: 'failsafe',
  customTags: (tags) => [
    ...tags.map((tag) => (typeof tag === 'object' && isTextTag(tag) ? textTag(tag) : tag)),
    ...plainTags,
  ],
  resolveKnownTags: false,
  // As in Python, the last one wins.
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: 'silent',
} as const satisfies ParseOptions & DocumentOptions & SchemaOptions;

/** Output options: long lines are not wrapped. */
export const layout = { lineWidth: 0, minContentWidth: 0 } as const satisfies ToStringOptions;

/** Python's limit too; the cost of reading a number is quadratic. */
const MAX_DIGITS = 4300;

function readInteger(text: string, onError: (message: string) => void): number | bigint {
  if (text.length > MAX_DIGITS) {
    onError(`a number of more than ${MAX_DIGITS} digits`);
    return 0;
  }
  const negative = text.startsWith('-');
  const digits = text.replace(/^[-+]/, '').replaceAll('_', '');
  let magnitude = 0n;
  try {
    magnitude = digits.includes(':')
      ? digits.split(':').reduce((sum, part) => sum * 60n + BigInt(part), 0n)
      : BigInt(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits);
  } catch {
    onError('a number without digits');
  }
  const value = negative ? -magnitude : magnitude;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function readFloat(text: string): number {
  const lower = text.toLowerCase().replaceAll('_', '');
  const negative = lower.startsWith('-');
  const digits = lower.replace(/^[-+]/, '');
  if (digits === '.nan') {
    return Number.NaN;
  }
  const magnitude =
    digits === '.inf'
      ? Number.POSITIVE_INFINITY
      : digits.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
  return negative ? -magnitude : magnitude;
}

/**
 * A number from code, in a form that PyYAML reads as a number: its floats need a point, and a sign in the
 * exponent.
 */
function plainText(value: unknown): string {
  if (typeof value !== 'number') {
    return String(value);
  }
  if (Number.isNaN(value)) {
    return '.nan';
  }
  if (!Number.isFinite(value)) {
    return value < 0 ? '-.inf' : '.inf';
  }
  if (Object.is(value, -0)) {
    return '-0.0';
  }
  if (Number.isSafeInteger(value)) {
    return String(value);
  }
  const [digits = '', exponent] = String(value).split('e');
  const mantissa = digits.includes('.') ? digits : `${digits}.0`;
  return exponent === undefined ? mantissa : `${mantissa}e${exponent}`;
}

/**
 * Always escaped: invisible characters, which could change the order of reading, and those that PyYAML refuses or reads as the end of a line,
 * unlike YAML 1.2. Tabs and line ends are allowed.
 */
const ESCAPED = /(?![\t\n])[\p{Cc}\p{Cf}\u2028\u2029\ufffe\uffff\p{Surrogate}]/u;
const EVERY_ESCAPED = new RegExp(ESCAPED, 'gu');

/** Whether the text has several lines, does not start with a blank, and does not end with a blank line. */
function mayKeepLines(text: string): boolean {
  return text.includes('\n') && /^\S/.test(text) && !/\n[\t ]+$/.test(text);
}

type Stringify = NonNullable<ScalarTag['stringify']>;

/** `own` = the package's function, used where its result is unambiguous. */
function textForm(own: Stringify): Stringify {
  return (item, context, onComment, onChompKeep) => {
    const text = String(item.value);
    if (ESCAPED.test(text)) {
      return quoted(text);
    }
    const as = (type: Scalar.Type) =>
      own(
        Object.assign(new Scalar(text), { type, comment: item.comment ?? null }),
        context,
        onComment,
        onChompKeep,
      );
    switch ('type' in item ? item.type : undefined) {
      case Scalar.PLAIN: {
        const written = text.includes('\n') ? '"' : as(Scalar.PLAIN);
        return /^["'|>]/.test(written) ? quoted(text) : written;
      }
      case Scalar.QUOTE_SINGLE:
        return text.includes('\n') ? quoted(text) : `'${text.replaceAll("'", "''")}'`;
      case Scalar.BLOCK_LITERAL:
      case Scalar.BLOCK_FOLDED: {
        const isBlock = context.implicitKey !== true && context.inFlow !== true && mayKeepLines(text);
        return isBlock ? as(Scalar.BLOCK_LITERAL) : quoted(text);
      }
      default:
        return quoted(text);
    }
  };
}

/** In double quotes, on one line. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(EVERY_ESCAPED, escapeOf);
}

function escapeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff
    ? `\\U${code.toString(16).padStart(8, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}
