/** The filters that were found, the configured ones in order, and why others cannot be used. */
import { distance } from 'fastest-levenshtein';
import type { Problem } from '../../base/errors.ts';
import { nearestName } from '../../config/nearest.ts';
import type { Option } from '../../config/option.ts';
import { showText } from '../../config/secret.ts';
import type { FilterClass } from '../../filter/base-filter.ts';
import { classFileName, optionPrefix } from '../../plugin/class-names.ts';

/** A filter that `enabled_filters` may contain. */
export interface InstalledFilter {
  readonly name: string;
  /** Its origin: a path, or `package#Name`. */
  readonly file: string;
  readonly filterClass: FilterClass;
  readonly options: readonly Option[];
}

export interface FilterCatalog {
  readonly filters: ReadonlyMap<string, InstalledFilter>;
  /** File (or package specifier) → why it has no usable filter. */
  readonly broken: ReadonlyMap<string, string>;
  /** Code files in the folders of `filters_path` without a filter's name. They were not imported. */
  readonly others: readonly string[];
  /** The folders of `filters_path`, and the files in them that may be part of filters. */
  readonly watched: readonly string[];
}

/** Why a name is not in the catalog, if its file exists and is broken: `FILE: reason`. */
export function brokenFilterReason(name: string, { broken }: FilterCatalog): string | undefined {
  const stem = classFileName(filterClassName(name));
  const found = [...broken].find(([file]) => file === name || fileStem(file) === stem);
  return found && `${found[0]}: ${found[1]}`;
}

/** This many letters of a name allow one mistake. */
const LETTERS_PER_MISTAKE = 8;

/** What to do about a file with nearly the name of the filter's file, such as `my_filter.js` for `MyFilter`. */
function misnamedFile(name: string, { broken, others }: FilterCatalog): string | undefined {
  const expected = classFileName(filterClassName(name));
  const wanted = letters(expected);
  const candidates = [
    ...[...broken.keys()].map((file) => ({ file, most: 0 })),
    ...others.map((file) => ({ file, most: Math.floor(wanted.length / LETTERS_PER_MISTAKE) })),
  ];
  const [nearest] = candidates
    .map(({ file, most }) => ({ file, most, mistakes: distance(letters(fileStem(file)), wanted) }))
    .filter(({ most, mistakes }) => mistakes <= most)
    .sort((a, b) => a.mistakes - b.mistakes);
  if (nearest === undefined) {
    return undefined;
  }
  const extension = /\.m?[jt]s$/.exec(nearest.file)?.[0] ?? '.js';
  return `${nearest.file} must be called ${expected}${extension}`;
}

function letters(stem: string): string {
  return stem.toLowerCase().replace(/[^a-z0-9]/g, '');
}

export function fileStem(file: string): string {
  return file.replace(/^.*[/\\]/, '').replace(/\.[a-z]+$/, '');
}

/* Names in `enabled_filters`: `MyFilter`, or `my-package#MyFilter` for an installed package. */

const CLASS_NAME = /^[A-Z][A-Za-z0-9]*Filter$/;
const PACKAGE_SPECIFIER =
  /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*#([A-Z][A-Za-z0-9]*Filter)$/;

export function isFilterClassName(name: string): boolean {
  return name !== 'BaseFilter' && CLASS_NAME.test(name);
}

export function isPackageFilter(name: string): boolean {
  return PACKAGE_SPECIFIER.exec(name)?.[1] !== undefined && !name.endsWith('#BaseFilter');
}

/** Whether a filter may have this name. Only such names are searched on disk. */
function isFilterName(name: string): boolean {
  return isFilterClassName(name) || isPackageFilter(name);
}

/** `my-package#MyFilter` → `MyFilter`; a class name is returned unchanged. */
function filterClassName(name: string): string {
  return name.slice(name.indexOf('#') + 1);
}

const SECTION = 'enforcement';

interface ChosenFilter {
  readonly filter: InstalledFilter;
  readonly audit: boolean;
}

/** The filters, and all mistakes in the names. `incomplete`: there are other mistakes, so names may be missing. */
export function chooseFilters(
  names: { readonly enabled_filters: readonly string[]; readonly audit_filters: readonly string[] },
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

/** A broken file counts even if another file has a filter with this name: it may be the intended one. */
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
