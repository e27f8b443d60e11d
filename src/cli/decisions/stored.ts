/** The decisions in the ledger of the configuration, for `decisions`. */
import { setTimeout as pause } from 'node:timers/promises';
import type { DecisionRecord } from '../../decisions/record.ts';
import type { Selection } from '../../decisions/selection.ts';
import type { DecisionSource, DecisionsQuery, StoredDecision } from '../../decisions/store/contract.ts';
import { NO_DEADLINE, withLedger } from '../ledger/access.ts';
import type { SourceFlags } from '../sources.ts';

const PAGE = 1000;
/** How often to look for new decisions, in milliseconds. */
const POLL = 1000;

/** Reads them in the database itself: no service need run. */
export async function withStoredDecisions(
  flags: SourceFlags,
  work: (source: DecisionSource) => Promise<void>,
): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    const { DecisionTable } = await import('../../decisions/store/table.ts');
    const { storedKind } = await import('../../server/configuration/ground-checks.ts');
    if ((await storedKind(configuration)) === 'none') {
      process.stderr.write(
        'warning: with this configuration no decisions are stored: see [service] decision_store\n',
      );
    }
    await work(new DecisionTable(ledger.database, 'command'));
  });
}

type Wanted = Omit<DecisionsQuery, 'limit' | 'after'>;

/** All that are looked for, in pages, the newest first. */
export async function* pagesOf(
  source: DecisionSource,
  wanted: Wanted,
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

/** The latest `count`, the oldest of them first. */
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

/** What is stored from now on, the oldest first, until the signal fires. */
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
      // One that was stored since is above `newest`, and comes with the next look.
      const now = found.filter(({ id }) => id <= newest);
      seen = newest;
      yield now.map(({ record }) => record).reverse();
    }
    await pause(POLL, undefined, { signal }).catch(() => {});
  }
}
