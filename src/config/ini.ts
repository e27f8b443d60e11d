/**
 * The INI dialect that a blazar.conf is written in: oslo.config's, on top of the `ini` package.
 *
 * `ini` alone reads another dialect. It cuts values at `#` and `;`, turns `true` and `null` into other types, splits
 * section names at dots, drops `__proto__`, makes lists of `key[]`, knows neither `:` nor continuation lines, and
 * skips what it can't read. So each statement is recognised here, by oslo.config's rules, and handed to `ini` with
 * its names and its value shielded (base64url behind a letter, in which none of that means anything). `ini` builds
 * the sections from it: a repeated section merges, of a repeated key the last value wins.
 */
import { parse } from 'ini';
import type { Problem } from '../errors.ts';

/** One `name = value` as it was written; `line` counts from 1. */
export interface IniEntry {
  readonly value: string;
  readonly line: number;
}

/** Section name (lower case) → option name (as written) → entry. Maps, since `__proto__` is a plain name. */
export type IniSections = ReadonlyMap<string, ReadonlyMap<string, IniEntry>>;

/** What a text holds, and every syntax error in it with file and line. */
export interface IniDocument {
  readonly sections: IniSections;
  readonly problems: readonly Problem[];
}

interface Assignment {
  readonly line: number;
  readonly key: string;
  /** False below a broken header: nobody knows whose option it is. */
  readonly belongs: boolean;
  readonly values: string[];
}

/**
 * Reads a text in the dialect of oslo.config. `file` only names the place in problems. A line that can't be read
 * is reported and skipped, so that all mistakes of a file are found at once. The text of a broken line is never
 * repeated: it may be half a secret.
 *
 * Source of the rules: oslo.config, `iniparser.py`.
 */
export function parseIni(text: string, file: string): IniDocument {
  const problems: Problem[] = [];
  const report = (line: number, message: string) =>
    problems.push({ severity: 'error', origin: { kind: 'file', file, line }, message });

  const statements: string[] = [];
  let section: 'none' | 'read' | 'broken' = 'none';
  let current: Assignment | undefined;
  const finish = () => {
    if (current?.belongs) {
      statements.push(`${shield(current.key)}=${current.line}.${shield(current.values.join('\n'))}`);
    }
    current = undefined;
  };

  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/);
  lines.forEach((raw, index) => {
    const number = index + 1;
    const line = raw.trimEnd();
    if (line !== '' && /^[ \t]/.test(line)) {
      if (current === undefined) {
        report(
          number,
          'an indented line continues the option above it, and there is none; remove the indentation',
        );
      } else {
        current.values.push(line.trimStart());
      }
      return;
    }
    finish();
    if (line === '' || line.startsWith('#') || line.startsWith(';')) {
      return;
    }
    if (line.startsWith('[')) {
      if (!line.endsWith(']') || line.length <= 2) {
        report(number, 'expected a section header such as "[enforcement]", with nothing behind it');
        section = 'broken';
        return;
      }
      section = 'read';
      statements.push(`[${shield(line.slice(1, -1).toLowerCase())}]`);
      return;
    }
    const delimiter = line.search(/[:=]/);
    if (delimiter === -1) {
      report(number, 'expected "name = value", got a line without "=" or ":"');
      return;
    }
    const key = line.slice(0, delimiter).trim();
    if (key === '') {
      report(number, `expected "name = value", got a line without a name before "${line[delimiter]}"`);
      return;
    }
    if (section === 'none') {
      report(number, 'expected a section header such as "[enforcement]" before the first option');
      return;
    }
    current = {
      line: number,
      key,
      belongs: section === 'read',
      values: [unquote(line.slice(delimiter + 1).trim())],
    };
  });
  finish();

  return { sections: unshieldSections(parse(statements.join('\n'))), problems };
}

/** A value as it has to be written to be read back the same by `parseIni` and left alone by interpolation. */
export function formatIniValue(value: string): string {
  const [first = '', ...continuation] = value
    .replace(/(\\?)\$/g, (_, backslash) => (backslash === '' ? '$$' : '\\\\$'))
    .split('\n');
  const quoted = first !== first.trim() || unquote(first) !== first ? `"${first}"` : first;
  return [quoted, ...continuation].join('\n    ');
}

/** Removes one pair of surrounding quotes of the same kind; what they hold stays as it is. */
function unquote(value: string): string {
  const first = value[0];
  return value.length >= 2 && (first === '"' || first === "'") && value.endsWith(first)
    ? value.slice(1, -1)
    : value;
}

/** A name or value in letters that mean nothing to `ini`; the leading `x` keeps it from being empty or `true`. */
function shield(text: string): string {
  return `x${Buffer.from(text).toString('base64url')}`;
}

function unshield(text: string): string {
  return Buffer.from(text.slice(1), 'base64url').toString();
}

function unshieldSections(shielded: Record<string, unknown>): IniSections {
  const sections = new Map<string, Map<string, IniEntry>>();
  for (const [section, entries] of Object.entries(shielded)) {
    const options = new Map<string, IniEntry>();
    for (const [key, entry] of Object.entries(entries as Record<string, string>)) {
      const [line = '', value = ''] = entry.split('.');
      options.set(unshield(key), { line: Number(line), value: unshield(value) });
    }
    sections.set(unshield(section), options);
  }
  return sections;
}
