/** Many histories, each from a seed of its own. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Configuration } from '../../src/enforcement/configuration.ts';
import { requireConfiguration } from '../../src/enforcement/configuration.ts';
import { notificationsSection } from '../../src/enforcement/notifications/options.ts';
import { MAX_AMOUNT } from '../../src/filter/claim.ts';
import { UsageEnforcement } from '../../src/index.ts';
import { setBudget } from '../../src/ledger/budgets/budgets.ts';
import { ledgerSection } from '../../src/ledger/options.ts';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { keystoneSection } from '../../src/openstack/options.ts';
import { ledgerAt, NO_WAIT, upgraded } from '../support/ledgers.ts';
import { ANCHOR, ANCHOR_PROJECT, asSent, BEGIN, hostIds, PROJECT } from './blazar.ts';
import { type History, runHistory } from './history.ts';
import { type Budget, MOST_LEASES } from './promises.ts';
import type { Commit } from './world.ts';

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

/** How many steps a history has at most. */
const STEPS = 120;

const { SIMULATION_SEED: oneSeed, SIMULATION_RUNS: asked } = process.env;

export interface Simulated {
  /** The first broken promise, how to see it again, and what happened; `undefined` = none was broken. */
  readonly broken: string | undefined;
  /** What happened in all histories. */
  readonly lines: readonly string[];
}

/**
 * Runs histories with one seed after the other. `SIMULATION_SEED` is the first instead of `firstSeed`, and then the only one;
 * `SIMULATION_RUNS` says how many.
 */
export async function simulate(runs: number, firstSeed: number): Promise<Simulated> {
  const ground = await prepareGround();
  const lines: string[] = [];
  try {
    // What is imported at the first use takes turns of the loop that no later history has.
    await runHistory(ground, 0, STEPS);
    const first = oneSeed === undefined ? firstSeed : Number(oneSeed);
    const count = Number(asked ?? (oneSeed === undefined ? runs : 1));
    for (let run = 0; run < count; run += 1) {
      const history = await runHistory(ground, first + run, STEPS);
      lines.push(...history.lines);
      if (history.broken !== undefined) {
        return { broken: describe(history, run + 1), lines };
      }
    }
    return { broken: undefined, lines };
  } finally {
    rmSync(ground.folder, { recursive: true, force: true });
  }
}

function describe({ seed, step, broken, lines }: History, run: number): string {
  const command = `SIMULATION_SEED=${seed} npx vitest run --project proofs test/simulation`;
  return [`history ${run}, step ${step}: ${broken}`, `The same again: ${command}`, ...lines].join('\n');
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

async function prepareGround() {
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
      {
        environment: {},
        values: {
          ledger: { connection: `sqlite://${file}`, commit, doubt_folder: '' },
          enforcement: {
            enabled_filters: [...FILTERS, ...(hasService ? ['ExternalServiceFilter'] : [])],
            max_leases_per_project: MOST_LEASES,
            ...(hasService ? SERVICE : {}),
          },
        },
      },
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
