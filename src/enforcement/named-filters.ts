/** Names → filters, in the order in which they run. */
import { nearestName } from '../config/nearest.ts';
import { showText } from '../config/secret.ts';
import type { Problem } from '../errors.ts';
import {
  brokenFilterReason,
  type FilterCatalog,
  filterClassName,
  type InstalledFilter,
  isFilterName,
} from './filter-loader.ts';

const SECTION = 'enforcement';

/** The names that a configuration gives. */
export interface NamedFilters {
  readonly enabled_filters: readonly string[];
  readonly audit_filters: readonly string[];
}

/** A filter that is to run. */
export interface Link {
  readonly filter: InstalledFilter;
  readonly audit: boolean;
}

/** With everything that is wrong with the names. `incomplete` = something else is, so it is not known what was to be enforced. */
export function chainOf(
  core: NamedFilters,
  catalog: FilterCatalog,
  incomplete: boolean,
): { filters: Link[]; problems: Problem[] } {
  const filters: Link[] = [];
  const problems: Problem[] = [];
  const report = (severity: Problem['severity'], option: string, message: string) =>
    problems.push({ severity, section: SECTION, option, message });
  const audited = new Set(core.audit_filters.map(filterClassName));

  for (const option of ['enabled_filters', 'audit_filters'] as const) {
    const seen = new Set<string>();
    for (const name of core[option]) {
      const className = filterClassName(name);
      if (seen.has(className)) {
        report('error', option, `${className} is named twice`);
        continue;
      }
      seen.add(className);
      const filter = isFilterName(name) ? catalog.filters.get(className) : undefined;
      // Also when there is a filter of this name: a second one, that can't be used, may be the one that was meant.
      if (filter === undefined || brokenFilterReason(name, catalog) !== undefined) {
        report('error', option, unknownFilter(name, catalog));
        continue;
      }
      if (!filters.some((link) => link.filter === filter)) {
        filters.push({ filter, audit: audited.has(className) });
      }
    }
  }
  for (const { filter, audit } of filters) {
    if (audit) {
      report('warning', 'audit_filters', `${filter.name} is tried, not enforced: it rejects no lease`);
    }
  }
  // With a mistake among the names, or in a source, it is not known what was to be enforced.
  if (
    !incomplete &&
    !problems.some(({ severity }) => severity === 'error') &&
    !filters.some(({ audit }) => !audit)
  ) {
    report('warning', 'enabled_filters', 'no filter is enforced: every lease is allowed');
  }
  return { filters, problems };
}

function unknownFilter(name: string, catalog: FilterCatalog): string {
  const shown = showText(name);
  if (!isFilterName(name)) {
    const hint = /\s/.test(name) ? '; names are separated by commas' : '';
    return `expected the name of a filter, such as MaxLeaseDurationFilter, got ${shown}${hint}`;
  }
  const reason = brokenFilterReason(name, catalog);
  if (reason !== undefined) {
    return `the filter ${shown} cannot be used: ${reason}`;
  }
  const names = [...catalog.filters.keys()];
  return `there is no filter ${shown}${nearestName(filterClassName(name), names)}; installed: ${names.join(', ')}`;
}
