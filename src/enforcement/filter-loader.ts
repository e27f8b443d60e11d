/** A name in `enabled_filters` → a class. Filters are found by convention, in folders and packages, never imported. */
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { whyWritable } from '../config/file-modes.ts';
import type { Option } from '../config/option.ts';
import { systemErrorText } from '../config/read-file.ts';
import { errorText } from '../errors.ts';
import { type FilterClass, filterFileName, isFilterClass } from '../filter/base-filter.ts';
import { declaredOptions } from '../plugin/declared-options.ts';
import { importFile, importPackage } from '../plugin/importing.ts';
import { makePackagesResolvable } from '../plugin/packages.ts';

/** A filter that can be named in `enabled_filters`. */
export interface InstalledFilter {
  readonly name: string;
  /** Where it was found: a path, or `package#Name`. */
  readonly file: string;
  readonly filterClass: FilterClass;
  readonly options: readonly Option[];
}

/** Filters that can be used, and why others can't. */
export interface FilterCatalog {
  readonly filters: ReadonlyMap<string, InstalledFilter>;
  /** File (or package specifier) → why it holds no usable filter. */
  readonly broken: ReadonlyMap<string, string>;
}

/** The filters that come with this package; the suffix is ours: `.ts` in the source tree, `.js` where it is built. */
const OWN_FOLDER = fileURLToPath(new URL('../../filters', import.meta.url));
const HOOKS = ['checkCreate', 'checkUpdate', 'onEnd'] as const;
const CLASS_NAME = /^[A-Z][A-Za-z0-9]*Filter$/;
const PACKAGE_SPECIFIER =
  /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*#([A-Z][A-Za-z0-9]*Filter)$/;

/** Whether a name may be looked for at all: a class name, or `package#ClassName`. */
export function isFilterName(name: string): boolean {
  return name !== 'BaseFilter' && (CLASS_NAME.test(name) || isPackageFilter(name));
}

/** Whether a name means a filter of an installed package: `my-package#MyFilter`, `@scope/package#MyFilter`. */
export function isPackageFilter(name: string): boolean {
  return PACKAGE_SPECIFIER.exec(name)?.[1] !== undefined && !name.endsWith('#BaseFilter');
}

/** `my-package#MyFilter` → `MyFilter`; a plain name stays as it is. */
export function filterClassName(name: string): string {
  return name.slice(name.indexOf('#') + 1);
}

/**
 * Loads every filter that there is: our own, those in `folders` (files named `…-filter.js`, `.mjs` or `.ts`), and the
 * ones of packages that are named in `specifiers`. All of them, since only the options that filters declare tell a
 * typing mistake from an option of a filter that is installed but not enabled.
 *
 * An option belongs to one filter: with two defaults nobody could say which one counts. The names in `reserved` are the
 * chain's own.
 */
export async function loadFilterCatalog(
  folders: readonly string[],
  specifiers: readonly string[],
  reserved: readonly string[],
): Promise<FilterCatalog> {
  const filters = new Map<string, InstalledFilter>();
  const broken = new Map<string, string>();
  const owners = new Map(reserved.map((option) => [option, 'the chain']));
  const add = (file: string, load: () => Promise<FilterClass>) =>
    load()
      .then((filterClass) => {
        const name = filterClass.name;
        const twin = filters.get(name);
        if (twin !== undefined) {
          throw new Error(`there is another ${name} in ${twin.file}; one of them must go or be renamed`);
        }
        const options = checkFilterClass(filterClass);
        for (const option of options) {
          const owner = owners.get(option.name);
          if (owner !== undefined) {
            throw new Error(`${name} declares the option ${option.name}, which is ${owner}'s`);
          }
        }
        for (const option of options) {
          owners.set(option.name, name);
        }
        filters.set(name, { name, file, filterClass, options });
      })
      .catch((thrown: unknown) => {
        broken.set(file, errorText(thrown));
      });

  if (folders.length > 0 || specifiers.length > 0) {
    makePackagesResolvable();
  }
  for (const file of listFilterFiles(OWN_FOLDER, broken)) {
    await add(file, () => filterOfFile(file));
  }
  for (const folder of folders.map((path) => resolve(path))) {
    const reason = whyWritable(folder);
    if (reason !== undefined) {
      broken.set(folder, reason);
      continue;
    }
    for (const file of listFilterFiles(folder, broken)) {
      await add(file, () => filterOfFile(file));
    }
  }
  for (const specifier of specifiers) {
    await add(specifier, () => filterOfPackage(specifier));
  }
  return { filters, broken };
}

/** Why a name of `enabled_filters` is not in the catalog, where the loader knows: its file exists and is broken. */
export function brokenFilterReason(name: string, catalog: FilterCatalog): string | undefined {
  const stem = filterFileName(filterClassName(name));
  const found = [...catalog.broken].find(([file]) => file === name || fileStem(file) === stem);
  return found && `${found[0]}: ${found[1]}`;
}

function fileStem(file: string): string {
  return file.replace(/^.*[/\\]/, '').replace(/\.[a-z]+$/, '');
}

function listFilterFiles(folder: string, broken: Map<string, string>): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^[a-z0-9]+(-[a-z0-9]+)*-filter\.(js|mjs|ts|mts)$/.test(name))
      .sort()
      .map((name) => join(folder, name));
  } catch (thrown) {
    broken.set(folder, `the folder could not be read: ${systemErrorText(thrown)}`);
    return [];
  }
}

async function filterOfFile(file: string): Promise<FilterClass> {
  const exported = await importFile(file);
  const stem = fileStem(file);
  const classes = [...new Set(Object.values(exported).filter(isFilterClass))];
  const found = classes.find((candidate) => filterFileName(candidate.name) === stem);
  if (found === undefined) {
    const names = classes.map((candidate) => candidate.name).join(', ');
    throw new Error(
      names === ''
        ? 'it exports no class that extends BaseFilter'
        : `it exports ${names}, and the name of the file says otherwise: expected ${filterFileName(names.split(',')[0] ?? '')}`,
    );
  }
  return found;
}

async function filterOfPackage(specifier: string): Promise<FilterClass> {
  const [packageName = '', className = ''] = specifier.split('#');
  const found = (await importPackage(packageName))[className];
  if (!isFilterClass(found)) {
    throw new Error(`the package exports no class ${className} that extends BaseFilter`);
  }
  return found;
}

/** Refuses a class that could not do its work, or would read options that belong to another. Returns its options. */
function checkFilterClass(filterClass: FilterClass): Option[] {
  const { name } = filterClass;
  if (!CLASS_NAME.test(name)) {
    throw new Error(`expected a class name such as MaxLeaseDurationFilter, got ${JSON.stringify(name)}`);
  }
  const missing = HOOKS.filter(
    (hook) => typeof (filterClass.prototype as Record<string, unknown>)[hook] !== 'function',
  );
  if (missing.length > 0) {
    throw new Error(`${name} does not implement ${missing.join(', ')}`);
  }
  return declaredOptions('enforcement', filterClass);
}
