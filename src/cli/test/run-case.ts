/** Runs one case about a lease, pod or task. */

import { existsSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { ConfigurationError, type Problem } from '../../base/errors.ts';
import type { ConfigSources } from '../../config/sources.ts';
import { type Configuration, readConfiguration, sectionOf } from '../../enforcement/configuration.ts';
import { CaseMistake, type ReadCase } from '../cases/case-files.ts';
import type { CaseResult } from '../cases/case-report.ts';
import { once, type TaskConfigurations } from '../skypilot/case-configuration.ts';
import type { AnyCase } from './any-case.ts';
import type { Coverage } from './coverage.ts';
import type { EmptyLedgers } from './lease-trial.ts';

/** The folder of cases beside a configuration. */
export const CASES = 'cases';
/** The configuration beside cases. */
const CONFIG_FILES = ['blazar.conf', 'blazar-enforcement.conf'] as const;

/** Options of `[kubernetes]` that only a service uses. */
const UNUSED: ReadonlySet<string> = new Set(['tokens_file', 'client_ca_file', 'kubeconfig']);

/** State shared by all cases of a run. */
export interface TestRun {
  readonly flags: Pick<ConfigSources, 'configFiles' | 'configDirs' | 'config'>;
  readonly coverage: Coverage;
  readonly ledgers: EmptyLedgers;
  /** Read once for all cases, by source. */
  readonly configurations: Map<string, Promise<Configuration>>;
  /** The same, for cases about tasks. */
  readonly tasks: TaskConfigurations;
}

/** Never throws because of a case or the tested code. */
export async function runCase(read: ReadCase<AnyCase>, folder: string, run: TestRun): Promise<CaseResult> {
  const started = performance.now();
  const { file, id } = read;
  const result = (more: Pick<CaseResult, 'status'> & Partial<CaseResult>): CaseResult => ({
    file,
    id,
    name: read.case.written.name ?? id,
    reasons: [],
    diff: '',
    problems: [],
    ...more,
    milliseconds: performance.now() - started,
  });
  try {
    return result(await runKind(read, folder, run));
  } catch (thrown) {
    if (thrown instanceof CaseMistake || thrown instanceof ConfigurationError) {
      const problems: readonly Problem[] = thrown.problems.filter(({ severity }) => severity === 'error');
      return result({ status: 'mistake', problems });
    }
    throw thrown;
  }
}

async function runKind(
  read: ReadCase<AnyCase>,
  folder: string,
  run: TestRun,
): Promise<Pick<CaseResult, 'status'> & Partial<CaseResult>> {
  const { case: one, ...place } = read;
  switch (one.kind) {
    case 'lease': {
      const { runLeaseCase } = await import('./lease-case-run.ts');
      const configuration = await configurationOf(read, folder, run);
      return runLeaseCase({ ...place, case: one.written }, configuration, run);
    }
    case 'pod': {
      const { runPodCase } = await import('./pod-case-run.ts');
      const configuration = await configurationOf(read, folder, run);
      return runPodCase({ ...place, case: one.written }, configuration, run.coverage);
    }
    case 'task': {
      const { runTaskCase } = await import('../skypilot/case-run.ts');
      const sources = sourcesOfCase(read.file, folder, run.flags);
      return runTaskCase({ ...place, case: one.written }, sources, run);
    }
  }
}

async function configurationOf(
  read: ReadCase<AnyCase>,
  folder: string,
  run: TestRun,
): Promise<Configuration> {
  const sources = sourcesOfCase(read.file, folder, run.flags);
  if (sources === undefined) {
    const message = `there is no configuration: expected ${CONFIG_FILES.join(' or ')} beside the case or above it, or --config-file`;
    throw CaseMistake.at(read, [], message);
  }
  const kind = read.case.kind === 'pod' ? 'kubernetes' : 'enforcement';
  return once(run.configurations, [kind, sources], () => readWhatCounts(sources, kind));
}

/**
 * Certificates, tokens and accounts of the service need not exist to test its limits: `config validate`
 * reports those. @throws ConfigurationError
 */
async function readWhatCounts(
  sources: ConfigSources,
  kind: 'enforcement' | 'kubernetes',
): Promise<Configuration> {
  const { SECTIONS } = await import('../../server/configuration/sections.ts');
  const configuration = await readConfiguration(sources, SECTIONS);
  const needed = kind === 'enforcement' ? SECTIONS.filter(({ section }) => BESIDE_FILTERS.has(section)) : [];
  const unusable = needed.filter((one) => !isUsable(configuration, one)).map(({ section }) => section);
  const counts = new Set<string | undefined>([undefined, kind, ...unusable]);
  const problems = configuration.problems.filter(
    ({ severity, section, option }) =>
      severity === 'error' && counts.has(section) && !(section === 'kubernetes' && UNUSED.has(option ?? '')),
  );
  if (problems.length > 0) {
    throw new ConfigurationError(problems);
  }
  return configuration;
}

/** Sections that a filter chain reads. Their files may be missing. */
const BESIDE_FILTERS: ReadonlySet<string> = new Set(['ledger', 'keystone', 'notifications']);

function isUsable(configuration: Configuration, section: Parameters<typeof sectionOf>[1]): boolean {
  try {
    sectionOf(configuration, section);
    return true;
  } catch {
    return false;
  }
}

/**
 * The configuration of a case: from flags, otherwise the nearest file in its folder or above, up to the
 * tested folder; also beside a folder named `cases`. `undefined` = none.
 */
function sourcesOfCase(
  file: string,
  folder: string,
  flags: Pick<ConfigSources, 'configFiles' | 'configDirs' | 'config'>,
): ConfigSources | undefined {
  if (flags.configFiles !== undefined || flags.configDirs !== undefined) {
    return { configFiles: [], ...defined(flags) };
  }
  const found = nearestConfig(dirname(file), folder);
  return found === undefined ? undefined : { ...defined(flags), configFiles: [found] };
}

function nearestConfig(from: string, folder: string): string | undefined {
  const tested = resolve(folder);
  const top = basename(tested) === CASES ? dirname(tested) : tested;
  for (let at = resolve(from); ; at = dirname(at)) {
    const found = CONFIG_FILES.map((name) => join(at, name)).find((one) => existsSync(one));
    if (found !== undefined || at === top || at === dirname(at)) {
      return found && shortest(found);
    }
  }
}

/** Relative to the working directory, unless outside of it. */
function shortest(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith('..') ? path : short;
}

function defined<Value extends object>(value: Value): Partial<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Partial<Value>;
}
