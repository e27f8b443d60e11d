/** Finds filters and rules that never allowed, or never refused, a request of a case. */
import type { Configuration } from '../../enforcement/configuration.ts';
import type { ObservedRule, RuleAnswer, RuleObserver } from '../../filter/services.ts';
import type { Decision } from '../../filter/verdict.ts';
import { podEnvironment } from '../../rules/pod/environment.ts';
import { readRules } from '../../rules/read-rules.ts';
import { taskEnvironment } from '../../rules/task/environment.ts';
import { printRows } from '../common/output.ts';

interface Covered {
  readonly kind: 'filter' | 'rule' | 'scheduling-policy' | 'admin-policy';
  readonly name: string;
  /** `file:line`; for a filter, the configuration file. */
  readonly place: string;
  allowed: boolean;
  refused: boolean;
}

/** Coverage of all cases of a run. */
export class Coverage {
  readonly #configurations = new Map<string, ConfigurationCoverage>();

  of(configuration: Configuration): ConfigurationCoverage {
    const key = configuration.files.join('\0');
    const seen = this.#configurations.get(key) ?? new ConfigurationCoverage(configuration);
    this.#configurations.set(key, seen);
    return seen;
  }

  /** In the order of the configurations, filters first. */
  list(): readonly Covered[] {
    return [...this.#configurations.values()].flatMap((one) => one.list());
  }
}

class ConfigurationCoverage implements RuleObserver {
  readonly #seen = new Map<string, Covered>();
  readonly #file: string;

  constructor({ files, filters }: Configuration) {
    this.#file = files.at(-1) ?? '';
    for (const { installed } of filters) {
      this.expect('filter', installed.name);
    }
  }

  rulesRead(rules: readonly ObservedRule[]): void {
    for (const { name, place } of rules) {
      this.expect('rule', name, `${place.file}:${place.line}`);
    }
  }

  ruleJudged({ name, place }: ObservedRule, said: RuleAnswer): void {
    this.saw('rule', name, said, `${place.file}:${place.line}`);
  }

  decided({ outcomes }: Decision): void {
    for (const { filter, allowed, failed, onError } of outcomes) {
      this.saw('filter', filter, failed || onError ? 'failed' : allowed ? 'allowed' : 'refused');
    }
  }

  saw(kind: Covered['kind'], name: string, said: RuleAnswer, place = this.#file): void {
    const entry = this.expect(kind, name, place);
    entry.allowed ||= said === 'allowed';
    entry.refused ||= said === 'refused';
  }

  expect(kind: Covered['kind'], name: string, place = this.#file): Covered {
    const key = `${kind}\0${name}\0${place}`;
    const entry = this.#seen.get(key) ?? { kind, name, place, allowed: false, refused: false };
    this.#seen.set(key, entry);
    return entry;
  }

  list(): readonly Covered[] {
    return [...this.#seen.values()];
  }
}

/** Each filter, rule and policy should be seen to allow, and to refuse. In percent; 100 for an empty list. */
export function coveredPercent(covered: readonly Covered[]): number {
  const seen = covered.reduce((sum, { allowed, refused }) => sum + Number(allowed) + Number(refused), 0);
  return covered.length === 0 ? 100 : (seen / (2 * covered.length)) * 100;
}

/** Rounded down: 100 means complete. */
export function percentText(percent: number): string {
  return `${Math.floor(percent * 10) / 10} %`;
}

export async function printCoverage(covered: readonly Covered[]): Promise<void> {
  process.stdout.write('\n');
  await printRows(covered, {
    WHAT: ({ kind }) => kind.replace('-', ' '),
    NAME: ({ name }) => name,
    ALLOWS: ({ allowed }) => (allowed ? 'seen' : 'never'),
    REFUSES: ({ refused }) => (refused ? 'seen' : 'never'),
    FROM: ({ place }) => place,
  });
  process.stdout.write(`\ncoverage: ${percentText(coveredPercent(covered))}\n`);
}

/** Unreadable files are reported when a case reads them. */
export function expectRules(configuration: Configuration, coverage: Coverage): void {
  const setting = (section: string, name: string) =>
    configuration.settings.find(({ option }) => option.section === section && option.name === name)?.value;
  const seen = coverage.of(configuration);
  const pods = setting('kubernetes', 'rules_path');
  if (typeof pods === 'string') {
    seen.rulesRead(readRules(pods, { pod: podEnvironment() }).rules.pod);
  }
  const tasks = setting('skypilot', 'rules_path');
  if (typeof tasks === 'string') {
    seen.rulesRead(readRules(tasks, { task: taskEnvironment() }).rules.task);
  }
}
