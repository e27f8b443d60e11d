/**
 * The ledger follows a real Blazar: whatever users do, and whatever fails, after a round it is charged exactly what Blazar has really
 * allocated and what was used of it, no more and no less; and in between never less.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UsageEnforcement } from '../../src/index.ts';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { Reconciled } from '../../src/ledger/reconciliation/change-lease.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import type { LeaseRow } from '../../src/ledger/storage/schema.ts';
import { type Followed, type Following, follow } from '../../src/openstack/follow.ts';
import { giveBudget, ledgerAt, NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { peerProgram, skipAloud } from '../support/peers.ts';
import { startedService } from '../support/started-service.ts';
import { RealBlazar } from './blazar.ts';
import { type Deed, randomDeeds, type Scene } from './deeds.ts';
import { headerKeystone } from './header-keystone.ts';
import { TrueCost } from './true-cost.ts';

const STEPS = Number(process.env.BLAZAR_STEPS ?? 200);
const SEEDS = (process.env.BLAZAR_SEED ?? '1,2').split(',').map(Number);
const PROJECT = 'climate';
const BUDGET = 1200;
const HOUR = 3600;
/** In seconds: longer than a test takes. */
const GRACE = 3600;

const program = peerProgram('BLAZAR_PEER');
const newLedger = newLedgers();

describe.skipIf(program === undefined).each(SEEDS)(
  'a ledger that follows a real Blazar (BLAZAR_SEED=%s)',
  (seed) => {
    let blazar: RealBlazar | undefined;
    let ledger: Ledger;
    let enforcement: UsageEnforcement;
    let close: () => Promise<void> = async () => {};
    const counts = new Map<string, number>();
    const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1);

    beforeAll(async () => {
      const connection = await newLedger('sqlite');
      const values = {
        ledger: { connection },
        enforcement: {
          enabled_filters: ['UsageBudgetFilter', 'MaxLeasesFilter'],
          usage_budget_rates: { 'physical:host': 1, 'virtual:instance': 0.3 },
          max_leases_per_project: 16,
        },
      };
      const service = await startedService({ ...values, service: { port: 0 } });
      close = () => service.close();
      enforcement = await UsageEnforcement.load(
        { environment: {}, configFiles: [], values },
        { logger: recordingLogger() },
      );
      ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
      await giveBudget(ledger, {
        projectId: PROJECT,
        amount: String(BUDGET),
        from: '2026-01-01',
        until: '2040-01-01',
      });
      blazar = await RealBlazar.start(program ?? '', `${service.url}/v1/`, ['--hosts', '12']).catch(
        (thrown: unknown) => {
          skipAloud('BLAZAR_PEER', `it does not start: ${String(thrown)}`);
          return undefined;
        },
      );
    });

    afterAll(async () => {
      await blazar?.stop();
      await enforcement.close();
      await ledger.close();
      await close();
    });

    async function round(of: RealBlazar, grace = GRACE): Promise<{ followed: Followed; done: Reconciled[] }> {
      const keystone = headerKeystone(of.url);
      const done: Reconciled[] = [];
      const following: Following = {
        ledger,
        keystone,
        endpoint: undefined,
        region: undefined,
        claimants: enforcement.claimants,
        exemptProjects: [],
        grace,
        isDryRun: false,
        holder: 'a test',
        every: 0,
        who: 'follower',
        reason: null,
        signal: undefined,
        report: (one) => {
          done.push(one);
          count(`round ${one.outcome}`);
        },
      };
      const followed = await follow(following);
      await keystone.close();
      return { followed, done };
    }

    it(`is charged what is there, after each of ${STEPS} steps`, async ({ skip }) => {
      if (blazar === undefined) {
        return skip('it does not start');
      }
      const cost = new TrueCost();
      const scene: Scene = { leases: new Map() };
      const done: Deed[] = [];
      for (const deed of randomDeeds(seed, STEPS, scene)) {
        const status = await deed.do(blazar);
        count(`${deed.kind} ${status}`);
        done.push({ ...deed, status });
        const truth = (await blazar.truth()).filter(({ status: one }) => one !== 'TERMINATED');
        cost.observe(truth);
        const said = () =>
          JSON.stringify(
            {
              last: done
                .slice(-8)
                .map(({ kind, who, body, status: one }) => ({ kind, who, body, status: one })),
              truth,
            },
            null,
            1,
          );
        expect(cost.total() - cost.slack, `more is there than is charged: ${said()}`).toBeLessThanOrEqual(
          await taken(ledger),
        );
        expect(cost.total() - cost.slack, said()).toBeLessThanOrEqual(BUDGET * HOUR * 10);

        let one = await round(blazar);
        if (one.done.some(({ outcome }) => outcome === 'left')) {
          // The grace is over.
          one = await round(blazar, 0);
        }
        const changes = () =>
          `${JSON.stringify(one, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))} ${said()}`;
        expect(one.followed, changes()).toMatchObject({ kind: 'done', doubts: [] });
        expect(
          Math.abs(cost.total() - (await taken(ledger))),
          `${changes()}: ${cost.total()} / ${await taken(ledger)}`,
        ).toBeLessThanOrEqual(cost.slack);
        const open = await openRows(ledger);
        expect(open.map(({ lease_id }) => lease_id).sort(), changes()).toEqual(
          [...new Set(truth.map(({ lease_id }) => lease_id))].sort(),
        );
      }
      await blazar.failNova(false);
      for (const [id, { who }] of scene.leases) {
        await blazar.ask('DELETE', `/v1/leases/${id}`, who);
      }
      expect(await openRows(ledger)).toEqual([]);
      expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
      process.stderr.write(`${JSON.stringify(Object.fromEntries([...counts].sort()))}\n`);
    }, 3_600_000);
  },
);

function openRows(ledger: Ledger): Promise<LeaseRow[]> {
  const query = ledger.database.queries.selectFrom('leases').selectAll().where('state', '=', 'open');
  return ledger.read('read', () => rows(query.compile()), NO_WAIT);
}

/** Of the project's budget, in tenths of a unit, times seconds. */
async function taken(ledger: Ledger): Promise<number> {
  const [budget] = await listBudgets(ledger, PROJECT, NO_WAIT);
  return Number(budget?.taken ?? 0n) / 100_000;
}
