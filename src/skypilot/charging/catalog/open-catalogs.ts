/** Opens the catalogs of a configuration. An unchanged file is not read again. */
import { LRUCache } from 'lru-cache';
import { ConfigurationError, type Problem } from '../../../base/errors.ts';
import type { SectionProblem } from '../../../config/option-groups.ts';
import { fileState } from '../../../config/read-file.ts';
import { showText } from '../../../config/secret.ts';
import { canonicalCloud } from '../../task/infra.ts';
import { Catalog } from './catalog.ts';
import type { readCatalogFile } from './catalog-file.ts';

type ReadCatalog = Awaited<ReturnType<typeof readCatalogFile>>;

const CLOUDS = new Set(
  `aws azure cudo do fluidstack gcp hyperbolic ibm lambda mithril nebius oci paperspace primeintellect runpod scp seeweb shadeform vast verda vsphere yotta`.split(
    ' ',
  ),
);
const WITHOUT_CATALOG = new Set(['kubernetes', 'ssh', 'slurm']);

/** Warnings of entries such as `awss/us-east-1`, in any spelling. A newer SkyPilot may have such a cloud. */
export function unknownClouds(entries: readonly string[], option: string, effect: string): Problem[] {
  const unknown = entries.filter((entry) => {
    const cloud = canonicalCloud(entry.replace(/\/.*/, ''));
    return !CLOUDS.has(cloud) && !WITHOUT_CATALOG.has(cloud);
  });
  return unknown.map((entry) => ({
    severity: 'warning',
    section: 'skypilot',
    option,
    message: `${entry.slice(0, 100)} ${effect}: SkyPilot has no such cloud`,
  }));
}

/** Cloud → file, as the operator writes them. */
type CatalogFiles = Readonly<Record<string, string>>;

/** By cloud. @throws ConfigurationError with what `catalogProblems` returns */
export async function openCatalogs(
  files: CatalogFiles,
  option: string,
): Promise<ReadonlyMap<string, Catalog>> {
  const { catalogs, problems } = await readCatalogs(files, option);
  if (problems.length > 0) {
    throw new ConfigurationError(
      problems.map((problem) => ('severity' in problem ? problem : { severity: 'error', ...problem })),
    );
  }
  return catalogs;
}

/** Mistakes in the names of clouds and in the files, each with its line. */
export async function catalogProblems(
  files: CatalogFiles,
  option: string,
): Promise<(Problem | SectionProblem)[]> {
  return (await readCatalogs(files, option)).problems;
}

async function readCatalogs(files: CatalogFiles, option: string) {
  const catalogs = new Map<string, Catalog>();
  const problems: (Problem | SectionProblem)[] = cloudProblems(files, option);
  for (const [name, path] of problems.length > 0 ? [] : Object.entries(files)) {
    const { catalog, mistakes } = await readOnce(canonicalCloud(name), path);
    catalogs.set(canonicalCloud(name), catalog);
    for (const { line, message } of mistakes) {
      problems.push(
        line === undefined
          ? { option, message: `${showText(path)}: ${message}` }
          : { severity: 'error', origin: { kind: 'file', file: path, line }, message },
      );
    }
  }
  return { catalogs, problems };
}

function cloudProblems(files: CatalogFiles, option: string): SectionProblem[] {
  const names = Object.keys(files);
  return names.flatMap((name): SectionProblem[] => {
    const cloud = canonicalCloud(name);
    if (WITHOUT_CATALOG.has(cloud)) {
      const message = `${showText(name)} has no catalog; give rates instead, such as ${cloud}/A100:2 or ${cloud}/*:0`;
      return [{ option, message }];
    }
    if (!CLOUDS.has(cloud)) {
      const message = `expected clouds, each one of ${[...CLOUDS].join(', ')}, got ${showText(name)}`;
      return [{ option, message }];
    }
    return names.some((other) => other !== name && canonicalCloud(other) === cloud)
      ? [{ option, message: `expected one file for each cloud, got several for ${cloud}` }]
      : [];
  });
}

interface Opened {
  readonly catalog: Catalog;
  readonly mistakes: ReadCatalog['mistakes'];
}

/** A check of a configuration and its policy read the same files; a reload mostly finds them unchanged. */
const known = new LRUCache<string, { readonly state: string; readonly opened: Promise<Opened> }>({ max: 50 });

async function readOnce(cloud: string, path: string): Promise<Opened> {
  const key = `${cloud}:${path}`;
  const state = await fileState(path);
  const before = known.get(key);
  if (before !== undefined && before.state === state) {
    return before.opened;
  }
  const opened = readNow(cloud, path);
  if (state !== undefined) {
    known.set(key, { state, opened });
  }
  // The mistake may be temporary.
  if ((await opened).mistakes.length > 0) {
    known.delete(key);
  }
  return opened;
}

async function readNow(cloud: string, path: string): Promise<Opened> {
  const { readCatalogFile } = await import('./catalog-file.ts');
  const { machines, mistakes } = await readCatalogFile(path);
  return { catalog: new Catalog(cloud, machines), mistakes };
}
