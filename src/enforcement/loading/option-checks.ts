/**
 * Mistakes in options besides their values: filters' checks, options without effect, unused files,
 * world-readable secrets.
 */
import { resolve as resolvePath } from 'node:path';
import type { Problem } from '../../base/errors.ts';
import type { Layer } from '../../config/layer.ts';
import { firstKeystoneName } from '../../config/names.ts';
import type { Option } from '../../config/option.ts';
import type { OptionsCheck } from '../../config/option-groups.ts';
import { isReadByEveryone } from '../../config/read-file.ts';
import type { Setting } from '../../config/resolve.ts';
import { showText } from '../../config/secret.ts';
import type { ReadSources } from '../../config/sources.ts';
import { valueText } from '../../config/text.ts';
import { brokenFilterReason, type FilterCatalog, type InstalledFilter } from './filter-catalog.ts';

const SECTION = 'enforcement';

/**
 * Files without a usable filter: a warning, since the configuration does not name them. Unreadable folders
 * are errors.
 */
export function brokenFilters(
  catalog: FilterCatalog,
  named: readonly string[],
  folders: readonly string[],
  invalidFolders: readonly string[],
): Problem[] {
  const reported = named.map((name) => brokenFilterReason(name, catalog));
  return [...catalog.broken]
    .filter(([file]) => !invalidFolders.some((folder) => resolvePath(folder) === file))
    .map(([file, reason]) => ({ file, text: `${file}: ${reason}` }))
    .filter(({ text }) => !reported.includes(text))
    .map(({ file, text }) =>
      folders.some((folder) => resolvePath(folder) === file)
        ? { severity: 'error', section: SECTION, option: 'filters_path', message: text }
        : { severity: 'warning', message: `not a usable filter: ${text}` },
    );
}

/** A warning for each of these options that is set: it has no effect, for the same `reason`. */
export function withoutEffect(
  settings: readonly Setting[],
  options: readonly Option[],
  reason: string,
): Problem[] {
  return settings
    .filter(({ option, origin }) => origin.kind !== 'default' && options.includes(option))
    .map(({ option: { section, name: option }, origin }) => ({
      severity: 'warning',
      origin,
      section,
      option,
      message: `has no effect: ${reason}`,
    }));
}

/**
 * Limits by name or tag that can never apply, because names are not resolved. Ids may contain `@` too, but no
 * blanks: a text that cannot be an id is an error. `options`: those that have an effect.
 */
export function namesWithoutKeystone(settings: readonly Setting[], options: readonly Option[]): Problem[] {
  const resolving = settings.find(({ option: { section, name } }) => `${section}.${name}` === RESOLVE_NAMES);
  // A command without Keystone options checks no lease.
  if (resolving === undefined || resolving.value === true) {
    return [];
  }
  return settings
    .filter(({ option, origin }) => origin.kind !== 'default' && options.includes(option))
    .flatMap(({ option, value, origin, members }): Problem[] => {
      const name = firstKeystoneName(value, option);
      if (name === undefined) {
        return [];
      }
      const mayBeId = option.names.includes('name@domain') && !/\s/.test(name);
      return [
        {
          severity: mayBeId ? 'warning' : 'error',
          origin: members?.find((member) => member.name === name)?.origin ?? origin,
          section: option.section,
          option: option.name,
          message: mayBeId
            ? `${showText(name)} applies only if it is an id: names need [keystone] resolve_names = true`
            : `${showText(name)} would never apply: ${option.names.includes('name@domain') ? 'names' : 'tags'} need [keystone] resolve_names = true`,
        },
      ];
    });
}

const RESOLVE_NAMES = 'keystone.resolve_names';

/** Secrets in world-readable files. Reports the first one per file. */
export function worldReadableSecrets(
  { files }: Pick<ReadSources, 'files'>,
  options: readonly Option[],
): Problem[] {
  return files
    .filter(({ file }) => isReadByEveryone(file))
    .flatMap(({ layer }) =>
      options
        .flatMap((option) => {
          const { value, origin } = layer.get(option.section)?.get(option.name) ?? {};
          return option.secret && value !== undefined && holdsSecret(valueText(value))
            ? [{ origin, section: option.section, option: option.name }]
            : [];
        })
        .slice(0, 1)
        .map((place) => ({
          severity: 'warning' as const,
          ...place,
          message: 'everyone may read the file of this secret; remove that permission: chmod o-r',
        })),
    );
}

/** Empty texts and URLs without credentials are not secrets. */
function holdsSecret(text: string): boolean {
  return text.trim() !== '' && (!/^[a-z+]+:\/\//.test(text) || /@|password/.test(text));
}

/** Options of `[enforcement]` in `[DEFAULT]`, where they have no effect. */
export function misplacedOptions(layers: readonly Layer[], options: readonly Option[]): Problem[] {
  const names = new Set(options.filter(({ section }) => section === SECTION).map(({ name }) => name));
  return layers.flatMap((layer) =>
    [...(layer.get('default') ?? [])]
      .filter(([name]) => names.has(name))
      .map(([name, { origin }]) => ({
        severity: 'warning' as const,
        origin,
        section: 'DEFAULT',
        option: name,
        message: 'has no effect here: it belongs in [enforcement]',
      })),
  );
}

/**
 * A filter's own checks. `named`: the option that names the filter, where mistakes without an option are
 * reported. `incomplete`: some options are wrong, so there is no warning that they limit nothing.
 */
export function filterCheck(
  { name, filterClass }: InstalledFilter,
  named: string,
  incomplete: boolean,
): OptionsCheck {
  return async (values, settings = []) => {
    const problems = (await filterClass.check?.(values, settings)) ?? [];
    const what = incomplete ? undefined : filterClass.limitsNothing?.(values);
    // It is called again at the start, where what it throws would have no place.
    filterClass.needsLedger?.(values);
    return [
      ...problems,
      ...(what === undefined ? [] : [warning(named, `${name} ${what}`)]),
      ...keystoneProblem(filterClass.needsKeystone?.(values), settings),
    ];
  };
}

/** A filter that sends Keystone tokens, without a `[keystone]` for them. `needed`: its option for that. */
function keystoneProblem(needed: string | undefined, settings: readonly Setting[]): Problem[] {
  const isSet = settings.some(
    ({ option: { section, name }, input }) =>
      section === 'keystone' && (name === 'auth_url' || name === 'cloud') && input !== undefined,
  );
  return needed === undefined || isSet
    ? []
    : [
        {
          severity: 'error',
          section: SECTION,
          option: needed,
          message: 'needs an account at Keystone: set [keystone] auth_url or cloud',
        },
      ];
}

function warning(option: string, message: string): Problem {
  return { severity: 'warning', section: 'enforcement', option, message };
}
