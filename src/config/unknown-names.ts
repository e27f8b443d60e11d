/** Finds unknown names: a misspelled option is a limit that everyone believes is enforced. */
import { distance } from 'fastest-levenshtein';
import type { Problem } from '../errors.ts';
import { type Layer, shownName } from './layer.ts';
import { nearestName } from './nearest.ts';
import type { Option } from './option.ts';

/** Unknown options of known sections, and sections whose name is nearly that of a known one. */
export function unknownNames(layers: readonly Layer[], options: readonly Option[]): Problem[] {
  const problems: Problem[] = [];
  const sections = [...new Set(options.map((option) => option.section))];
  for (const layer of layers) {
    for (const [section, entries] of layer) {
      if (sections.includes(section)) {
        const names = options.filter((option) => option.section === section).map((option) => option.name);
        for (const [name, entry] of entries) {
          if (!names.includes(name)) {
            problems.push({
              severity: 'error',
              origin: entry.origin,
              section,
              option: shownName(name),
              message: `unknown option${nearestName(name, names)}`,
            });
          }
        }
        continue;
      }
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
