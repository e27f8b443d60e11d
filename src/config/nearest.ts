import { closest } from 'fastest-levenshtein';

/** `; the nearest right name is "enabled_filters"`, or nothing when there is no name at all. */
export function nearestName(name: string, names: readonly string[]): string {
  return names.length === 0 ? '' : `; the nearest right name is "${closest(name, names)}"`;
}
