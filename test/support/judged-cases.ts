/** Runs cases as `test` does, and tells what each rule said of each case. */

import { readCases } from '../../src/cli/cases/case-files.ts';
import type { CaseResult } from '../../src/cli/cases/case-report.ts';
import { TaskConfigurations } from '../../src/cli/skypilot/case-configuration.ts';
import { schemaOfCase } from '../../src/cli/test/any-case.ts';
import { ConfigurationCoverage, Coverage } from '../../src/cli/test/coverage.ts';
import { EmptyLedgers } from '../../src/cli/test/lease-trial.ts';
import { runCase, type TestRun } from '../../src/cli/test/run-case.ts';
import type { ConfigSources } from '../../src/config/sources.ts';
import type { Configuration } from '../../src/enforcement/configuration.ts';
import type { ObservedRule, RuleAnswer } from '../../src/filter/services.ts';
import { namedIn } from './rule-cases.ts';

export interface JudgedCase {
  readonly id: string;
  readonly outcome: CaseResult;
  /** The rules that are expected to refuse it; empty if it is expected to be allowed; `undefined` = it is about something else. */
  readonly named: readonly string[] | undefined;
  /** The last answer of each rule that was asked. */
  readonly answers: ReadonlyMap<string, RuleAnswer>;
}

export async function judgedCases(
  files: readonly string[],
  folder: string,
  flags: Pick<ConfigSources, 'configFiles' | 'config'> = {},
): Promise<JudgedCase[]> {
  const ledgers = new EmptyLedgers();
  const configurations: TestRun['configurations'] = new Map();
  const tasks = new TaskConfigurations();
  const judged: JudgedCase[] = [];
  try {
    for (const read of files.flatMap((file) => readCases(folder, file, schemaOfCase))) {
      if (!('case' in read)) {
        throw new Error(`${read.id}: ${read.problems.map(({ message }) => message).join(' ')}`);
      }
      const coverage = new Answers();
      const outcome = await runCase(read, folder, { flags, coverage, ledgers, configurations, tasks });
      judged.push({ id: read.id, outcome, named: namedIn(read.case.written.expect), answers: coverage.said });
    }
  } finally {
    await ledgers.close();
  }
  return judged;
}

class Answers extends Coverage {
  readonly said = new Map<string, RuleAnswer>();

  override of(configuration: Configuration): ConfigurationCoverage {
    return new OneCase(configuration, this.said);
  }
}

class OneCase extends ConfigurationCoverage {
  readonly #said: Map<string, RuleAnswer>;

  constructor(configuration: Configuration, said: Map<string, RuleAnswer>) {
    super(configuration);
    this.#said = said;
  }

  override ruleJudged(rule: ObservedRule, said: RuleAnswer): void {
    super.ruleJudged(rule, said);
    this.#said.set(rule.name, said);
  }
}
