/** Typed values as text for a blazar.conf: `config show --format ini` and `config sample`. */

import { parse } from 'ini';
import type { Problem } from '../base/errors.ts';
import type { Option } from './option.ts';

/** A value in the form read after `name = `. */
export function valueText(value: unknown): string {
  if (value === undefined || value === null) {
    return '';
  }
  if (Array.isArray(value)) {
    return value.map(String).join(',');
  }
  if (typeof value === 'object') {
    return Object.entries(value)
      .map(([name, item]) => `${name}:${item}`)
      .join(',');
  }
  return String(value);
}

/** `name = value`; a comment for an option that is not set. */
export function assignmentText(name: string, value: unknown): string {
  return value === undefined ? `# ${name} =` : `${name} = ${formatIniValue(valueText(value))}`.trimEnd();
}

/** A blazar.conf with all options as comments: help, type with unit and range, default. */
export function sampleText(options: readonly Option[]): string {
  return bySection(
    options,
    (section, members) => `[${section}]\n\n${members.map(sampleOption).join('\n\n')}\n`,
  );
}

function sampleOption(option: Option): string {
  const value = option.default === undefined ? '' : formatIniValue(valueText(option.default));
  return [
    ...(option.help.match(/\S.{0,95}(?=\s|$)/g) ?? []).map((line) => `# ${line}`),
    `# Expected: ${option.expected}${option.secret ? ' (a secret)' : ''}`,
    `# Default: ${option.default === undefined ? 'not set' : value === '' ? 'empty' : value}`,
    `#${option.name} = ${value}`.trimEnd(),
  ].join('\n');
}

/** The options as Markdown, one table per section, for the operators' page. */
export function optionsTable(options: readonly Option[]): string {
  const head = '| option | expected | default | meaning |\n| --- | --- | --- | --- |';
  return bySection(
    options,
    (section, members) => `### [${section}]\n\n${head}\n${members.map(tableRow).join('\n')}\n`,
  );
}

function bySection(
  options: readonly Option[],
  textOf: (section: string, members: readonly Option[]) => string,
): string {
  const sections = [...new Set(options.map((option) => option.section))];
  return sections
    .map((name) =>
      textOf(
        name,
        options.filter(({ section }) => section === name),
      ),
    )
    .join('\n');
}

function tableRow(option: Option): string {
  const value = option.default === undefined ? 'not set' : valueText(option.default) || 'empty';
  const secret = option.secret ? ' (a secret)' : '';
  return `| \`${option.name}\` | ${option.expected}${secret} | ${value} | ${option.help.replaceAll('|', '\\|')} |`;
}

/** One `name = value` as written; `line` starts at 1. */
interface IniEntry {
  readonly value: string;
  readonly line: number;
}

/** Section name (lower case) → option name (as written) → entry. Maps, so that `__proto__` is an ordinary name. */
type IniSections = ReadonlyMap<string, ReadonlyMap<string, IniEntry>>;

/** The sections of a text, and all its syntax errors, with file and line. */
interface IniDocument {
  readonly sections: IniSections;
  readonly problems: readonly Problem[];
}

interface Assignment {
  readonly line: number;
  readonly key: string;
  /** False below a broken header: the section of the option is unknown. */
  readonly belongs: boolean;
  readonly values: string[];
}

/**
 * Reads a text in the dialect of oslo.config. `file` is only used in problems. Lines with syntax errors are
 * reported and skipped, so that all mistakes of a file are found at once. Problems never show the text of a
 * line: it may be part of a secret.
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
      statements.push(`${encode(current.key)}=${current.line}.${encode(current.values.join('\n'))}`);
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
        report(number, 'expected a section header such as "[enforcement]", with nothing after it');
        section = 'broken';
        return;
      }
      section = 'read';
      statements.push(`[${encode(line.slice(1, -1).toLowerCase())}]`);
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

  return { sections: decodeSections(parse(statements.join('\n'))), problems };
}

/** A value in a form that `parseIni` reads back unchanged, and that interpolation does not change. */
export function formatIniValue(value: string): string {
  const [first = '', ...continuation] = value
    .replace(/(\\?)\$/g, (_, backslash) => (backslash === '' ? '$$' : '\\\\$'))
    .split('\n');
  const quoted = first !== first.trim() || unquote(first) !== first ? `"${first}"` : first;
  return [quoted, ...continuation].join('\n    ');
}

/** Removes one pair of surrounding quotes of the same kind. */
function unquote(value: string): string {
  const first = value[0];
  return value.length >= 2 && (first === '"' || first === "'") && value.endsWith(first)
    ? value.slice(1, -1)
    : value;
}

/** A name or value in letters without meaning for `ini`; the leading `x` prevents an empty text and `true`. */
function encode(text: string): string {
  return `x${Buffer.from(text).toString('base64url')}`;
}

function decode(text: string): string {
  return Buffer.from(text.slice(1), 'base64url').toString();
}

function decodeSections(encoded: Record<string, unknown>): IniSections {
  const sections = new Map<string, Map<string, IniEntry>>();
  for (const [section, entries] of Object.entries(encoded)) {
    const options = new Map<string, IniEntry>();
    for (const [key, entry] of Object.entries(entries as Record<string, string>)) {
      const [line = '', value = ''] = entry.split('.');
      options.set(decode(key), { line: Number(line), value: decode(value) });
    }
    sections.set(decode(section), options);
  }
  return sections;
}
