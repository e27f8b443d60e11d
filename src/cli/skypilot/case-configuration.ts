/** The configurations of cases about tasks: each is read once, whatever the number of cases that it is for. */

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

  /** `shared`: where policies come from, if the case does not name its own. @throws CaseMistake, ConfigurationError */
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

  /** Of all cases until now, for watching their files. */
  all(): readonly Promise<Configuration>[] {
    return [...this.#read.values()];
  }
}

function once<Value>(known: Map<string, Promise<Value>>, sources: ConfigSources, read: () => Promise<Value>) {
  const key = JSON.stringify(sources);
  const before = known.get(key);
  if (before !== undefined) {
    return before;
  }
  const reading = read();
  known.set(key, reading);
  return reading;
}

/** What is wrong with `policies` and `options` has the place of the case. `placed`: where the policies are named, if not there. */
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

/** The path of a policy as seen from a folder; a name of the library or of a package stays. */
function policyFrom(folder: string, policy: string): string {
  return /^\.{1,2}\//.test(policy) ? resolve(folder, policy) : policy;
}

/**
 * The policies of a file of configuration whose paths lead to files from its folder, as `skypilot init` writes them. `undefined` = they are
 * as good as they are written.
 */
async function policiesBesideTheirFile(sources: ConfigSources): Promise<PlacedPolicies | undefined> {
  // What is wrong with it is told by whoever reads it next.
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
