/** Files across reloads: rejects truncated ones, and logs rules and policies that are no longer in force. */

import { dirname, join } from 'node:path';
import { ConfigurationError, type Problem } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { ConfigSources } from '../../config/sources.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import type { WrittenRules } from '../../rules/cut-off-rules.ts';

const MAX_NAMES = 50;
const UNENDED =
  'the file no longer ends with a line break, so it was most likely cut off; add one, or restart to accept it';

const EMPTIED = 'the folder has no configuration files any more; restart to accept it';

/** File with scheduling policies → its text. */
type PolicyTexts = ReadonlyMap<string, string>;

interface NamedFiles {
  readonly rules: WrittenRules;
  readonly policies: PolicyTexts;
}

const NONE: NamedFiles = { rules: { rules: new Map(), texts: new Map() }, policies: new Map() };

/** Keeps the rules and scheduling policies of the current configuration. */
export class KeptFiles {
  readonly #logger: Logger;
  #kept = NONE;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** For a configuration that is about to be loaded. YAML is only imported if needed, since it takes time. */
  async read(configuration: Configuration): Promise<NamedFiles> {
    const rules = pathsOf(configuration, ['rules_path']);
    const policies = pathsOf(configuration, ['scheduling_policies', 'scheduling_policy_path']);
    return {
      rules: rules.length === 0 ? NONE.rules : (await ofRules()).writtenRules(rules),
      policies: policies.length === 0 ? NONE.policies : (await ofPolicies()).policyTexts(policies),
    };
  }

  /** @throws ConfigurationError if files are most likely truncated */
  async refuseCutOff({ rules, policies }: NamedFiles): Promise<void> {
    refuse([
      ...(this.#kept.rules === NONE.rules ? [] : (await ofRules()).cutOffProblems(this.#kept.rules, rules)),
      ...[...policies].flatMap(([file, text]) => {
        const why = whyCutOff(this.#kept.policies.get(file), text);
        return why === undefined ? [] : [problem(`${file}: ${why}`)];
      }),
    ]);
  }

  /** @throws ConfigurationError if the files changed while they were loaded: `next` may be outdated */
  async refuseChanged(next: NamedFiles, configuration: Configuration): Promise<void> {
    const now = await this.read(configuration);
    const changed = [
      ...(isSame(next.rules.texts, now.rules.texts) ? [] : ['rules']),
      ...(isSame(next.policies, now.policies) ? [] : ['scheduling policies']),
    ];
    refuse(changed.map((what) => problem(`the ${what} changed while they were read`)));
  }

  /** Makes `next` current, and logs changes. */
  async keep(next: NamedFiles, isStart = false): Promise<void> {
    const before = this.#kept;
    this.#kept = next;
    await this.#logRules(before.rules, next.rules, isStart);
    await this.#logPolicies(before.policies, next.policies);
  }

  async #logRules(before: WrittenRules, next: WrittenRules, isStart: boolean): Promise<void> {
    if (before === NONE.rules && next === NONE.rules) {
      return;
    }
    const { added, changed, gone } = (await ofRules()).ruleChanges(before, next);
    if (isStart) {
      this.#logger.info({ rules: added.length, files: next.texts.size }, 'rules are in force');
      return;
    }
    if (gone.length > 0) {
      this.#logger.warn(shown({ gone }), 'rules are no longer in force: they were removed from the files');
    }
    if (added.length + changed.length > 0) {
      this.#logger.info(shown({ added, changed }), 'rules have changed');
    }
  }

  async #logPolicies(before: PolicyTexts, next: PolicyTexts): Promise<void> {
    if ([...before].every(([file, text]) => next.get(file) === text)) {
      return;
    }
    const { objectNames } = await ofPolicies();
    const now = objectNames(next);
    const gone = [...objectNames(before)].filter((name) => !now.has(name));
    if (gone.length > 0) {
      const message =
        'scheduling policies, roles or bindings are no longer in force: they were removed from the files';
      this.#logger.warn(shown({ gone }), message);
    }
  }
}

/**
 * A configuration file that was truncated while it was written, for example on a full disk, may have no
 * mistakes: an empty file enforces nothing, and one that ends within a line lacks the filters and limits after
 * it. So does a folder that is empty because its volume is not mounted.
 *
 * @throws ConfigurationError
 */
export function refuseCutOff(
  before: Configuration,
  next: Configuration,
  { configDirs = [] }: ConfigSources,
): void {
  const became = (list: 'emptyFiles' | 'unendedFiles', message: string) =>
    next[list]
      .filter((file) => before.files.includes(file) && !before[list].includes(file))
      .map((file) => problem(`${file}: ${message}`));
  const hasFiles = ({ files }: Configuration, folder: string) =>
    files.some((file) => dirname(file) === dirname(join(folder, 'file')));
  refuse([
    ...configDirs
      .filter((folder) => hasFiles(before, folder) && !hasFiles(next, folder))
      .map((folder) => problem(`${folder}: ${EMPTIED}`)),
    ...became('emptyFiles', 'the file became empty; restart to accept it'),
    ...became('unendedFiles', UNENDED),
  ]);
}

const ofRules = () => import('../../rules/cut-off-rules.ts');
const ofPolicies = () => import('../../kubernetes/policies/documents/items.ts');

function problem(message: string): Problem {
  return { severity: 'error', message };
}

function refuse(problems: readonly Problem[]): void {
  if (problems.length > 0) {
    throw new ConfigurationError(problems);
  }
}

function pathsOf({ settings }: Configuration, options: readonly string[]): string[] {
  return settings.flatMap(({ option, value }) =>
    options.includes(option.name)
      ? [value].flat().filter((path) => typeof path === 'string' && path !== '')
      : [],
  ) as string[];
}

function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([file, text]) => other.get(file) === text);
}

function whyCutOff(was: string | undefined, text: string): string | undefined {
  if (was === undefined || was === text) {
    return undefined;
  }
  // A document that was removed whole is no cut.
  if (was.startsWith(text) && !was.slice(text.length).startsWith('---')) {
    return 'the end of the file is gone, within a document; restart to accept it';
  }
  return isEnded(was) && !isEnded(text) ? UNENDED : undefined;
}

/** JSON marks its own end. */
function isEnded(text: string): boolean {
  return text.endsWith('\n') || /^\s*[{[]/.test(text);
}

function shown(names: Readonly<Record<string, readonly string[]>>): Record<string, readonly string[]> {
  const some = Object.entries(names).filter(([, list]) => list.length > 0);
  const rest = (count: number) => (count > MAX_NAMES ? [`${count - MAX_NAMES} more`] : []);
  return Object.fromEntries(
    some.map(([key, list]) => [key, [...list.slice(0, MAX_NAMES), ...rest(list.length)]]),
  );
}
