/**
 * Texts come from users, configurations, filters and services. Where people read them, nothing in them may steer a terminal, turn
 * the reading order around, begin a line of its own, or be there without being seen.
 */

/** Controls (C0, DEL, C1), formats (bidi, zero width, tags), line and paragraph separators, and halves of surrogate pairs. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const NOT_PLAIN = /[^ -~]/;
const LINES: ReadonlySet<string> = new Set(['\n', '\t']);
const BLANKS = /[\t\n\v\f\r\u0085\u2028\u2029]+/g;

/** As `\u202e`, as JSON writes it: beyond the first plane as two. */
function escaped(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('');
}

/** What is not seen is escaped, line breaks too: for a cell of a table, or a message. */
export function visibleText(text: string): string {
  return NOT_PLAIN.test(text) ? text.replace(UNSEEN, escaped) : text;
}

/** As `visibleText`, with blanks in place of line breaks and tabs. */
export function onOneLine(text: string): string {
  return NOT_PLAIN.test(text) ? visibleText(text.replace(BLANKS, ' ')) : text;
}

/** As `visibleText`, but for line breaks and tabs: for texts of several lines. */
export function visibleLines(text: string): string {
  return NOT_PLAIN.test(text) ? text.replace(UNSEEN, (one) => (LINES.has(one) ? one : escaped(one))) : text;
}

/** Whole JSON, in which line breaks stand between values only: the same to a program. */
export function visibleJson(json: string): string {
  return visibleLines(json);
}

/** The same value with `visibleText` of each of its texts, names too; only what is called `stack` keeps its lines. */
export function visibleValue(value: unknown, name?: string): unknown {
  if (typeof value === 'string') {
    return name === 'stack' ? visibleLines(value) : visibleText(value);
  }
  if (Array.isArray(value)) {
    return value.map((item) => visibleValue(item));
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([key, item]) => [visibleText(key), visibleValue(item, key)]));
}

/** Whole XML 1.0: the same to a program, but inside CDATA. */
export function visibleXml(xml: string): string {
  return NOT_PLAIN.test(xml)
    ? xml.replace(UNSEEN, (character) =>
        LINES.has(character) ? character : `&#x${character.codePointAt(0)?.toString(16)};`,
      )
    : xml;
}
