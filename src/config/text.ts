/** Typed values written back as a blazar.conf: `config show --format ini` and `config sample`. */
import { formatIniValue } from './ini.ts';
import type { Option } from './option.ts';

/** A value in the form that is read after `name = `. */
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

/** `name = value`; an option that is not set is a comment. */
export function assignmentText(name: string, value: unknown): string {
  return value === undefined ? `# ${name} =` : `${name} = ${formatIniValue(valueText(value))}`.trimEnd();
}

/** A blazar.conf with every option in comments: help, type with unit and range, default. */
export function sampleText(options: readonly Option[]): string {
  const sections = [...new Set(options.map((option) => option.section))];
  return sections
    .map((section) => {
      const members = options.filter((option) => option.section === section);
      return `[${section}]\n\n${members.map(sampleOption).join('\n\n')}\n`;
    })
    .join('\n');
}

function sampleOption(option: Option): string {
  const value = option.default === undefined ? '' : formatIniValue(valueText(option.default));
  return [
    ...wrap(option.help),
    `# Expected: ${option.expected}${option.secret ? ' (a secret)' : ''}`,
    `# Default: ${option.default === undefined ? 'not set' : value === '' ? 'empty' : value}`,
    `#${option.name} = ${value}`.trimEnd(),
  ].join('\n');
}

function wrap(text: string): string[] {
  return (text.match(/\S.{0,95}(?=\s|$)/g) ?? []).map((line) => `# ${line}`);
}

/** The options as Markdown, with a table per section, for the operator's page. */
export function optionsTable(options: readonly Option[]): string {
  const sections = [...new Set(options.map((option) => option.section))];
  return sections
    .map((section) => {
      const rows = options.filter((option) => option.section === section).map(tableRow);
      return `### [${section}]\n\n| option | expected | default | meaning |\n| --- | --- | --- | --- |\n${rows.join('\n')}\n`;
    })
    .join('\n');
}

function tableRow(option: Option): string {
  const value = option.default === undefined ? 'not set' : valueText(option.default) || 'empty';
  const secret = option.secret ? ' (a secret)' : '';
  return `| \`${option.name}\` | ${option.expected}${secret} | ${value} | ${option.help.replaceAll('|', '\\|')} |`;
}
