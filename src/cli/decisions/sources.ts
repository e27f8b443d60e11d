/** Decision logs for `decisions`: complete or followed, from files or standard input. */
import { once } from 'node:events';
import { addAbortSignal } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { DecisionReader, FollowedChunk } from '../../decisions/reader.ts';
import type { DecisionRecord } from '../../decisions/record.ts';
import type { Selection } from '../../decisions/selection.ts';
import type { DecisionSource, DecisionsQuery, StoredDecision } from '../../decisions/store/contract.ts';
import { warn } from '../common/output.ts';
import type { SourceFlags } from '../common/sources.ts';
import { NO_DEADLINE, withLedger } from '../ledger/access.ts';
import { unreadable } from './log-files.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export async function untilSignal(
  work: (signal: AbortSignal, print: (text: string) => Promise<void>) => Promise<void>,
): Promise<void> {
  const ended = new AbortController();
  const end = () => ended.abort();
  for (const signal of SIGNALS) {
    process.once(signal, end);
  }
  const print = async (text: string) => {
    if (text !== '' && !process.stdout.write(text)) {
      await once(process.stdout, 'drain', { signal: ended.signal });
    }
  };
  try {
    await work(ended.signal, print);
  } catch (thrown) {
    if (!ended.signal.aborted) {
      throw thrown;
    }
  } finally {
    for (const signal of SIGNALS) {
      process.off(signal, end);
    }
  }
}

/** Until the signal aborts, or the end of standard input. @throws UsageError */
export async function* followedChunks(file: string, signal: AbortSignal): AsyncGenerator<FollowedChunk> {
  const { followChunks } = await import('../../decisions/reader.ts');
  try {
    if (file === '-') {
      yield 'caught up';
      yield* addAbortSignal(signal, process.stdin) as AsyncIterable<Buffer>;
    } else {
      yield* followChunks(file, signal);
    }
  } catch (thrown) {
    throw unreadable(file, thrown);
  }
}

/** The last `size` added decisions. */
export class Latest {
  readonly #size: number;
  #records: DecisionRecord[] = [];

  constructor(size: number) {
    this.#size = size;
  }

  add(records: readonly DecisionRecord[]): void {
    this.#records.push(...records);
    // Cutting every time would copy the whole list each time.
    if (this.#records.length > 2 * this.#size) {
      this.#records = this.list();
    }
  }

  list(): DecisionRecord[] {
    return this.#size === 0 ? [] : this.#records.slice(-this.#size);
  }
}

/** Prints the number of skipped lines on standard error. */
export function warnOfSkipped(readers: readonly DecisionReader[]): void {
  const broken = readers.reduce((sum, { skipped }) => sum + skipped.broken, 0);
  const tooLong = readers.reduce((sum, { skipped }) => sum + skipped.tooLong, 0);
  if (broken + tooLong > 0) {
    warn(`skipped lines: ${broken} that are not decisions, ${tooLong} longer than 1 MiB`);
  }
}

const PAGE = 1000;
/** Polling interval for new decisions, in milliseconds. */
const POLL = 1000;

/** Reads decisions directly from the database: no running service is needed. */
export async function withStoredDecisions(
  flags: SourceFlags,
  selection: Selection,
  work: (source: DecisionSource, selection: Selection) => Promise<void>,
): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    const { DecisionTable } = await import('../../decisions/store/table.ts');
    const { storedKind } = await import('../../server/configuration/start-checks.ts');
    if ((await storedKind(configuration)) === 'none') {
      warn('with this configuration no decisions are stored: see [service] decision_store');
    }
    const { selectionWithIds } = await import('../common/command-names.ts');
    await work(
      new DecisionTable(ledger.database, 'command'),
      await selectionWithIds(configuration, selection),
    );
  });
}

/** All matching decisions, in pages, newest first. */
export async function* pagesOf(
  source: DecisionSource,
  wanted: Omit<DecisionsQuery, 'limit' | 'after'>,
): AsyncGenerator<readonly StoredDecision[]> {
  for (let after: string | undefined; ; ) {
    const { items, next } = await source.search({ ...wanted, limit: PAGE, after }, NO_DEADLINE);
    yield items;
    if (next === undefined) {
      return;
    }
    after = next;
  }
}

/** The latest `count` decisions, oldest first. */
export async function latestOf(
  source: DecisionSource,
  selection: Selection,
  count: number,
): Promise<DecisionRecord[]> {
  const found: DecisionRecord[] = [];
  if (count > 0) {
    for await (const page of pagesOf(source, selection)) {
      found.push(...page.map(({ record }) => record));
      if (found.length >= count) {
        break;
      }
    }
  }
  return found.slice(0, count).reverse();
}

/** Newly stored decisions, oldest first, until the signal fires. */
export async function* newerOf(
  source: DecisionSource,
  selection: Selection,
  last: bigint,
  signal: AbortSignal,
): AsyncGenerator<readonly DecisionRecord[]> {
  for (let seen = last; !signal.aborted; ) {
    const newest = await source.newest(NO_DEADLINE);
    if (newest > seen) {
      const found: StoredDecision[] = [];
      for await (const page of pagesOf(source, { ...selection, newerThan: seen })) {
        found.push(...page);
      }
      // Decisions stored since then are above `newest`, and are returned by the next poll.
      const now = found.filter(({ id }) => id <= newest);
      seen = newest;
      yield now.map(({ record }) => record).reverse();
    }
    await pause(POLL, undefined, { signal }).catch(() => {});
  }
}
