/** `config`: what the configuration is, whether it is right, and what it could say. */
import { Command } from 'commander';
import { showValue } from '../config/secret.ts';
import { assignmentText, optionsTable, sampleText, valueText } from '../config/text.ts';
import type { Configuration } from '../configuration.ts';
import { formatOrigin } from '../errors.ts';
import { knownOptions } from './known-options.ts';
import { ExitCode, printProblems, printTable } from './output.ts';
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
          'Print the effective options of [enforcement] and [service]. Constructs no filter.',
        ),
      )
        .addOption(formatFlag('table', 'json', 'ini'))
        .option('--origin', 'Say where each value comes from: file and line, variable, flag or default.')
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

async function read(flags: SourceFlags): Promise<Configuration> {
  const { readConfiguration } = await import('../configuration.ts');
  const { SECTIONS } = await import('../server/sections.ts');
  return readConfiguration(sourcesOf(flags), SECTIONS);
}

async function show(flags: ShowFlags): Promise<void> {
  const { settings, problems } = await read(flags);
  printProblems(problems);
  if (problems.some(({ severity }) => severity === 'error')) {
    process.exitCode = ExitCode.usage;
    return;
  }
  const shown = settings.map((setting) => ({
    ...setting,
    value: flags.showSecrets === true ? setting.value : showValue(setting.value, setting.secret),
  }));
  switch (flags.format) {
    case 'json':
      process.stdout.write(`${JSON.stringify(asObject(shown, flags.origin === true), null, 2)}\n`);
      break;
    case 'ini':
      process.stdout.write(asIni(shown, flags.origin === true));
      break;
    case 'table':
      await printTable(
        ['SECTION', 'OPTION', 'TYPE', 'VALUE', ...(flags.origin === true ? ['ORIGIN'] : [])],
        shown.map(({ option, value, origin }) => [
          option.section,
          option.name,
          option.type,
          value === undefined ? '(not set)' : valueText(value),
          ...(flags.origin === true ? [formatOrigin(origin)] : []),
        ]),
      );
  }
}

function asObject(settings: readonly Setting[], withOrigin: boolean): object {
  return Object.fromEntries(
    sectionsOf(settings).map(([section, members]) => [
      section,
      Object.fromEntries(
        members.map(({ option, value = null, origin }) => [
          option.name,
          withOrigin ? { value, origin: formatOrigin(origin) } : value,
        ]),
      ),
    ]),
  );
}

function asIni(settings: readonly Setting[], withOrigin: boolean): string {
  return sectionsOf(settings)
    .map(([section, members]) => {
      const lines = members.flatMap(({ option, value, origin }) => [
        ...(withOrigin ? [`# ${formatOrigin(origin)}`] : []),
        assignmentText(option.name, value),
      ]);
      return `[${section}]\n${lines.join('\n')}\n`;
    })
    .join('\n');
}

function sectionsOf(settings: readonly Setting[]): [string, Setting[]][] {
  const sections = [...new Set(settings.map(({ option }) => option.section))];
  return sections.map((section) => [section, settings.filter(({ option }) => option.section === section)]);
}

async function validate(flags: SourceFlags): Promise<void> {
  const { problems } = await read(flags);
  printProblems(problems);
  if (problems.some(({ severity }) => severity === 'error')) {
    process.exitCode = ExitCode.usage;
  } else {
    process.stdout.write('The configuration is valid.\n');
  }
}

async function sample({ format }: { format: 'ini' | 'markdown' }): Promise<void> {
  const options = await knownOptions();
  process.stdout.write(format === 'ini' ? sampleText(options) : optionsTable(options));
}
