/** The filters that were found, and why others cannot be used. */
import { distance } from 'fastest-levenshtein';
import type { Option } from '../config/option.ts';
import type { FilterClass } from '../filter/base-filter.ts';
import { classFileName } from '../plugin/class-names.ts';
import { filterClassName } from './filter-names.ts';

/** A filter that `enabled_filters` may name. */
export interface InstalledFilter {
  readonly name: string;
  /** Where it was found: a path, or `package#Name`. */
  readonly file: string;
  readonly filterClass: FilterClass;
  readonly options: readonly Option[];
}

export interface FilterCatalog {
  readonly filters: ReadonlyMap<string, InstalledFilter>;
  /** File (or package specifier) → why it holds no usable filter. */
  readonly broken: ReadonlyMap<string, string>;
  /** Files of code in the folders of `filters_path` that are not named like filters. They were not imported. */
  readonly others: readonly string[];
  /** The folders of `filters_path`, and the files in them that filters may consist of. */
  readonly watched: readonly string[];
}

/** Why a name is not in the catalog, if its file exists and is broken: `FILE: reason`. */
export function brokenFilterReason(name: string, { broken }: FilterCatalog): string | undefined {
  const stem = classFileName(filterClassName(name));
  const found = [...broken].find(([file]) => file === name || fileStem(file) === stem);
  return found && `${found[0]}: ${found[1]}`;
}

/** In a name of this many letters, one may be wrong. */
const LETTERS_PER_MISTAKE = 8;

/** What to do about a file whose name is nearly that of the filter's file, such as `my_filter.js` for `MyFilter`. */
export function misnamedFile(name: string, { broken, others }: FilterCatalog): string | undefined {
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
