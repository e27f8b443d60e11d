/** Announces this replica to the others, with its version and configuration. */
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { withinDeadline } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { packageVersion } from '../../base/version.ts';
import { optionId, textsOf } from '../../config/option-groups.ts';
import { showValue } from '../../config/secret.ts';
import { valueText } from '../../config/text.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import type { Generation } from '../configuration/generation.ts';
import { Cached } from '../metrics/cached.ts';

/** Heartbeat interval, in milliseconds: a third of the time after which others consider it gone. */
const EVERY = 10_000;
/** Timeout, in seconds. */
const PATIENCE = 5;

/** Options that differ between processes. */
const OWN = new Set(
  ['host', 'port', 'admin_host', 'admin_port', 'decision_log'].map((name) => optionId('service', name)),
);

/**
 * Equal for equal configurations: covers option values as the configuration page shows them, and the content
 * of files that they name. Leaves out secrets, in values and files, so that the digest cannot be used to
 * guess them, and options that differ between processes.
 */
export async function configurationDigest(of: Pick<Configuration, 'settings' | 'catalog'>): Promise<string> {
  const { settings, catalog } = of;
  const shared = settings.filter(({ option }) => !OWN.has(optionId(option.section, option.name)));
  const values = shared.map(({ option, value, secret }) => [
    option.section,
    option.name,
    valueText(showValue(value, secret || option.secretFile)),
  ]);
  const files = shared.flatMap(({ option, value, secret }) =>
    option.watched && !option.secretFile && !secret ? textsOf(value) : [],
  );
  const contents = await Promise.all([...files, ...catalog.watched].map(contentOf));
  return hash('sha256', JSON.stringify([values, contents])).slice(0, 16);
}

/** Empty for a folder. */
async function contentOf(file: string): Promise<string> {
  return readFile(file).then(
    (content) => hash('sha256', content),
    () => '',
  );
}

export class Heartbeat {
  readonly #current: () => Generation;
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;
  readonly #digest = new Cached(Number.POSITIVE_INFINITY, ({ configuration }: Generation) =>
    configurationDigest(configuration),
  );
  #isFailing = false;

  constructor(current: () => Generation, logger: Logger) {
    this.#current = current;
    this.#logger = logger;
  }

  /** Announces now and periodically. Call it again after a reload. */
  start(): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => void this.#tell(), EVERY).unref();
    void this.#tell();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #tell(): Promise<void> {
    const generation = this.#current();
    const replicas = generation.decisions?.replicas;
    if (replicas === undefined) {
      return;
    }
    try {
      const digest = await this.#digest.read(generation);
      const facts = { version: packageVersion(), generation: generation.number, digest };
      await withinDeadline(PATIENCE, (wait) => replicas.present(facts, wait));
      this.#isFailing = false;
    } catch (thrown) {
      // A reload or a stop may have closed the store.
      if (this.#timer !== undefined && generation === this.#current() && !this.#isFailing) {
        this.#isFailing = true;
        this.#logger.warn({ error: errorText(thrown) }, 'this replica cannot be listed for the others');
      }
    }
  }
}
