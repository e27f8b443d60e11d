/** `config`: shows and validates the configuration, and prints a sample. */
import { Command } from 'commander';
import { formatOrigin } from '../base/errors.ts';
import { isMapping, member } from '../base/yaml/tree.ts';
import { showValue } from '../config/secret.ts';
import { assignmentText, optionsTable, sampleText, valueText } from '../config/text.ts';
import type { Configuration } from '../enforcement/configuration.ts';
import { knownOptions } from './common/known-options.ts';
import { jsonText, onOneLine, printedErrors, printTable, printUses } from './common/output.ts';
import {
  type FormatFlags,
  formatFlag,
  type SourceFlags,
  sourceCommand,
  sourcesOf,
} from './common/sources.ts';

type Setting = Configuration['settings'][number];

interface ShowFlags extends SourceFlags {
  readonly format: 'table' | 'json' | 'ini';
  readonly origin?: boolean;
  readonly showSecrets?: boolean;
}

export function configCommand(): Command {
  return new Command('config')
    .description('Show and validate the configuration.')
    .addCommand(
      sourceCommand(
        'show',
        'Print the effective configuration: [enforcement], [service], [ledger], [skypilot] and [kubernetes]. Constructs no filter.',
      )
        .addOption(formatFlag('table', 'json', 'ini'))
        .option(
          '--origin',
          'Show the source of each value and those that it overrides: file and line, variable, flag or default.',
        )
        .option('--show-secrets', 'Print tokens and other secrets instead of hiding them.')
        .action(show),
    )
    .addCommand(
      sourceCommand(
        'validate',
        'Print every mistake in the configuration. Exit code: 0 valid, 2 not valid.',
      ).action(validate),
    )
    .addCommand(
      sourceCommand(
        'sample',
        'Print a commented blazar.conf with every option, also of the filters in filters_path.',
      )
        .addOption(formatFlag('ini', 'markdown'))
        .action(sample),
    );
}

/** With `projectFolder`, includes the files of the user and the project, which a service does not read. */
async function read(flags: SourceFlags, projectFolder?: string): Promise<Configuration> {
  const { readConfiguration } = await import('../enforcement/configuration.ts');
  const { SECTIONS } = await import('../server/configuration/sections.ts');
  return readConfiguration(sourcesOf(flags), SECTIONS, projectFolder);
}

async function show(flags: ShowFlags): Promise<void> {
  const { settings, problems } = await read(flags, process.cwd());
  if (printedErrors(problems)) {
    return;
  }
  const shown = settings.map((setting) => {
    // Defaults are public.
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

/** With origins, a dictionary with several sources has a row for each member. */
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

/** Longer defaults are cut; the sample shows them in full. */
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

/** Not written: an option with `guard` may not be empty when the file is read. */
function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** On one line, whatever a file or member is called: a second line would be read as an option. */
function comment(text: string): string {
  return `# ${onOneLine(text)}`;
}

function sectionsOf(settings: readonly Setting[]): [string, Setting[]][] {
  const sections = [...new Set(settings.map(({ option }) => option.section))];
  return sections.map((section) => [section, settings.filter(({ option }) => option.section === section)]);
}

async function validate(flags: SourceFlags): Promise<void> {
  const all = await read(flags, process.cwd());
  // A file of the user may hide an error that would prevent the service from starting.
  const served = all.clientFiles.length === 0 ? all : await read(flags);
  const { startProblems, storageProblems } = await import('../server/configuration/start-checks.ts');
  const isWrong = served.problems.some(({ severity }) => severity === 'error');
  const toStart = isWrong
    ? []
    : [...startProblems(served), ...(await storageProblems(served, { ask: true }))];
  if (!printedErrors([...served.problems, ...all.problems, ...toStart])) {
    process.stdout.write('The configuration is valid.\n');
  }
}

async function sample(flags: SourceFlags & { readonly format: 'ini' | 'markdown' }): Promise<void> {
  const { format } = flags;
  const { options, problems } = await knownOptions(sourcesOf(flags));
  // A sample is for users without a configuration: only an explicitly named file must exist.
  const isNamed = flags.configFile !== undefined || flags.configDir !== undefined;
  const shown = problems.filter(
    ({ severity, option, message }) =>
      isNamed || severity === 'warning' || option !== undefined || message.startsWith('--config'),
  );
  printedErrors(shown);
  process.stdout.write(format === 'ini' ? sampleText(options) : optionsTable(options));
}

export function filtersCommand(): Command {
  return new Command('filters')
    .description('List the filters.')
    .addCommand(
      sourceCommand('list', 'List every filter that enabled_filters can name: name, use, file, options.')
        .addOption(formatFlag('table', 'json'))
        .action(list),
    );
}

async function list(flags: FormatFlags): Promise<void> {
  const { catalog, filters, problems } = await read(flags);
  printedErrors(problems);
  const uses = [...catalog.filters.values()].map((filter) => {
    const use = filters.find(({ installed }) => installed === filter);
    return {
      name: filter.name,
      enabled: use !== undefined && !use.audit,
      audit: use?.audit ?? false,
      file: filter.file,
      options: filter.options.map(({ name }) => name),
    };
  });
  await printUses(uses, flags.format, 'FILE', ({ file }) => file);
}
