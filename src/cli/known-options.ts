/** The options of the package itself, for the sample, the docs and `--help`: no configuration is read. */
import type { Configuration } from '../enforcement/configuration.ts';

export type Option = Configuration['settings'][number]['option'];

export async function knownOptions(): Promise<Option[]> {
  const { readConfiguration } = await import('../enforcement/configuration.ts');
  const { SECTIONS } = await import('../server/sections.ts');
  const nothing = { environment: {}, configFiles: [] };
  const { settings } = await readConfiguration(nothing, SECTIONS);
  return settings.map(({ option }) => option);
}

/** The help text for the options of some sections: name and expected value. */
export async function optionsHelp(sections: readonly string[]): Promise<string> {
  const options = (await knownOptions()).filter(({ section }) => sections.includes(section));
  const width = Math.max(...options.map(({ name }) => name.length));
  const lists = sections.map((section) => {
    const lines = options
      .filter((option) => option.section === section)
      .map(({ name, expected }) => `  ${name.padEnd(width)}  ${expected}`);
    return `\nOptions of [${section}]:\n${lines.join('\n')}\n`;
  });
  return `${lists.join('')}\nFor their meaning, run: blazar-enforcement config sample\n`;
}
