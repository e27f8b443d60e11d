/** What files of users and projects may set: options of `[enforcement]` that are not the server's alone. */
import { formatOrigin, type Problem } from '../errors.ts';
import { type Entry, type Layer, shownName } from './layer.ts';
import type { ReadSources } from './sources.ts';

/** Layers without what their source may not set. */
export interface PermittedLayers {
  readonly layers: readonly Layer[];
  /** The options that were taken out. */
  readonly ignored: readonly string[];
  /** One warning that names them all, or none. */
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
    ignored,
    problems: ignored.length === 0 ? [] : [{ severity: 'warning', message }],
  };
}
