/** Manual pages from the help: one for the program, one for each command, one for blazar.conf. */

import type { knownOptions } from '../../src/cli/common/known-options.ts';
import type { CommandTree, TreeArgument, TreeOption } from '../../src/cli/completion/command-tree.ts';

type Option = Awaited<ReturnType<typeof knownOptions>>['options'][number];

export interface ManualPage {
  /** `blazar-enforcement-budget.1` */
  readonly file: string;
  readonly text: string;
}

const PROGRAM = 'blazar-enforcement';
const CONF = `${PROGRAM}.conf`;
/** Prefixed with the program, since the name of a command alone is not unique. */
const pageOf = ({ path }: CommandTree) => [PROGRAM, ...path].join('-');
const commandLine = ({ path }: CommandTree) => [PROGRAM, ...path].join(' ');

/** `date`: `2026-11-27` */
export function manualPages(
  tree: CommandTree,
  options: readonly Option[],
  version: string,
  date: string,
): ManualPage[] {
  const header = (name: string, section: number) =>
    `.TH ${name.toUpperCase()} ${section} ${date} "${PROGRAM} ${version}"`;
  const page = (command: CommandTree, body: readonly string[]): ManualPage => ({
    file: `${pageOf(command)}.1`,
    text: lines(
      header(pageOf(command), 1),
      '.SH NAME',
      nameLine(pageOf(command), command.description),
      ...body,
    ),
  });
  return [
    page(tree, programPage(tree)),
    ...tree.commands.map((command) => page(command, commandPage(command))),
    {
      file: `${CONF}.5`,
      text: lines(
        header(CONF, 5),
        '.SH NAME',
        nameLine(CONF, 'The configuration of blazar-enforcement.'),
        ...confPage(options),
      ),
    },
  ];
}

function lines(...all: readonly string[]): string {
  return `${all.join('\n')}\n`;
}

/** In the format of whatis: one line, no full stop. */
function nameLine(name: string, description: string): string {
  const [first = ''] = description.split(/[.:] /);
  return `${name.replaceAll('-', '\\-')} \\- ${escaped(first.replace(/\.$/, ''))}`;
}

function programPage(tree: CommandTree): string[] {
  return [
    '.SH SYNOPSIS',
    `.B ${PROGRAM}`,
    '.I command',
    '[\\fIarguments\\fR]',
    '.SH DESCRIPTION',
    escaped(tree.description),
    '.SH COMMANDS',
    ...tree.commands.flatMap((command) => [
      '.TP',
      `.BR ${pageOf(command).replaceAll('-', '\\-')} (1)`,
      escaped(command.description),
    ]),
    '.SH OPTIONS',
    ...tree.options.flatMap(optionLines),
    '.SH EXIT STATUS',
    'Each page tells it; 2 is a mistake in the configuration or on the command line.',
    ...seeAlso(tree.commands.map((command) => [pageOf(command), 1] as const)),
  ];
}

function commandPage(command: CommandTree): string[] {
  const called = command.commands.length === 0 ? [command] : command.commands;
  return [
    '.SH SYNOPSIS',
    ...called.flatMap((one, index) => [...(index > 0 ? ['.br'] : []), synopsis(one)]),
    '.SH DESCRIPTION',
    escaped(command.description),
    ...(command.commands.length === 0
      ? ['.SH OPTIONS', ...command.arguments.flatMap(argumentLines), ...command.options.flatMap(optionLines)]
      : [
          '.SH COMMANDS',
          ...command.commands.flatMap((one) => [
            `.SS ${escaped(commandLine(one))}`,
            escaped(one.description),
            ...one.arguments.flatMap(argumentLines),
            ...one.options.flatMap(optionLines),
          ]),
        ]),
    ...seeAlso([
      [PROGRAM, 1],
      [CONF, 5],
    ]),
  ];
}

function confPage(options: readonly Option[]): string[] {
  const sections = [...new Set(options.map(({ section }) => section))];
  return [
    '.SH DESCRIPTION',
    `The options of the configuration file, in INI format, section by section. The service reads /etc/blazar\\-enforcement/blazar.conf.`,
    ...sections.flatMap((section) => [
      `.SH [${escaped(section)}]`,
      ...options
        .filter((option) => option.section === section)
        .flatMap((option) => [
          '.TP',
          `.B ${escaped(option.name)}`,
          `${escaped(option.help)}`,
          '.br',
          `Expected: ${escaped(option.expected)}.`,
        ]),
    ]),
    ...seeAlso([[PROGRAM, 1]]),
  ];
}

function synopsis(command: CommandTree): string {
  const args = command.arguments.map(
    ({ name, isVariadic }) => `\\fI${escaped(name)}\\fR${isVariadic ? '...' : ''}`,
  );
  return [`\\fB${escaped(commandLine(command))}\\fR`, '[\\fIoptions\\fR]', ...args].join(' ');
}

function argumentLines({ name, choices, description }: TreeArgument): string[] {
  return ['.TP', `.I ${escaped(name)}`, escaped(withChoices(description, choices))];
}

function optionLines({ flags, value, description }: TreeOption): string[] {
  const names = flags.map((flag) => `\\fB${escaped(flag)}\\fR`).join(', ');
  const shown = value === undefined ? names : `${names} \\fI${escaped(value.name)}\\fR`;
  return ['.TP', shown, escaped(withChoices(description, value?.choices ?? []))];
}

function withChoices(description: string, choices: readonly string[]): string {
  return choices.length === 0 ? description : `${description} One of: ${choices.join(', ')}.`;
}

function seeAlso(pages: readonly (readonly [string, number])[]): string[] {
  const all = pages.map(
    ([name, section], index) =>
      `.BR ${name.replaceAll('-', '\\-')} (${section})${index < pages.length - 1 ? ',' : ''}`,
  );
  return ['.SH SEE ALSO', ...all];
}

/** Escapes text for roff: no line is a request, and minus signs can be searched and copied. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/\s*\n\s*/g, ' ')
    .replace(/^[.']/, '\\&$&');
}
