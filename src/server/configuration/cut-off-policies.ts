/**
 * Files of scheduling policies across reloads: rejects truncated ones, which may lack what a policy requires, and logs
 * what was removed.
 */

import { ConfigurationError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { shown } from './cut-off-rules.ts';

const OPTIONS: readonly string[] = ['scheduling_policies', 'scheduling_policy_path'];

/** File → its text. */
type Texts = ReadonlyMap<string, string>;

/** Keeps the texts of the current configuration. */
export class KeptPolicies {
  readonly #logger: Logger;
  #kept: Texts = new Map();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** For a configuration that is about to be loaded. YAML is only imported for policies, since it takes time. */
  async read({ settings }: Configuration): Promise<Texts> {
    const paths = settings.flatMap(({ option, value }) =>
      OPTIONS.includes(option.name)
        ? [value].flat().filter((path) => typeof path === 'string' && path !== '')
        : [],
    ) as string[];
    return paths.length === 0
      ? new Map()
      : (await import('../../kubernetes/policies/documents/items.ts')).policyTexts(paths);
  }

  /** @throws ConfigurationError if files are most likely truncated */
  refuseCutOff(next: Texts): void {
    const problems = [...next].flatMap(([file, text]) => {
      const why = whyCutOff(this.#kept.get(file), text);
      return why === undefined ? [] : [{ severity: 'error', message: `${file}: ${why}` } as const];
    });
    if (problems.length > 0) {
      throw new ConfigurationError(problems);
    }
  }

  /** @throws ConfigurationError if the files changed while they were loaded: `next` may be outdated */
  async refuseUnread(next: Texts, configuration: Configuration): Promise<void> {
    const now = await this.read(configuration);
    if (now.size !== next.size || [...now].some(([file, text]) => next.get(file) !== text)) {
      const message = 'the scheduling policies changed while they were read';
      throw new ConfigurationError([{ severity: 'error', message }]);
    }
  }

  /** Makes `next` the current policies, and logs what is gone. */
  async keep(next: Texts): Promise<void> {
    const before = this.#kept;
    this.#kept = next;
    if ([...before].every(([file, text]) => next.get(file) === text)) {
      return;
    }
    const { objectNames } = await import('../../kubernetes/policies/documents/items.ts');
    const now = objectNames(next);
    const gone = [...objectNames(before)].filter((name) => !now.has(name));
    if (gone.length > 0) {
      this.#logger.warn(
        shown({ gone }),
        'scheduling policies, roles or bindings are no longer in force: they were removed from the files',
      );
    }
  }
}

function whyCutOff(was: string | undefined, text: string): string | undefined {
  if (was === undefined || was === text) {
    return undefined;
  }
  // A document that was removed whole is no cut.
  if (was.startsWith(text) && !was.slice(text.length).startsWith('---')) {
    return 'the end of the file is gone, within a document; restart to accept it';
  }
  return isEnded(was) && !isEnded(text)
    ? 'the file no longer ends with a line break, so it was most likely cut off; add one, or restart to accept it'
    : undefined;
}

/** JSON marks its own end. */
function isEnded(text: string): boolean {
  return text.endsWith('\n') || /^\s*[{[]/.test(text);
}
