/** The text that a case expects: a substring, or a regular expression between slashes. */

import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { isMapping, type Mapping, type Path, valueAt } from '../../base/yaml/tree.ts';
import { jsonText } from '../common/output.ts';

/** `/…/` and `/…/i` are regular expressions, other texts are substrings; `undefined` = a substring. */
export function patternOf(expected: string): RegExp | undefined {
  const [, source, flags] = /^\/(.+)\/(i?)$/s.exec(expected) ?? [];
  try {
    return source === undefined
      ? new RegExp(expected.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'))
      : new RegExp(source, `${flags}u`);
  } catch {
    return undefined;
  }
}

export const expectedText = z
  .string('expected a part of the text, or /a regular expression/')
  .min(1, 'expected a part of the text, or /a regular expression/')
  .refine((written) => patternOf(written) !== undefined, 'expected a regular expression between the slashes');

/** Why a text differs from the expectation; `undefined` = it matches. `what`: the name of the text. */
function textDifference(what: string, expected: string, got: string): string | undefined {
  return patternOf(expected)?.test(got) === true
    ? undefined
    : `expected ${what} to ${expected.startsWith('/') ? 'match' : 'contain'} ${expected}, but it is: ${got}`;
}

/** `resources.any_of[0].use_spot`; names with dots are quoted: `labels."a.b"`. */
function pathOf(text: string): Path {
  return [...text.matchAll(/"([^"]*)"|\[(\d+)\]|([^.[\]"]+)/g)].map(([, quoted, index, name]) =>
    index === undefined ? (quoted ?? name ?? '') : Number(index),
  );
}

/** Equal numbers compare as equal, whether or not they fit in 53 bits. */
export function plain(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  if (isMapping(value)) {
    return new Map(Object.entries(value).map(([name, one]) => [name, plain(one)] as const));
  }
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/**
 * Sentences about the paths where a tree differs from the expectation. `null` also means missing. `trees`:
 * forms of the same value, of which one must be equal.
 */
export function pathDifferences(
  what: string,
  expected: Mapping | undefined,
  trees: readonly unknown[],
  shown: (value: unknown, path: Path) => string = (value) => jsonText(value),
): string[] {
  return Object.entries(expected ?? {}).flatMap(([written, value]) => {
    const path = pathOf(written);
    const got = trees.map((tree) => valueAt(tree, path) ?? null);
    return got.some((one) => isDeepStrictEqual(plain(one), plain(value)))
      ? []
      : [`${what}: ${written}: expected ${shown(value, path)}, got ${shown(got[0], path)}`];
  });
}

export const mapping = z.custom<Mapping>(isMapping, 'expected a mapping');
export const text = (what: string) => z.string(`expected ${what}`).min(1, `expected ${what}`);
export const names = (what: string) => z.union([text(what), z.array(text(what))]);
export const isoTime = z.iso.datetime({
  offset: true,
  error: 'expected a time such as 2026-11-21T09:00:00Z',
});

const ANSWERS = ['allowed', 'changed', 'unchanged', 'rejected'] as const;

const expectation = {
  answer: z.enum(ANSWERS, `expected one of ${ANSWERS.join(', ')}`).optional(),
  rejected: expectedText.optional(),
  rule: names('the name of a rule').optional(),
};

export const EXPECTATION = `expected ${ANSWERS.join(', ')}, or a mapping`;

/** One word, or a mapping. `refusals`: members that name a refusal; `results`: only for allowed requests. */
export function expectationOf<Own extends z.ZodRawShape>(
  what: string,
  own: Own,
  refusals: readonly (keyof Own)[],
  results: readonly (keyof Own)[],
) {
  const whole = z
    .strictObject({ ...expectation, ...own }, 'expected a mapping')
    .superRefine((written, context) => {
      const members = new Map<PropertyKey, unknown>(Object.entries(written));
      const has = (name: PropertyKey) => members.get(name) !== undefined;
      const issue = (name: PropertyKey, message: string) =>
        context.addIssue({ code: 'custom', path: [name], message });
      const answer = members.get('answer');
      const refused = ['rejected', 'rule', ...refusals].some(has);
      if (refused && answer !== undefined && answer !== 'rejected') {
        issue('answer', 'contradicts a rejection');
      }
      const result = results.find(has);
      if ((refused || answer === 'rejected') && result !== undefined) {
        issue(result, `a rejected ${what} has no result`);
      }
    });
  type Expectation = z.infer<typeof whole>;
  const answerAlone = z.enum(ANSWERS, EXPECTATION).transform((answer) => ({ answer }));
  return z.union<readonly [z.ZodType<Expectation>, z.ZodType<Expectation>]>(
    [answerAlone as z.ZodType<unknown> as z.ZodType<Expectation>, whole],
    EXPECTATION,
  );
}

interface Expected {
  readonly answer?: (typeof ANSWERS)[number] | undefined;
  readonly rejected?: string | undefined;
  readonly rule?: string | string[] | undefined;
  readonly warning?: string | undefined;
}

/** The result of a case's request. */
interface Outcome {
  readonly allowed: boolean;
  /** The reason, if there is more to report. */
  readonly allowedAs?: string;
  readonly message: string | null;
  /** What rejected it. `null`: nothing, or no single filter. */
  readonly by: string | null;
  /** The rules that rejected it, except those in audit mode. */
  readonly rules: readonly string[];
  readonly warnings?: readonly string[];
  readonly changed: boolean;
  readonly changedBy: readonly string[];
}

/** `refusals`: other values of the expectation that name a refusal. */
export function expectsRejection({ answer, rejected, rule }: Expected, refusals: readonly unknown[] = []) {
  return answer === 'rejected' || [rejected, rule, ...refusals].some((one) => one !== undefined);
}

/** Expected names that are not in `got`. */
export function missing(expected: string | string[] | undefined, got: readonly string[]): string[] {
  return [expected ?? []].flat().filter((one) => !got.includes(one));
}

/** Sentences; empty if all is as expected. `more`: about members of this kind of case, `false` = none. */
export function differences(
  expected: Expected,
  got: Outcome,
  refusals: readonly unknown[] = [],
  more: readonly (string | false | undefined)[] = [],
): string[] {
  const { answer, rejected, rule, warning } = expected;
  const { by, message, rules, changed } = got;
  const isRejected = expectsRejection(expected, refusals);
  if (got.allowed === isRejected) {
    const rejection = by === null ? 'it was rejected' : `${by} rejected it`;
    const actual = got.allowed ? `it was allowed${got.allowedAs ?? ''}` : `${rejection}: ${message}`;
    return [`expected it to be ${isRejected ? 'rejected' : 'allowed'}, but ${actual}`];
  }
  const silent = missing(rule, rules).join(', ');
  return [
    rejected !== undefined && textDifference('the message', rejected, message ?? ''),
    warning !== undefined && textDifference('the warnings', warning, got.warnings?.join(' ') ?? ''),
    silent !== '' &&
      `expected the rule ${silent} to reject it, but it was ${rules.join(', ') || (by ?? 'rejected')}: ${message}`,
    answer === 'changed' && !changed && 'expected a change, but nothing was changed',
    answer === 'unchanged' &&
      changed &&
      `expected no change, but it was changed by ${got.changedBy.join(', ')}`,
    ...more,
  ].filter((one) => typeof one === 'string');
}
