/** All options for the sample, docs and `--help`: of this package, of `filters_path`, of admin policies. */
import { Command } from 'commander';
import type { Problem } from '../../base/errors.ts';
import type { ConfigSources } from '../../config/sources.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { addSourceFlags, type SourceFlags, sourcesOf } from './sources.ts';

type Option = Configuration['settings'][number]['option'];

interface KnownOptions {
  readonly options: readonly Option[];
  /** Why options of filters may be missing. */
  readonly problems: readonly Problem[];
}

const NO_SOURCES: ConfigSources = { environment: {}, configFiles: [] };

/** Without `sources`, only the options of this package. */
export async function knownOptions(sources = NO_SOURCES): Promise<KnownOptions> {
  const { readConfiguration } = await import('../../enforcement/configuration.ts');
  const { SECTIONS } = await import('../../server/configuration/sections.ts');
  const { skypilotSectionWithAllPolicies: skypilot } = await import('../../skypilot/section.ts');
  const sections = SECTIONS.map((one) =>
    one.section === skypilot.section ? { ...one, extend: skypilot.extend } : one,
  );
  const { settings, problems } = await readConfiguration(sources, sections);
  return {
    options: settings.map(({ option }) => option),
    problems: problems.filter(({ option }) => option === undefined || option === 'filters_path'),
  };
}

/** The help text for the options of some sections: name and expected value. `args`: the command line. */
export async function optionsHelp(sections: readonly string[], args: readonly string[]): Promise<string> {
  const known = (await knownOptions(sourcesIn(args))).options;
  const options = known.filter(({ section }) => sections.includes(section));
  const width = Math.max(...options.map(({ name }) => name.length));
  const lists = sections.map((section) => {
    const lines = options
      .filter((option) => option.section === section)
      .map(({ name, help, expected }) => `  ${name.padEnd(width)}  ${help.split(/(?<=\.) /)[0] || expected}`);
    return `\nOptions of [${section}]:\n${lines.join('\n')}\n`;
  });
  return `${lists.join('')}\nFor all details, run: blazar-enforcement config sample\n`;
}

/** The values of `--config-file` and similar flags beside `--help`. */
function sourcesIn(args: readonly string[]): ConfigSources {
  const flags = addSourceFlags(new Command().helpOption(false).allowUnknownOption().allowExcessArguments())
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  try {
    return sourcesOf(flags.parse(args, { from: 'user' }).opts<SourceFlags>());
  } catch {
    return NO_SOURCES;
  }
}
