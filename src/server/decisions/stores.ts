/** The stores of decisions of all configurations in use. */
import { hash } from 'node:crypto';
import { type ConfigurationError, errorText, LedgerUnavailableError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { mistakesAt } from '../../config/option-groups.ts';
import type { DecisionSource, ReplicaList } from '../../decisions/store/contract.ts';
import type {
  DecisionQueue,
  DecisionQueueObserver,
  DecisionQueueOptions,
} from '../../decisions/store/queue.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { ledgerSection } from '../../ledger/options.ts';
import { parseConnection } from '../../ledger/storage/connection.ts';
import { postgresPlace } from '../../ledger/storage/postgres/settings.ts';
import { serviceSection } from '../configuration/options.ts';
import { filtersUseLedger, storedKind } from '../configuration/start-checks.ts';
import { CountedUses } from '../counted-uses.ts';

/** Time for a replaced store to write its queue after a reload, in milliseconds. */
const LAST_WRITES = 10_000;

export interface HeldDecisions {
  readonly source: DecisionSource;
  readonly queue: DecisionQueue;
  readonly replicas: ReplicaList;
  /** Call it when the configuration takes over. */
  apply(): void;
  /** Call it once, after the last decision. The last release of a database closes it. */
  release(): Promise<void>;
}

interface Shared {
  readonly queue: DecisionQueue;
  readonly target: DecisionSource & ReplicaList;
}

/** Configurations with the same database share a queue, so that a reload loses nothing. */
export class DecisionStores {
  readonly #logger: Logger;
  readonly #observer: DecisionQueueObserver;
  readonly #shared = new CountedUses<Shared>(({ queue }) => this.#close(queue));
  /** Queues that are in use, or still being written. */
  readonly #queues = new Set<DecisionQueue>();
  #isStopping = false;

  constructor(logger: Logger, observer: DecisionQueueObserver) {
    this.#logger = logger;
    this.#observer = observer;
  }

  /** Number of decisions that are not written yet. */
  get waiting(): number {
    return [...this.#queues].reduce((sum, { waiting }) => sum + waiting, 0);
  }

  /** `undefined` = decisions are not stored. @throws ConfigurationError */
  async open(configuration: Configuration): Promise<HeldDecisions | undefined> {
    const { decision_store, decision_store_days, decision_store_max } = sectionOf(
      configuration,
      serviceSection,
    );
    const { connection, timeout } = sectionOf(configuration, ledgerSection);
    const kind = await storedKind(configuration);
    if (kind === 'none') {
      return undefined;
    }
    const options = { kind, timeout, days: decision_store_days, most: decision_store_max };
    const parsed = parseConnection(connection);
    // The files that the URL names may have changed alone.
    const tls = parsed?.dialect === 'postgresql' ? postgresPlace(parsed.url).attempts : [];
    // A digest, since it holds a password.
    const key = hash('sha256', JSON.stringify([connection, timeout, tls]));
    const shared =
      this.#shared.get(key) ?? (await this.#open(configuration, options, decision_store !== undefined));
    if (shared === undefined) {
      return undefined;
    }
    const { queue, target } = shared;
    const { release } = this.#shared.use(key, () => shared);
    return {
      queue,
      source: target,
      replicas: target,
      apply: () => {
        queue.options = options;
      },
      release,
    };
  }

  /** For the stop of the service: from now on only `close` closes the queues. */
  stop(): void {
    this.#isStopping = true;
  }

  /** Writes all queues. Decisions that cannot be written within `withinMs` are dropped. */
  async close(withinMs: number): Promise<void> {
    await Promise.all([...this.#queues].map((queue) => queue.close(withinMs)));
  }

  async #open(
    configuration: Configuration,
    options: DecisionQueueOptions,
    isWanted: boolean,
  ): Promise<Shared | undefined> {
    // Imported on demand: loading takes time.
    const { connection } = sectionOf(configuration, ledgerSection);
    const { openTarget } = await import('../../decisions/store/open.ts');
    const { DecisionQueue: Queue } = await import('../../decisions/store/queue.ts');
    const { target, verify } = await openTarget(sectionOf(configuration, ledgerSection)).catch(
      (thrown: unknown) => {
        throw mistake(configuration, errorText(thrown));
      },
    );
    // For a file, the filters have already verified the tables.
    const isKnown =
      !isWanted && filtersUseLedger(configuration) && parseConnection(connection)?.dialect === 'sqlite';
    const wrong = await (isKnown ? Promise.resolve(undefined) : verify()).catch(async (thrown: unknown) => {
      if (!(thrown instanceof LedgerUnavailableError)) {
        await target.close();
        throw thrown;
      }
      this.#logger.error(
        { error: errorText(thrown) },
        'the ledger cannot be reached: decisions wait in memory until it can',
      );
      return undefined;
    });
    if (wrong === undefined) {
      const queue = new Queue(target, options, this.#logger, this.#observer);
      this.#queues.add(queue);
      return { queue, target };
    }
    await target.close();
    if (isWanted) {
      throw mistake(configuration, wrong);
    }
    this.#logger.error({ error: wrong }, 'decisions are not stored in the ledger');
    return undefined;
  }

  async #close(queue: DecisionQueue): Promise<void> {
    if (!this.#isStopping) {
      await queue.close(LAST_WRITES).finally(() => this.#queues.delete(queue));
    }
  }
}

function mistake(configuration: Configuration, reason: string): ConfigurationError {
  const at = { section: 'service', option: 'decision_store' };
  const message = `expected a ledger that decisions can be stored in: ${reason}`;
  return mistakesAt([{ severity: 'error', ...at, message }], configuration.settings);
}
