/** Runs one case, of whatever it is: a lease, a pod or a task. */

import { ConfigurationError, type Problem } from '../../base/errors.ts';
import type { ConfigSources } from '../../config/sources.ts';
import { type Configuration, readConfiguration, sectionOf } from '../../enforcement/configuration.ts';
import type { ReadCase } from '../cases/case-files.ts';
import { CaseMistake } from '../cases/case-mistake.ts';
import type { CaseResult } from '../cases/case-report.ts';
import type { TaskConfigurations } from '../skypilot/case-configuration.ts';
import type { AnyCase } from './any-case.ts';
import type { Coverage } from './coverage.ts';
import type { EmptyLedgers } from './empty-ledger.ts';
import { CONFIG_FILES, sourcesOfCase } from './suites.ts';

/** Of `[kubernetes]`: what is used only by a service. */
const UNUSED: ReadonlySet<string> = new Set(['tokens_file', 'client_ca_file', 'kubeconfig']);

/** What all cases of a run share. */
export interface TestRun {
  readonly flags: Pick<ConfigSources, 'configFiles' | 'configDirs' | 'config'>;
  readonly coverage: Coverage;
  readonly ledgers: EmptyLedgers;
  /** Read once for all cases, by its sources. */
  readonly configurations: Map<string, Promise<Configuration>>;
  /** The same, of cases about tasks. */
  readonly tasks: TaskConfigurations;
}

/** Never throws because of a case or of what it tests. */
export async function runCase(read: ReadCase<AnyCase>, folder: string, run: TestRun): Promise<CaseResult> {
  const started = performance.now();
  const { file, id } = read;
  const result = (more: Pick<CaseResult, 'status'> & Partial<CaseResult>): CaseResult => ({
    ...{ file, id, name: read.case.written.name ?? id, reasons: [], diff: '', problems: [] },
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
  const { file, id, lineOf, typedAt } = read;
  const one = read.case;
  switch (one.kind) {
    case 'lease': {
      const { runLeaseCase } = await import('./lease-case-run.ts');
      const configuration = await configurationOf(read, folder, run);
      return runLeaseCase({ file, id, lineOf, typedAt, case: one.written }, configuration, run);
    }
    case 'pod': {
      const { runPodCase } = await import('./pod-case-run.ts');
      const configuration = await configurationOf(read, folder, run);
      return runPodCase({ file, id, lineOf, typedAt, case: one.written }, configuration, run.coverage);
    }
    case 'task': {
      const { runTaskCase } = await import('../skypilot/case-run.ts');
      const sources = sourcesOfCase(file, folder, run.flags);
      return runTaskCase({ file, id, lineOf, typedAt, case: one.written }, sources, run);
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
  const key = JSON.stringify([read.case.kind, sources]);
  const known = run.configurations.get(key);
  if (known !== undefined) {
    return known;
  }
  const reading = readWhatCounts(sources, read.case.kind === 'pod' ? 'kubernetes' : 'enforcement');
  run.configurations.set(key, reading);
  return reading;
}

/**
 * Certificates, tokens and accounts of the service need not exist where its limits are tested: such mistakes are for `config validate`.
 * @throws ConfigurationError
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

/** Sections that a chain of filters reads. A file that they name may be missing. */
const BESIDE_FILTERS: ReadonlySet<string> = new Set(['ledger', 'keystone', 'notifications']);

function isUsable(configuration: Configuration, section: Parameters<typeof sectionOf>[1]): boolean {
  try {
    sectionOf(configuration, section);
    return true;
  } catch {
    return false;
  }
}
