/** Many histories, each from a seed of its own. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import type { Configuration } from '../../src/enforcement/configuration.ts';
import { requireConfiguration } from '../../src/enforcement/configuration.ts';
import { notificationsSection } from '../../src/enforcement/notifications/options.ts';
import { MAX_AMOUNT } from '../../src/filter/claim.ts';
import { UsageEnforcement } from '../../src/index.ts';
import { setBudget } from '../../src/ledger/budgets/budgets.ts';
import { ledgerSection } from '../../src/ledger/options.ts';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { keystoneSection } from '../../src/openstack/options.ts';
import { valuesOnly } from '../support/files.ts';
import { ledgerAt, NO_WAIT, upgraded } from '../support/ledgers.ts';
import { ANCHOR, ANCHOR_PROJECT, asSent, BEGIN, hostIds, PROJECT } from './blazar.ts';
import { type History, type HistoryServices, runHistory } from './history.ts';
import { type Budget, MOST_LEASES } from './promises.ts';
import type { Commit } from './site.ts';

const HOUR = 3600;
const TURN = BEGIN + 6 * HOUR;

/** Leases begin under the first, and may end under the second; one user has less than the project. */
const BUDGETS: readonly Budget[] = [
  { user: null, from: BEGIN - 24 * HOUR, until: TURN, amount: 40 * HOUR },
  { user: null, from: TURN, until: TURN + 96 * HOUR, amount: 60 * HOUR },
  { user: 'alice', from: BEGIN - 24 * HOUR, until: TURN + 96 * HOUR, amount: 45 * HOUR },
];

const FILTERS = ['MaxLeasesFilter', 'UsageBudgetFilter'];
const SERVICE = {
  external_service_on_end_endpoint: 'http://external/on-end',
  external_service_commit_create_endpoint: 'http://external/commit-create',
  external_service_delivery: 'durable',
};

/** A seed, and its steps if it is not all of them: what `simulate` prints. */
export type Asked = readonly [seed: number, steps?: readonly number[]];

export interface Watch {
  readonly see?: (history: History) => void;
  /** Those of the replicas. */
  readonly filters?: readonly string[];
}

/**
 * Runs histories one after the other, until a promise is broken. Resolves to which one, how to see it again and what happened, in as few
 * steps as it takes; `undefined` = none was broken.
 */
export async function simulate(
  asked: Iterable<Asked>,
  { see = () => {}, filters = FILTERS }: Watch = {},
): Promise<string | undefined> {
  const shared = await prepareGround(filters);
  try {
    // What is imported at the first use takes turns of the loop that no later history has.
    await runHistory(shared, 0);
    for (const [seed, steps] of asked) {
      const history = await runHistory(shared, seed, steps);
      see(history);
      if (history.broken !== undefined) {
        return describe(history, await shrink(shared, history));
      }
    }
    return undefined;
  } finally {
    rmSync(shared.folder, { recursive: true, force: true });
  }
}

/** Leaves out steps as long as some promise is still broken. */
async function shrink(shared: HistoryServices, history: History): Promise<History> {
  let smallest = history;
  const isKept = fc.asyncProperty(fc.subarray([...history.steps]), async (steps) => {
    const shorter = await runHistory(shared, history.seed, steps);
    smallest = shorter.broken === undefined ? smallest : shorter;
    return shorter.broken === undefined;
  });
  await fc.check(isKept, { numRuns: 1, examples: [[[...history.steps]]] });
  return smallest;
}

function describe(whole: History, { seed, steps, broken, lines }: History): string {
  return [
    `A promise is broken: ${broken}`,
    `The same again: npm run simulate -- --seed ${seed}`,
    `${steps.length} of ${whole.steps.length} steps are enough; a test of them, for test/simulation/simulation.test.ts:`,
    `  [${seed}, [${steps.join(', ')}]],`,
    ...lines,
  ].join('\n');
}

/** A ledger does not believe a Blazar that lists none of its leases. */
async function recordAnchor(configuration: Configuration): Promise<void> {
  const clock = { now: () => new Date(ANCHOR.start * 1000) };
  const enforcement = await UsageEnforcement.fromConfiguration(configuration, { clock });
  const context = { user_id: ANCHOR.user, project_id: ANCHOR_PROJECT };
  const { allowed } = await enforcement.checkCreate({ context, lease: asSent(ANCHOR, hostIds(1)) });
  await enforcement.close();
  if (!allowed) {
    throw new Error('expected a lease that is always there');
  }
}

async function prepareGround(filters: readonly string[]) {
  // In memory where there is such a file system: what is simulated is not the disk.
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'simulation-'));
  const empty = join(folder, 'empty.db');
  await upgraded(`sqlite://${empty}`);
  const ledger = await ledgerAt(`sqlite://${empty}`);
  for (const { user: userId, from, until, amount } of BUDGETS) {
    const valid = { validFrom: BigInt(from), validUntil: BigInt(until) };
    const wanted = { projectId: PROJECT, userId, ...valid, amount: BigInt(amount) * 1_000_000n };
    await setBudget(ledger, wanted, { who: 'operator', reason: null }, NO_WAIT);
  }
  const valid = { validFrom: BigInt(BEGIN - 24 * HOUR), validUntil: BigInt(ANCHOR.end) };
  const plenty = { projectId: ANCHOR_PROJECT, userId: null, ...valid, amount: MAX_AMOUNT };
  await setBudget(ledger, plenty, { who: 'operator', reason: null }, NO_WAIT);
  await ledger.close();
  const file = join(folder, 'ledger.db');
  copyFileSync(empty, file);
  const configured = (commit: Commit, hasService: boolean) =>
    requireConfiguration(
      valuesOnly({
        ledger: { connection: `sqlite://${file}`, commit, doubt_folder: '' },
        enforcement: {
          enabled_filters: [...filters, ...(hasService ? ['ExternalServiceFilter'] : [])],
          max_leases_per_project: MOST_LEASES,
          ...(hasService ? SERVICE : {}),
        },
      }),
      [ledgerSection, keystoneSection, notificationsSection],
    );
  const all = {
    check: [await configured('check', false), await configured('check', true)],
    request: [await configured('request', false), await configured('request', true)],
  } as const;
  await recordAnchor(all.check[0]);
  openSqlite(file).exec('PRAGMA wal_checkpoint(TRUNCATE)');
  copyFileSync(file, empty);
  const configure = (commit: Commit, hasService: boolean) => all[commit][hasService ? 1 : 0];
  return { folder, file, empty, configure, begin: BEGIN, budgets: BUDGETS };
}
