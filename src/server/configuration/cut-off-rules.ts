/** Rules across reloads: rejects truncated files, and logs rules that are no longer in force. */

import { ConfigurationError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import type { WrittenRules } from '../../rules/cut-off-rules.ts';

const OPTION = 'rules_path';
/** Maximum number of names in a log line. */
const MAX_NAMES = 50;
const NONE: WrittenRules = { rules: new Map(), texts: new Map() };

/** Keeps the rules of the current configuration. */
export class KeptRules {
  readonly #logger: Logger;
  #kept = NONE;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** For a configuration that is about to be loaded. YAML is only imported for rules, since it takes time. */
  async read({ settings }: Configuration): Promise<WrittenRules> {
    const paths = settings.flatMap(({ option, value }) =>
      option.name === OPTION && typeof value === 'string' && value !== '' ? [value] : [],
    );
    return paths.length === 0 ? NONE : (await import('../../rules/cut-off-rules.ts')).writtenRules(paths);
  }

  /** @throws ConfigurationError if files are most likely truncated */
  async refuseCutOff(next: WrittenRules): Promise<void> {
    if (this.#kept !== NONE) {
      const problems = (await import('../../rules/cut-off-rules.ts')).cutOffProblems(this.#kept, next);
      if (problems.length > 0) {
        throw new ConfigurationError(problems);
      }
    }
  }

  /** @throws ConfigurationError if the files changed while they were loaded: `next` may be outdated */
  async refuseUnread(next: WrittenRules, configuration: Configuration): Promise<void> {
    if (next !== NONE) {
      const { isSameText } = await import('../../rules/cut-off-rules.ts');
      if (!isSameText(next, await this.read(configuration))) {
        const message = 'the rules changed while they were read';
        throw new ConfigurationError([{ severity: 'error', message }]);
      }
    }
  }

  /** Makes `next` the current rules, and logs the changes. */
  async keep(next: WrittenRules, isStart = false): Promise<void> {
    const before = this.#kept;
    this.#kept = next;
    if (before === NONE && next === NONE) {
      return;
    }
    const { ruleChanges } = await import('../../rules/cut-off-rules.ts');
    const { added, changed, gone } = ruleChanges(before, next);
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
}

/** At most fifty names of each list. */
export function shown(names: Readonly<Record<string, readonly string[]>>): Record<string, readonly string[]> {
  return Object.fromEntries(
    Object.entries(names)
      .filter(([, list]) => list.length > 0)
      .map(([key, list]) => [
        key,
        list.length > MAX_NAMES ? [...list.slice(0, MAX_NAMES), `${list.length - MAX_NAMES} more`] : list,
      ]),
  );
}
