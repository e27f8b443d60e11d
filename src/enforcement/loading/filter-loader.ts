/** Finds and imports filters by convention, in folders and packages. No file of this package imports one. */
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorText } from '../../base/errors.ts';
import type { Option } from '../../config/option.ts';
import { systemErrorText, whyWritable } from '../../config/read-file.ts';
import { type FilterClass, isFilterClass } from '../../filter/base-filter.ts';
import { classFileName, declaredOptions } from '../../plugin/class-names.ts';
import { importFile, importPackage, makePackagesResolvable } from '../../plugin/importing.ts';
import { moduleFiles, versionOf } from '../../plugin/module-files.ts';
import { type FilterCatalog, fileStem, type InstalledFilter, isFilterClassName } from './filter-catalog.ts';

/** The included filters: `.ts` in the source tree, `.js` in the build. */
const OWN_FOLDER = fileURLToPath(new URL('../../../filters', import.meta.url));
const HOOKS = ['checkCreate', 'checkUpdate', 'onEnd'] as const;

/**
 * Loads the filters of this package, those in `folders` (files named `…-filter.js`, `.mjs`, `.ts` or `.mts`),
 * and those of packages in `specifiers`. Loads all of them, enabled or not: only their declared options
 * distinguish a typing mistake from an option of a disabled filter.
 *
 * Each option belongs to one filter. The names in `reserved` belong to the chain.
 */
export async function loadFilterCatalog(
  folders: readonly string[],
  specifiers: readonly string[],
  reserved: readonly string[],
): Promise<FilterCatalog> {
  const loading = new Loading(reserved);
  if (folders.length > 0 || specifiers.length > 0) {
    makePackagesResolvable();
  }
  for (const file of loading.list(OWN_FOLDER).filters) {
    await loading.add(file, () => filterOfFile(file, null));
  }
  for (const folder of folders.map((path) => resolve(path))) {
    await loading.addFolder(folder);
  }
  for (const specifier of specifiers) {
    await loading.add(specifier, () => filterOfPackage(specifier));
  }
  return loading;
}

class Loading implements FilterCatalog {
  readonly filters = new Map<string, InstalledFilter>();
  readonly broken = new Map<string, string>();
  readonly others: string[] = [];
  readonly watched: string[] = [];
  /** Option → the filter that declares it, or `the chain`. */
  readonly #owners: Map<string, string>;

  constructor(reserved: readonly string[]) {
    this.#owners = new Map(reserved.map((option) => [option, 'the chain']));
  }

  async addFolder(folder: string): Promise<void> {
    this.watched.push(folder);
    const reason = whyWritable(folder);
    if (reason !== undefined) {
      this.broken.set(folder, reason);
      return;
    }
    // The version first: a file that changes later is loaded again by the next reload.
    const modules = moduleFiles(folder);
    const version = versionOf(folder, modules);
    const { filters, others } = this.list(folder);
    this.watched.push(...modules);
    this.others.push(...others);
    for (const file of filters) {
      await this.add(file, () => filterOfFile(file, version));
    }
  }

  async add(file: string, load: () => Promise<FilterClass>): Promise<void> {
    try {
      const filterClass = await load();
      const { name } = filterClass;
      const existing = this.filters.get(name);
      if (existing !== undefined) {
        throw new Error(`there is another ${name} in ${existing.file}; remove or rename one of them`);
      }
      const options = checkFilterClass(filterClass);
      for (const option of options) {
        const owner = this.#owners.get(option.name);
        if (owner !== undefined) {
          throw new Error(`${name} declares the option ${option.name}, which is ${owner}'s`);
        }
      }
      for (const option of options) {
        this.#owners.set(option.name, name);
      }
      this.filters.set(name, { name, file, filterClass, options });
    } catch (thrown) {
      this.broken.set(file, errorText(thrown));
    }
  }

  /** The files in a folder with a filter's name, and other code files. */
  list(folder: string): { readonly filters: string[]; readonly others: string[] } {
    try {
      const code = readdirSync(folder)
        .filter((name) => /^[^.].*\.[cm]?[jt]sx?$/.test(name))
        .sort();
      const isFilter = (name: string) => /^[a-z0-9]+(-[a-z0-9]+)*-filter\.(js|mjs|ts|mts)$/.test(name);
      return {
        filters: code.filter(isFilter).map((name) => join(folder, name)),
        others: code.filter((name) => !isFilter(name)).map((name) => join(folder, name)),
      };
    } catch (thrown) {
      this.broken.set(folder, `the folder could not be read: ${systemErrorText(thrown)}`);
      return { filters: [], others: [] };
    }
  }
}

async function filterOfFile(file: string, version: string | null): Promise<FilterClass> {
  const exported = await importFile(file, version);
  const stem = fileStem(file);
  const classes = [...new Set(Object.values(exported).filter(isFilterClass))];
  const found = classes.find((candidate) => classFileName(candidate.name) === stem);
  if (found === undefined) {
    const names = classes.map((candidate) => candidate.name).join(', ');
    throw new Error(
      names === ''
        ? 'it exports no class that extends BaseFilter'
        : `it exports ${names}, which does not match the name of the file: expected ${classFileName(names.split(',')[0] ?? '')}`,
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

/** The options of a class. Throws if the class lacks a hook, or declares options with a wrong prefix. */
function checkFilterClass(filterClass: FilterClass): readonly Option[] {
  const { name } = filterClass;
  if (!isFilterClassName(name)) {
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
