/** What a case expects of a text: a part of it, or a regular expression between slashes. */

import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { isMapping, type Mapping, type Path, valueAt } from '../../base/yaml/tree.ts';
import { jsonText } from '../common/output.ts';

/** `/…/` and `/…/i` are regular expressions, everything else a part of the text; `undefined` = no regular expression. */
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

/** Why a text is not as expected; `undefined` = it is. `what`: what the text is called. */
export function textDifference(what: string, expected: string, got: string): string | undefined {
  return patternOf(expected)?.test(got) === true
    ? undefined
    : `expected ${what} to ${expected.startsWith('/') ? 'match' : 'contain'} ${expected}, but it is: ${got}`;
}

/** `resources.any_of[0].use_spot`; a name with dots in quotes: `labels."a.b"`. */
export function pathOf(text: string): Path {
  return [...text.matchAll(/"([^"]*)"|\[(\d+)\]|([^.[\]"]+)/g)].map(([, quoted, index, name]) =>
    index === undefined ? (quoted ?? name ?? '') : Number(index),
  );
}

/** Equal numbers are equal, whether of 53 bits or not. */
export function plain(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  if (isMapping(value)) {
    return new Map(Object.entries(value).map(([name, one]) => [name, plain(one)] as const));
  }
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** Sentences about the paths at which a tree is not as expected. `null` = missing, too. */
export function pathDifferences(what: string, expected: Mapping | undefined, tree: unknown): string[] {
  return Object.entries(expected ?? {}).flatMap(([path, value]) => {
    const got = valueAt(tree, pathOf(path)) ?? null;
    return isDeepStrictEqual(plain(got), plain(value))
      ? []
      : [`${what}: ${path}: expected ${jsonText(value)}, got ${jsonText(got)}`];
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

/** What every expectation may have, beside what it has of its own. */
export const expectation = {
  answer: z.enum(ANSWERS, `expected one of ${ANSWERS.join(', ')}`).optional(),
  rejected: expectedText.optional(),
  rule: names('the name of a rule').optional(),
};

export const EXPECTATION = `expected ${ANSWERS.join(', ')}, or a mapping`;
/** An expectation that is one word. */
export const answerAlone = z.enum(ANSWERS, EXPECTATION).transform((answer) => ({ answer }));

/** Issues of an expectation that says two things. `refused`: it names a refusal; `results`: what only an allowed request has. */
export function contradictions(
  answer: (typeof ANSWERS)[number] | undefined,
  refused: boolean,
  results: object,
  [ofAnswer, ofResult]: readonly [string, string],
  context: z.core.$RefinementCtx,
): void {
  if (refused && answer !== undefined && answer !== 'rejected') {
    context.addIssue({ code: 'custom', path: ['answer'], message: ofAnswer });
  }
  const [result] = Object.entries(results).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if ((refused || answer === 'rejected') && result !== undefined) {
    context.addIssue({ code: 'custom', path: [result], message: ofResult });
  }
}
