/** `filters`: lists the filters to choose from. */
import { Command } from 'commander';
import { ExitCode, printJson, printProblems, printTable } from './output.ts';
import { addSourceFlags, formatFlag, type SourceFlags, sourcesOf } from './sources.ts';

interface ListFlags extends SourceFlags {
  readonly format: 'table' | 'json';
}

export function filtersCommand(): Command {
  return new Command('filters')
    .description('List the filters.')
    .addCommand(
      addSourceFlags(
        new Command('list').description(
          'List every filter that enabled_filters can name: name, use, file, options.',
        ),
      )
        .addOption(formatFlag('table', 'json'))
        .action(list),
    );
}

async function list(flags: ListFlags): Promise<void> {
  const { readConfiguration } = await import('../enforcement/configuration.ts');
  const { SECTIONS } = await import('../server/configuration/sections.ts');
  const { catalog, filters, problems } = await readConfiguration(sourcesOf(flags), SECTIONS);
  printProblems(problems);
  if (problems.some(({ severity }) => severity === 'error')) {
    process.exitCode = ExitCode.usage;
  }
  const rows = [...catalog.filters.values()].map((filter) => {
    const use = filters.find(({ installed }) => installed === filter);
    return {
      name: filter.name,
      enabled: use !== undefined && !use.audit,
      audit: use?.audit ?? false,
      file: filter.file,
      options: filter.options.map(({ name }) => name),
    };
  });
  if (flags.format === 'json') {
    printJson(rows);
    return;
  }
  await printTable(
    ['NAME', 'USE', 'FILE', 'OPTIONS'],
    rows.flatMap(({ name, enabled, audit, file, options: [first = '', ...others] }) => [
      [name, enabled ? 'enabled' : audit ? 'audit' : 'not enabled', file, first],
      ...others.map((option) => ['', '', '', option]),
    ]),
  );
}
