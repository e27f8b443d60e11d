/** `config`: what the configuration is, whether it is right, and what it could say. */
import { Command } from 'commander';
import { showValue } from '../config/secret.ts';
import { assignmentText, optionsTable, sampleText, valueText } from '../config/text.ts';
import type { Configuration } from '../enforcement/configuration.ts';
import { formatOrigin, formatProblem, type Problem } from '../errors.ts';
import { isMapping, member } from '../yaml/tree.ts';
import { knownOptions } from './known-options.ts';
import { ExitCode, jsonText, onOneLine, printProblems, printTable } from './output.ts';
import { addSourceFlags, formatFlag, type SourceFlags, sourcesOf } from './sources.ts';

type Setting = Configuration['settings'][number];

interface ShowFlags extends SourceFlags {
  readonly format: 'table' | 'json' | 'ini';
  readonly origin?: boolean;
  readonly showSecrets?: boolean;
}

export function configCommand(): Command {
  return new Command('config')
    .description('Look at the configuration.')
    .addCommand(
      addSourceFlags(
        new Command('show').description(
          'Print the effective options of [enforcement], [service], [ledger], [skypilot] and [kubernetes]. Constructs no filter.',
        ),
      )
        .addOption(formatFlag('table', 'json', 'ini'))
        .option(
          '--origin',
          'Say where each value comes from, and what it has beaten: file and line, variable, flag or default.',
        )
        .option('--show-secrets', 'Print tokens and other secrets instead of hiding them.')
        .action(show),
    )
    .addCommand(
      addSourceFlags(
        new Command('validate').description(
          'Exit with 0 if the configuration is right, else with 2 and every mistake.',
        ),
      ).action(validate),
    )
    .addCommand(
      new Command('sample')
        .description('Print a commented blazar.conf of every option.')
        .addOption(formatFlag('ini', 'markdown'))
        .action(sample),
    );
}

/** `projectFolder` = with the files of the user and of the project, which a service does not read. */
async function read(flags: SourceFlags, projectFolder?: string): Promise<Configuration> {
  const { readConfiguration } = await import('../enforcement/configuration.ts');
  const { SECTIONS } = await import('../server/sections.ts');
  return readConfiguration(sourcesOf(flags), SECTIONS, projectFolder);
}

async function show(flags: ShowFlags): Promise<void> {
  const { settings, problems } = await read(flags, process.cwd());
  printProblems(problems);
  if (problems.some(({ severity }) => severity === 'error')) {
    process.exitCode = ExitCode.usage;
    return;
  }
  const shown = settings.map((setting) => {
    // A default stands in the documentation: it is nobody's secret.
    const isShown = flags.showSecrets === true || setting.origin.kind === 'default';
    return { ...setting, value: isShown ? setting.value : showValue(setting.value, setting.secret) };
  });
  switch (flags.format) {
    case 'json':
      process.stdout.write(`${jsonText(asObject(shown, flags.origin === true), 2)}\n`);
      break;
    case 'ini':
      process.stdout.write(asIni(shown, flags.origin === true));
      break;
    case 'table':
      await printTable(
        ['SECTION', 'OPTION', 'TYPE', 'VALUE', ...(flags.origin === true ? ['ORIGIN'] : [])],
        shown.flatMap((setting) => rowsOf(setting, flags.origin === true)),
      );
  }
}

/** With origins a dictionary that came from several sources has a row for each of its members. */
function rowsOf({ option, value, origin, beats, members = [] }: Setting, withOrigin: boolean): string[][] {
  const row = (name: string, shown: unknown, place: Placed) => [
    option.section,
    name,
    option.type,
    cellText(shown, place),
    ...(withOrigin ? [placeText(place)] : []),
  ];
  if (withOrigin && members.length > 0 && isMapping(value)) {
    return members.map((one) => row(`${option.name}.${one.name}`, member(value, one.name), one));
  }
  return [row(option.name, value, { origin, beats })];
}

type Placed = Pick<Setting, 'origin' | 'beats'>;

/** Of a default that nobody wrote; the sample has the whole. */
const MAX_DEFAULT = 39;

function cellText(value: unknown, { origin }: Placed): string {
  if (value === undefined) {
    return '(not set)';
  }
  const text = valueText(value);
  return origin.kind === 'default' && text.length > MAX_DEFAULT ? `${text.slice(0, MAX_DEFAULT - 1)}…` : text;
}

/** `etc/site.conf:3 (over etc/blazar.conf:7)` */
function placeText({ origin, beats }: Placed): string {
  const over = beats.length === 0 ? '' : ` (over ${beats.map(formatOrigin).join(', ')})`;
  return formatOrigin(origin) + over;
}

function placeObject({ origin, beats }: Placed): object {
  return { origin: formatOrigin(origin), beats: beats.map(formatOrigin) };
}

function asObject(settings: readonly Setting[], withOrigin: boolean): object {
  return Object.fromEntries(
    sectionsOf(settings).map(([section, members]) => [
      section,
      Object.fromEntries(
        members.map(({ option, value = null, origin, beats, members: parts }) => [
          option.name,
          withOrigin
            ? {
                value,
                ...placeObject({ origin, beats }),
                ...(parts && {
                  members: Object.fromEntries(parts.map((part) => [part.name, placeObject(part)])),
                }),
              }
            : value,
        ]),
      ),
    ]),
  );
}

function asIni(settings: readonly Setting[], withOrigin: boolean): string {
  return sectionsOf(settings)
    .map(([section, members]) => {
      const lines = members.flatMap(({ option, value, origin, beats, members: parts = [] }) => [
        ...(withOrigin && parts.length === 0 ? [comment(placeText({ origin, beats }))] : []),
        ...(withOrigin ? parts.map((part) => comment(`${part.name}: ${placeText(part)}`)) : []),
        assignmentText(option.name, option.guard && isEmptyList(value) ? undefined : value),
      ]);
      return `[${section}]\n${lines.join('\n')}\n`;
    })
    .join('\n');
}

/** As it can be read back: nothing keeps anybody out, and an option that should must not be written as empty. */
function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** On one line, whatever a file or a member is called: what stood on a second one would be an option. */
function comment(text: string): string {
  return `# ${onOneLine(text)}`;
}

function sectionsOf(settings: readonly Setting[]): [string, Setting[]][] {
  const sections = [...new Set(settings.map(({ option }) => option.section))];
  return sections.map((section) => [section, settings.filter(({ option }) => option.section === section)]);
}

async function validate(flags: SourceFlags): Promise<void> {
  const all = await read(flags, process.cwd());
  // What a file of the user has replaced may be what keeps the service from starting.
  const served = all.clientFiles.length === 0 ? all : await read(flags);
  const { startProblems } = await import('../server/start-checks.ts');
  const { groundProblems } = await import('../server/ground-checks.ts');
  const isWrong = served.problems.some(({ severity }) => severity === 'error');
  const toStart = isWrong ? [] : [...startProblems(served), ...(await groundProblems(served, { ask: true }))];
  const problems = unique([...served.problems, ...all.problems, ...toStart]);
  printProblems(problems);
  if (problems.some(({ severity }) => severity === 'error')) {
    process.exitCode = ExitCode.usage;
  } else {
    process.stdout.write('The configuration is valid.\n');
  }
}

function unique(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((problem) => [formatProblem(problem), problem])).values()];
}

async function sample({ format }: { format: 'ini' | 'markdown' }): Promise<void> {
  const options = await knownOptions();
  process.stdout.write(format === 'ini' ? sampleText(options) : optionsTable(options));
}
