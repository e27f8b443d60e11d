/** The options of what comes with the package, for the sample, the docs and `--help`: no configuration is read. */
import type { Configuration } from '../enforcement/configuration.ts';

export type Option = Configuration['settings'][number]['option'];

export async function knownOptions(): Promise<Option[]> {
  const { readConfiguration } = await import('../enforcement/configuration.ts');
  const { SECTIONS } = await import('../server/sections.ts');
  const nothing = { environment: {}, configFiles: [] };
  const { settings } = await readConfiguration(nothing, SECTIONS);
  return settings.map(({ option }) => option);
}

/** The options of some sections, as they stand behind a command's own flags in its help: name and what is expected. */
export async function optionsHelp(sections: readonly string[]): Promise<string> {
  const options = (await knownOptions()).filter(({ section }) => sections.includes(section));
  const width = Math.max(...options.map(({ name }) => name.length));
  const lists = sections.map((section) => {
    const lines = options
      .filter((option) => option.section === section)
      .map(({ name, expected }) => `  ${name.padEnd(width)}  ${expected}`);
    return `\nOptions of [${section}]:\n${lines.join('\n')}\n`;
  });
  return `${lists.join('')}\nWhat they mean: blazar-enforcement config sample\n`;
}
