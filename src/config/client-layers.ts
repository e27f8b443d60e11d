/** What files of users and projects may set: options of `[enforcement]` that are not the server's alone. */
import { formatOrigin, type Problem } from '../errors.ts';
import { type Entry, type Layer, shownName } from './layer.ts';
import type { Setting } from './resolve.ts';
import type { ReadSources } from './sources.ts';

/** Layers without what their source may not set. */
export interface PermittedLayers {
  readonly layers: readonly Layer[];
  /** One warning that names all options that were taken out, or none. */
  readonly problems: readonly Problem[];
}

/**
 * Takes out of the layers of users and projects what `isServers` says of a section and an option, and what they say to other
 * sections: `$name` in an option of the server's may refer to them.
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

/** One warning that names what such files have set: a service would go by something else. */
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
