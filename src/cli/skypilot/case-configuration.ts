/** Configurations of cases about tasks: each is read once and shared by cases. */

import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigurationError, type Origin } from '../../base/errors.ts';
import type { ConfigSources } from '../../config/sources.ts';
import {
  type Configuration,
  readConfiguration,
  requireConfiguration,
  sectionOf,
} from '../../enforcement/configuration.ts';
import { skypilotSection } from '../../skypilot/section.ts';
import { CaseMistake, type ReadCase } from '../cases/case-files.ts';
import type { SkypilotCase } from '../test/any-case.ts';

type ReadTaskCase = ReadCase<SkypilotCase>;

export class TaskConfigurations {
  readonly #placed = new Map<string, Promise<PlacedPolicies | undefined>>();
  readonly #read = new Map<string, Promise<Configuration>>();

  /** `shared`: sources of policies unless the case names its own. @throws CaseMistake, ConfigurationError */
  async of(read: ReadTaskCase, shared: ConfigSources): Promise<Configuration> {
    const { policies, options } = read.case;
    const from = dirname(read.file);
    const own = policies?.map((policy) => policyFrom(from, policy));
    const placed =
      own === undefined ? await once(this.#placed, shared, () => policiesBesideTheirFile(shared)) : undefined;
    const named = own ?? placed?.policies;
    const sources: ConfigSources = {
      ...(own === undefined ? shared : { configFiles: [] }),
      values: {
        skypilot: { ...options, ...(named !== undefined && { admin_policies: named }), isolation: 'worker' },
      },
    };
    const configuration = await once(this.#read, sources, () =>
      requireConfiguration(sources, [skypilotSection]),
    ).catch((thrown: unknown) => {
      throw thrown instanceof ConfigurationError && (named !== undefined || options !== undefined)
        ? atTheCase(thrown, read, placed?.origin)
        : thrown;
    });
    if (sectionOf(configuration, skypilotSection).admin_policies.length === 0) {
      throw CaseMistake.at(
        read,
        [],
        `no policy is named: name some in policies, in blazar.conf in the folder, or with --config-file`,
      );
    }
    return configuration;
  }

  /** The configurations of all cases until now, for watching their files. */
  all(): readonly Promise<Configuration>[] {
    return [...this.#read.values()];
  }
}

/** Reads once for equal keys. */
export function once<Value>(known: Map<string, Promise<Value>>, of: unknown, read: () => Promise<Value>) {
  const key = JSON.stringify(of);
  const before = known.get(key);
  if (before !== undefined) {
    return before;
  }
  const reading = read();
  known.set(key, reading);
  return reading;
}

/** Moves problems of `policies` and `options` to the case. `placed`: their place, if the case names none. */
function atTheCase(
  { problems }: ConfigurationError,
  { file, lineOf }: ReadTaskCase,
  placed: Origin | undefined,
): ConfigurationError {
  return new ConfigurationError(
    problems.map((problem) => {
      const { origin, option = '' } = problem;
      const isPolicies = option === 'admin_policies';
      const path = isPolicies ? ['policies'] : ['options', option];
      const own: Origin = { kind: 'file', file, line: lineOf(path) };
      return origin === undefined || origin.kind === 'code'
        ? { ...problem, origin: isPolicies ? (placed ?? own) : own }
        : problem;
    }),
  );
}

interface PlacedPolicies {
  readonly policies: readonly string[];
  readonly origin: Origin;
}

/** Resolves a policy's path from a folder; names from the library or a package stay. */
function policyFrom(folder: string, policy: string): string {
  return /^\.{1,2}\//.test(policy) ? resolve(folder, policy) : policy;
}

/**
 * The policies of a configuration file with paths resolved from its folder, as `skypilot init` writes them.
 * `undefined` = no path changes.
 */
async function policiesBesideTheirFile(sources: ConfigSources): Promise<PlacedPolicies | undefined> {
  // Problems are reported by the next reader of the file.
  const { settings } = await readConfiguration(sources, [skypilotSection]);
  const { value, origin } = settings.find(({ option }) => option.name === 'admin_policies') ?? {};
  if (origin?.kind !== 'file' || !Array.isArray(value)) {
    return undefined;
  }
  const folder = dirname(origin.file);
  const policies = value.map((policy) => {
    const beside = policyFrom(folder, String(policy));
    return existsSync(beside.replace(/#[^#]*$/, '')) ? beside : String(policy);
  });
  return policies.some((policy, index) => policy !== value[index]) ? { policies, origin } : undefined;
}
