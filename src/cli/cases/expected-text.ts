/** What a case expects of a text: a part of it, or a regular expression between slashes. */
import { z } from 'zod';

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
