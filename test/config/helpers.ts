import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { z } from 'zod';
import { formatOrigin, formatProblem, type Problem } from '../../src/base/errors.ts';
import type { Layer } from '../../src/config/layer.ts';
import { describeOptions } from '../../src/config/option.ts';
import type { FurtherSection } from '../../src/config/option-groups.ts';
import { type Resolution, resolve } from '../../src/config/resolve.ts';
import { type ConfigSources, readSources } from '../../src/config/sources.ts';
import { type Configuration, readConfiguration } from '../../src/enforcement/configuration.ts';
import { serviceOptions } from '../../src/server/configuration/options.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

/** Writes a file into a folder (default: one that is removed after the test) and returns its path. */
export function configFile(
  text: string | Uint8Array,
  name = 'blazar.conf',
  folder = temporaryFolder(),
): string {
  const file = join(folder, name);
  // It may contain a secret.
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

/** The problems as an operator reads them, with file names without their folders. */
export function shown(problems: readonly Problem[], severity?: Problem['severity']): string[] {
  return problems
    .filter((problem) => severity === undefined || problem.severity === severity)
    .map((problem) => {
      const { origin } = problem;
      return formatProblem(
        origin?.kind === 'file'
          ? { ...problem, origin: { ...origin, file: origin.file.replace(/^.*\//, '') } }
          : problem,
      );
    });
}

/** `[section] name = value (origin)` of each entry of a layer. */
export function entries(layer: Layer): string[] {
  return [...layer].flatMap(([section, options]) =>
    [...options].map(
      ([name, { value, origin }]) =>
        `[${section}] ${name} = ${JSON.stringify(value)} (${formatOrigin(origin).replace(/^.*\//, '')})`,
    ),
  );
}

/** Sources, and the folder of a project. */
export type ClientSources = ConfigSources & { readonly projectFolder?: string };

/** The configuration as a command reads it that includes the files of the user and the project. */
export function readAsClient(
  { projectFolder, ...sources }: ClientSources,
  further: readonly FurtherSection[] = [],
): Promise<Configuration> {
  return readConfiguration(sources, further, projectFolder);
}

/** The entries of all layers that have any, lowest layer first. Without environment unless the sources have one. */
export async function readEntries({ projectFolder, ...sources }: ClientSources): Promise<string[][]> {
  const { layers, problems } = await readSources({ environment: {}, ...sources }, projectFolder);
  if (problems.length > 0) {
    throw new Error(shown(problems).join('\n'));
  }
  return layers.map(entries).filter((layer) => layer.length > 0);
}

export const service: FurtherSection = { section: 'service', schema: serviceOptions };

/** The configuration of a blazar.conf with this text, without environment. */
export function configuration(text: string, sources: ConfigSources = {}): Promise<Configuration> {
  return readConfiguration({ configFiles: [configFile(text)], environment: {}, ...sources }, [service]);
}

/** The effective value of one option. */
export function effective({ settings }: Pick<Resolution, 'settings'>, name: string, section = 'enforcement') {
  return settings.find(({ option }) => option.section === section && option.name === name)?.value;
}

/** The layers of texts, one file per text, lowest first. */
export async function layersOf(...texts: readonly string[]): Promise<readonly Layer[]> {
  const folder = temporaryFolder();
  const configFiles = texts.map((text, index) => configFile(text, `${index + 1}.conf`, folder));
  const { layers, problems } = await readSources({ configFiles, environment: {} });
  if (problems.length > 0) {
    throw new Error(shown(problems).join('\n'));
  }
  return layers;
}

/** The options of a section `[s]` in these texts, resolved; a text without a header is that section. */
export async function resolved(schema: z.ZodObject, ...texts: readonly string[]): Promise<Resolution> {
  const withHeader = texts.map((text) => (text.startsWith('[') ? text : `[s]\n${text}`));
  return resolve(await layersOf(...withHeader), describeOptions('s', schema));
}

/** The problems of a section `[enforcement]` with these lines, which start in line 2. */
export async function problemsOf(...lines: readonly string[]): Promise<string[]> {
  const { problems: found } = await configuration(['[enforcement]', ...lines].join('\n'));
  return found.map((problem) => `${problem.severity}: ${shown([problem])[0]}`);
}
