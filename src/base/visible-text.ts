/**
 * Escapes texts from users, configurations, filters and services for display. They must not control a terminal, change the
 * reading order, start a line, or contain invisible characters.
 */

/** Controls (C0, DEL, C1), formats (bidi, zero width, tags), line and paragraph separators, and halves of surrogate pairs. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const NOT_PLAIN = /[^ -~]/;
const LINES: ReadonlySet<string> = new Set(['\n', '\t']);
const BLANKS = /[\t\n\v\f\r\u0085\u2028\u2029]+/g;

/** As `\u202e`, in JSON's form: a surrogate pair beyond the first plane. */
function escaped(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('');
}

/** Also letters and marks without a glyph, such as fillers and variation selectors, and the Braille blank. */
const SHAPELESS =
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Cn}\p{Co}\p{Default_Ignorable_Code_Point}\u2800\ufffc\u{1d159}]/u;
/** Other characters that look like a space. */
const WIDE = /(?! )\p{Zs}/u;

/** Why a name may look like another one, for its author; `undefined` = all its characters are visible. */
export function nameMistake(name: string): string | undefined {
  const [found] = SHAPELESS.exec(name) ?? WIDE.exec(name) ?? [];
  if (found !== undefined) {
    return `expected visible characters and plain spaces only, got ${escaped(found)}`;
  }
  if (name !== name.trim()) {
    return 'expected no space at the beginning or the end';
  }
  if (name.includes('  ')) {
    return 'expected no two spaces in a row';
  }
  return name === name.normalize('NFC') && !/^\p{M}/u.test(name)
    ? undefined
    : 'expected letters with their marks as one character each (Unicode NFC)';
}

/** Escapes invisible characters and line breaks: for a table cell, or a message. */
export function visibleText(text: string): string {
  return NOT_PLAIN.test(text) ? text.replace(UNSEEN, escaped) : text;
}

/** As `visibleText`, with spaces instead of line breaks and tabs. */
export function onOneLine(text: string): string {
  return NOT_PLAIN.test(text) ? visibleText(text.replace(BLANKS, ' ')) : text;
}

/** `****` for secrets, as they are and as JSON escapes them. Missing and empty ones are ignored. */
export function withoutSecrets(text: string, secrets: readonly (string | undefined)[]): string {
  return (
    secrets
      .flatMap((secret) => (secret ? [secret, JSON.stringify(secret).slice(1, -1)] : []))
      // One may start with another: no rest of it may remain.
      .sort((one, other) => other.length - one.length)
      .reduce((rest, secret) => rest.replaceAll(secret, '****'), text)
  );
}

/** The first half of a surrogate pair. */
const HALF_A_LETTER = /[\ud800-\udbff]$/;

/** At most `length` characters, the last one `…` if some are missing. */
export function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).replace(HALF_A_LETTER, '')}…` : text;
}

/** As `visibleText`, but keeps line breaks and tabs: for multi-line texts. */
export function visibleLines(text: string): string {
  return NOT_PLAIN.test(text) ? text.replace(UNSEEN, (one) => (LINES.has(one) ? one : escaped(one))) : text;
}

/** For complete JSON, which has line breaks only between values: its value does not change. */
export function visibleJson(json: string): string {
  return visibleLines(json);
}

/** Applies `visibleText` to every text and name in a value; `stack` keeps its lines. */
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

/** For a CDATA section of the builder of reports, which escapes the first of these ends only. */
export function inCdata(text: string): string {
  return text.replaceAll(']]>', ']] >');
}

/** For complete XML 1.0: its content does not change, except in CDATA. */
export function visibleXml(xml: string): string {
  return NOT_PLAIN.test(xml)
    ? xml.replace(UNSEEN, (character) =>
        LINES.has(character) ? character : `&#x${character.codePointAt(0)?.toString(16)};`,
      )
    : xml;
}
