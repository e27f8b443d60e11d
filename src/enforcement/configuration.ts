/**
 * `[enforcement]`, from the sources to checked values: the filters to run, their order and options. All
 * mistakes are found here, before any filter is constructed.
 */

import { z } from 'zod';
import { type Problem, refuseErrors } from '../base/errors.ts';
import type { Layer } from '../config/layer.ts';
import { RESOURCE_TYPES } from '../config/names.ts';
import { describeOptions, type Option } from '../config/option.ts';
import {
  atOrigin,
  checkTogether,
  type FurtherSection,
  optionId,
  type SectionExtension,
  textsOf,
} from '../config/option-groups.ts';
import { resolve, type Setting, schemaInput } from '../config/resolve.ts';
import {
  type ConfigSources,
  notServed,
  permittedLayers,
  type ReadSources,
  readSources,
} from '../config/sources.ts';
import {
  chooseFilters,
  type FilterCatalog,
  type InstalledFilter,
  isPackageFilter,
  unloadedFilters,
} from './loading/filter-catalog.ts';
import { loadFilterCatalog } from './loading/filter-loader.ts';
import {
  brokenFilters,
  filterCheck,
  misplacedOptions,
  namesWithoutKeystone,
  withoutEffect,
  worldReadableSecrets,
} from './loading/option-checks.ts';

const SECTION = 'enforcement';

/** The options of the chain itself. */
export const enforcementOptions = z.object({
  enabled_filters: z.array(z.string()).default([]).meta({
    serverOnly: true,
    description:
      'The filters that every lease must pass, in this order. A name such as MaxLeaseDurationFilter, or package#Name for a filter of an installed npm package.',
  }),
  audit_filters: z.array(z.string()).default([]).meta({
    serverOnly: true,
    description:
      'Filters to try without enforcing them: a rejection is logged as a warning and does not refuse the lease. A filter that is also in enabled_filters keeps its place there.',
  }),
  exempt_projects: z
    .array(z.string())
    .default([])
    .meta({
      names: ['id', 'name@domain'],
      serverOnly: true,
      description: 'Projects whose leases are allowed without checks, by id or name@domain.',
    }),
  filters_path: z.array(z.string()).default([]).meta({
    serverOnly: true,
    description: 'Folders with your own filters. MyFilter is loaded from my-filter.js.',
  }),
  resource_types: z
    .array(z.string().regex(/^[^\s/,*]+$/))
    .default([])
    .meta({
      serverOnly: true,
      expected: 'a comma-separated list of resource types without spaces, slashes or "*"',
      description:
        'Resource types of your own Blazar plug-ins. You can set limits and rates for them, in addition to the built-in types: physical:host, virtual:instance, flavor:instance, virtual:floatingip, network, device.',
    }),
});

/** A filter to run, with its options as returned by its schema. */
export interface ConfiguredFilter {
  readonly installed: InstalledFilter;
  readonly options: unknown;
  readonly audit: boolean;
}

/** A configuration, with all its mistakes in `problems`. */
export interface Configuration {
  readonly exemptProjects: readonly string[];
  /** In the order in which they run. */
  readonly filters: readonly ConfiguredFilter[];
  readonly catalog: FilterCatalog;
  /** The files that were read, lowest first. */
  readonly files: readonly string[];
  /** Files and folders named in options. They are read again when the configuration is reloaded. */
  readonly namedFiles: readonly string[];
  /** The `files` without options. */
  readonly emptyFiles: readonly string[];
  /** The `files` whose last line has no line break. */
  readonly unendedFiles: readonly string[];
  /** The `files` of a user or a project folder. Services do not read them. */
  readonly clientFiles: readonly string[];
  /** Every option of every section, in order, with value and origin. */
  readonly settings: readonly Setting[];
  readonly problems: readonly Problem[];
}

/**
 * Reads, types and checks the configuration. Constructs no filter, and reports mistakes in `problems` instead
 * of throwing. With `projectFolder`, it also reads the project file in that folder and the user's files, for
 * commands that only show or try something.
 */
export async function readConfiguration(
  sources: ConfigSources,
  further: readonly FurtherSection[] = [],
  projectFolder?: string,
): Promise<Configuration> {
  const read = await readSources(sources, projectFolder);
  const coreOptions = describeOptions(SECTION, enforcementOptions);
  const own = { section: SECTION, schema: enforcementOptions };
  // Resolved twice: here to find the filters, and below when all options are known.
  const firstLayers = permittedLayers(read, isServerOnly(coreOptions)).layers;
  const first = sectionOf(resolve(firstLayers, coreOptions), own);
  const named = [...first.enabled_filters, ...first.audit_filters];
  const catalog = await loadFilterCatalog(
    first.filters_path,
    [...new Set(named.filter(isPackageFilter))],
    coreOptions.map(({ name }) => name),
  );

  const installed = [...catalog.filters.values()];
  const sections = await Promise.all(
    further.map(async (section) => ({ ...section, ...(await extensionOf(section, firstLayers)) })),
  );
  const options = [
    ...coreOptions,
    ...installed.flatMap((filter) => filter.options),
    ...sections.flatMap(({ section, schema, schemas, unused }) =>
      [schema, ...schemas, ...unused.map((one) => one.schema)].flatMap((one) =>
        describeOptions(section, one),
      ),
    ),
  ];
  const { layers, problems: notPermitted } = permittedLayers(read, isServerOnly(options));
  const resourceTypes = [...RESOURCE_TYPES, ...first.resource_types];
  const unloaded = [
    ...unloadedFilters(named, catalog).map((prefix) => ({ section: SECTION, prefix })),
    ...sections.flatMap((one) => one.unloaded.map((prefix) => ({ section: one.section, prefix }))),
  ];
  const { settings, problems } = resolve(layers, options, resourceTypes, unloaded);
  const core = sectionOf({ settings }, own);
  // Invalid folders of the first pass, which are reported already.
  const invalidFolders = first.filters_path.filter((folder) => !core.filters_path.includes(folder));
  const hasCoreMistakes = problems.some(({ option }) => coreOptions.some(({ name }) => name === option));
  const chain = chooseFilters(core, catalog, read.problems.length > 0 || hasCoreMistakes);
  const wrong = new Set(problems.map(({ section, option }) => optionId(section, option)));
  // If a source has a mistake, some limits may be unknown.
  const incomplete = read.problems.length > 0 || problems.some(({ section }) => section === SECTION);
  const filters = await Promise.all(
    chain.filters.map(async ({ filter, audit }) => {
      const named = audit ? 'audit_filters' : 'enabled_filters';
      const group = {
        section: SECTION,
        schema: filter.filterClass.options,
        check: filterCheck(filter, named, incomplete),
        named,
        owner: filter.name,
      };
      return { filter, audit, checked: await checkTogether(group, settings, wrong) };
    }),
  );
  const sectionProblems = await Promise.all(
    sections.flatMap(({ section, schema, check, schemas, checks, problems: found, unused }) => [
      ...[{ schema, check }, ...schemas.map((one) => ({ schema: one, check: checks?.get(one) }))].map(
        async (group) => (await checkTogether({ section, ...group }, settings, wrong)).problems,
      ),
      found.map(({ severity = 'error', option, message }) =>
        atOrigin({ severity, section, option, message }, settings),
      ),
      unused.flatMap((one) => withoutEffect(settings, describeOptions(section, one.schema), one.reason)),
    ]),
  );

  return {
    exemptProjects: core.exempt_projects,
    filters: filters.map(({ filter, audit, checked }) => ({
      installed: filter,
      options: checked.options,
      audit,
    })),
    catalog,
    files: read.files.map(({ file }) => file),
    namedFiles: [
      ...settings.flatMap(({ option, value }) => (option.watched ? textsOf(value) : [])),
      ...catalog.watched,
    ],
    emptyFiles: read.files.filter(({ layer }) => isEmpty(layer)).map(({ file }) => file),
    unendedFiles: read.files.filter(({ isUnended }) => isUnended).map(({ file }) => file),
    clientFiles: read.clientFiles,
    settings,
    problems: sortedByPlace(read, [
      ...read.problems,
      ...notPermitted,
      ...notServed(read, settings),
      ...problems,
      ...chain.problems.map((problem) => atOrigin(problem, settings)),
      ...filters.flatMap(({ checked }) => checked.problems),
      ...sectionProblems.flat(),
      ...brokenFilters(catalog, named, core.filters_path, invalidFolders).map((problem) =>
        problem.option === undefined ? problem : atOrigin(problem, settings),
      ),
      ...installed
        .filter((filter) => !chain.filters.some((chosen) => chosen.filter === filter))
        .flatMap(({ name, options }) =>
          withoutEffect(settings, options, `${name} is not in enabled_filters`),
        ),
      ...worldReadableSecrets(read, options),
      ...misplacedOptions(layers, options),
      ...namesWithoutKeystone(settings, [
        ...coreOptions,
        ...chain.filters.flatMap(({ filter }) => filter.options),
      ]),
    ]),
  };
}

/** Parses a section before all its options are known. Replaces invalid values with their defaults. */
async function extensionOf(
  { section, schema, extend }: FurtherSection,
  layers: readonly Layer[],
): Promise<SectionExtension> {
  if (extend === undefined) {
    return { schemas: [], problems: [], unloaded: [], unused: [] };
  }
  const { settings } = resolve(layers, describeOptions(section, schema));
  const own = new Set(Object.keys(schema.shape));
  const undeclared = layers.flatMap((layer) =>
    [...(layer.get(section)?.keys() ?? [])].filter((name) => !own.has(name)),
  );
  return extend(schema.parse(schemaInput(settings, own)) as never, undeclared);
}

/** Whether only server files may set an option: every option, except filter options without `serverOnly`. */
function isServerOnly(options: readonly Option[]): (section: string, option: string) => boolean {
  const names = new Set(
    options.filter(({ section, serverOnly }) => section === SECTION && serverOnly).map(({ name }) => name),
  );
  return (section, option) => section !== SECTION || names.has(option);
}

function isEmpty(layer: Layer): boolean {
  return [...layer.values()].every((options) => options.size === 0);
}

/** Sorted by file in reading order, then by line. Problems without a line come last. */
function sortedByPlace(read: ReadSources, problems: readonly Problem[]): Problem[] {
  const files = read.files.map(({ file }) => file);
  /** Files named only in options come after the files that were read. */
  const place = ({ origin }: Problem): [number, number] => {
    if (origin?.kind !== 'file') {
      return [files.length + 1, 0];
    }
    const index = files.indexOf(origin.file);
    return index < 0 ? [files.length, 0] : [index, origin.line];
  };
  return [...problems].sort((a, b) => place(a)[0] - place(b)[0] || place(a)[1] - place(b)[1]);
}

/** Like `readConfiguration`, but throws `ConfigurationError` if there are mistakes. */
export async function requireConfiguration(
  sources: ConfigSources,
  further?: readonly FurtherSection[],
  projectFolder?: string,
): Promise<Configuration> {
  return withoutMistakes(await readConfiguration(sources, further, projectFolder));
}

/** Returns the configuration. Throws `ConfigurationError` if it has mistakes. */
export function withoutMistakes(configuration: Configuration): Configuration {
  refuseErrors(configuration.problems);
  return configuration;
}

/**
 * The values of one section, as its schema returns them. Invalid values, reported elsewhere, are replaced
 * with their defaults.
 */
export function sectionOf<Schema extends z.ZodObject>(
  configuration: Pick<Configuration, 'settings'>,
  { section, schema }: { readonly section: string; readonly schema: Schema },
): z.infer<Schema> {
  const settings = configuration.settings.filter(({ option }) => option.section === section);
  return schema.parse(schemaInput(settings, new Set(Object.keys(schema.shape))));
}

const UNIT_OPTION = 'usage_budget_unit';

/**
 * The unit of budgets: `usage_budget_unit` in `[enforcement]`, even if its filter is not enabled; in
 * `[skypilot]` if only a policy there uses budgets.
 */
export function budgetUnit({ settings, filters }: Pick<Configuration, 'settings' | 'filters'>): string {
  const [own, ofLaunches] = ['enforcement', 'skypilot'].map((section) => {
    const value = settings.find(
      ({ option }) => option.section === section && option.name === UNIT_OPTION,
    )?.value;
    return typeof value === 'string' ? value : undefined;
  });
  const isOwn = filters.some(({ installed }) => installed.options.some(({ name }) => name === UNIT_OPTION));
  return (isOwn ? own : (ofLaunches ?? own)) ?? 'unit-hours';
}
