/** Finds unknown names: a misspelled option is a limit that everyone believes is enforced. */
import { distance } from 'fastest-levenshtein';
import type { Problem } from '../base/errors.ts';
import { type Layer, shownName } from './layer.ts';
import { meantBy, nearestName } from './nearest.ts';
import type { Option } from './option.ts';

/** Options that were removed, by section and name → what to do instead. */
const REMOVED: Readonly<Record<string, string>> = {
  'service.workers':
    'this option was removed: for several processes on one port, set reuse_port = true and start serve as often as you want, each with an admin_port of its own, for example as blazar-enforcement@1 and blazar-enforcement@2 with the unit in etc/systemd',
};

/** How options begin that nobody knows, because what declares them could not be loaded. That is reported elsewhere, as an error. */
export interface UnloadedOptions {
  readonly section: string;
  /** `lab_a100` for LabA100Policy. */
  readonly prefix: string;
}

/** Unknown options of known sections, and sections whose name is nearly that of a known one. */
export function unknownNames(
  layers: readonly Layer[],
  options: readonly Option[],
  unloaded: readonly UnloadedOptions[] = [],
): Problem[] {
  const problems: Problem[] = [];
  const sections = [...new Set(options.map((option) => option.section))];
  for (const layer of layers) {
    for (const [section, entries] of layer) {
      if (sections.includes(section)) {
        const names = options.filter((option) => option.section === section).map((option) => option.name);
        for (const [name, entry] of entries) {
          if (!names.includes(name) && !isUnloaded(section, name, unloaded)) {
            problems.push({
              severity: 'error',
              origin: entry.origin,
              section,
              option: shownName(name),
              message: REMOVED[`${section}.${name}`] ?? `unknown option${nearestName(name, names)}`,
            });
          }
        }
        continue;
      }
      // Fewer letters than in other names: sections of Blazar and others are right here.
      const meant = sections.find((candidate) => distance(candidate, section.trim()) <= candidate.length / 5);
      const [entry] = entries.values();
      if (meant !== undefined) {
        problems.push({
          severity: 'error',
          origin: entry?.origin,
          section,
          message: `unknown section; the nearest right name is [${meant}]`,
        });
      }
    }
  }
  return problems;
}

/** A name that is known to be wrong is wrong whoever declares it. */
function isUnloaded(section: string, name: string, unloaded: readonly UnloadedOptions[]): boolean {
  return (
    meantBy(name) === undefined &&
    unloaded.some(
      (one) =>
        one.section === section &&
        one.prefix !== '' &&
        (name === one.prefix || name.startsWith(`${one.prefix}_`)),
    )
  );
}
