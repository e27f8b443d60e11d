/** The names in the configuration → the filters that run, in order. */
import { nearestName } from '../config/nearest.ts';
import { showText } from '../config/secret.ts';
import type { Problem } from '../errors.ts';
import { optionPrefix } from '../plugin/class-names.ts';
import {
  brokenFilterReason,
  type FilterCatalog,
  type InstalledFilter,
  misnamedFile,
} from './filter-catalog.ts';
import { filterClassName, isFilterName } from './filter-names.ts';

const SECTION = 'enforcement';

/** The names in the configuration. */
export interface FilterNames {
  readonly enabled_filters: readonly string[];
  readonly audit_filters: readonly string[];
}

/** A filter that is to run. */
export interface ChosenFilter {
  readonly filter: InstalledFilter;
  readonly audit: boolean;
}

/** The filters, and every mistake in the names. `incomplete`: something else is wrong, so the names may not be all of them. */
export function chooseFilters(
  names: FilterNames,
  catalog: FilterCatalog,
  incomplete: boolean,
): { filters: ChosenFilter[]; problems: Problem[] } {
  const filters: ChosenFilter[] = [];
  const problems: Problem[] = [];
  const report = (severity: Problem['severity'], option: string, message: string) =>
    problems.push({ severity, section: SECTION, option, message });
  const audited = new Set(names.audit_filters.map(filterClassName));

  for (const option of ['enabled_filters', 'audit_filters'] as const) {
    const named = new Set<string>();
    for (const name of names[option]) {
      const className = filterClassName(name);
      if (named.has(className)) {
        report('error', option, `${className} is named twice`);
        continue;
      }
      named.add(className);
      const filter = findFilter(name, catalog);
      if (filter === undefined) {
        report('error', option, unknownFilter(name, catalog));
        continue;
      }
      if (!filters.some((chosen) => chosen.filter === filter)) {
        filters.push({ filter, audit: audited.has(className) });
      }
    }
  }
  for (const { filter, audit } of filters) {
    if (audit) {
      report('warning', 'audit_filters', `${filter.name} is tried, not enforced: it rejects no lease`);
    }
  }
  const isComplete = !incomplete && !problems.some(({ severity }) => severity === 'error');
  if (isComplete && !filters.some(({ audit }) => !audit)) {
    report('warning', 'enabled_filters', 'no filter is enforced: every lease is allowed');
  }
  return { filters, problems };
}

/** The prefixes of the options of named filters that `chooseFilters` reports as missing or broken. */
export function unloadedFilters(names: readonly string[], catalog: FilterCatalog): string[] {
  return names
    .filter((name) => findFilter(name, catalog) === undefined)
    .map((name) => optionPrefix(filterClassName(name)));
}

/** A broken file counts even if another file has a filter of this name: it may be the one that is meant. */
function findFilter(name: string, catalog: FilterCatalog): InstalledFilter | undefined {
  return isFilterName(name) && brokenFilterReason(name, catalog) === undefined
    ? catalog.filters.get(filterClassName(name))
    : undefined;
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
  const misnamed = misnamedFile(name, catalog);
  if (misnamed !== undefined) {
    return `there is no filter ${shown}: ${misnamed}`;
  }
  const installed = [...catalog.filters.keys()];
  return `there is no filter ${shown}${nearestName(filterClassName(name), installed)}; installed: ${installed.join(', ')}`;
}
