/** The files of users and projects may set only those options of `[enforcement]` that are not reserved for the server. */
import { formatOrigin, type Problem } from '../base/errors.ts';
import { type Entry, type Layer, shownName } from './layer.ts';
import type { Setting } from './resolve.ts';
import type { ReadSources } from './sources.ts';

/** Layers without the options that their source may not set. */
export interface PermittedLayers {
  readonly layers: readonly Layer[];
  /** One warning with all removed options; empty when there are none. */
  readonly problems: readonly Problem[];
}

/**
 * Removes the options for which `isServers` is true from the layers of users and projects. It must be true for every option of
 * another section too, because `$name` in an option of the server may refer to it.
 */
export function permittedLayers(
  { layers, clientLayers }: Pick<ReadSources, 'layers' | 'clientLayers'>,
  isServers: (section: string, option: string) => boolean,
): PermittedLayers {
  const ignored: string[] = [];
  const permitted = layers.map((layer) => {
    if (!clientLayers.has(layer)) {
      return layer;
    }
    const kept = new Map<string, Map<string, Entry>>();
    for (const [section, entries] of layer) {
      for (const [option, entry] of entries) {
        if (isServers(section, option)) {
          ignored.push(`[${shownName(section)}] ${shownName(option)} (${formatOrigin(entry.origin)})`);
        } else {
          const options = kept.get(section) ?? new Map<string, Entry>();
          kept.set(section, options.set(option, entry));
        }
      }
    }
    return kept;
  });
  const [what, verb] = ignored.length === 1 ? ['option', 'is'] : ['options', 'are'];
  const message = `${ignored.length} ${what} that only the server's files may set ${verb} ignored: ${ignored.join(', ')}`;
  return {
    layers: permitted,
    problems: ignored.length === 0 ? [] : [{ severity: 'warning', message }],
  };
}

/** One warning with the options that come from such files: a service does not read them. */
export function notServed(
  { clientFiles }: Pick<ReadSources, 'clientFiles'>,
  settings: readonly Setting[],
): Problem[] {
  const set = settings.flatMap(({ option, origin, members = [] }) =>
    [{ name: option.name, origin }, ...members]
      .filter((place) => place.origin.kind === 'file' && clientFiles.includes(place.origin.file))
      .slice(0, 1)
      .map((place) => `[${option.section}] ${option.name} (${formatOrigin(place.origin)})`),
  );
  const what = set.length === 1 ? '1 option comes' : `${set.length} options come`;
  const message = `${what} from a file that serve does not read: ${set.join(', ')}`;
  return set.length === 0 ? [] : [{ severity: 'warning', message }];
}
