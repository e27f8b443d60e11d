/**
 * The ledger follows a real Blazar: whatever users do, and whatever fails after our yes, what is really allocated never costs more than the
 * budgets of project and user, nor is charged less than it costs; and after a round it is charged exactly that.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UsageEnforcement } from '../../src/index.ts';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { Reconciled } from '../../src/ledger/reconciliation/change-lease.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import type { LeaseRow } from '../../src/ledger/storage/schema.ts';
import { type Followed, type Following, follow } from '../../src/server/followers/follow-blazar.ts';
import { giveBudget, ledgerAt, NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { peerProgram } from '../support/peers.ts';
import { startedService } from '../support/started-service.ts';
import { RealBlazar } from './blazar.ts';
import { type Deed, randomDeeds, type Scene } from './deeds.ts';
import { headerKeystone } from './header-keystone.ts';
import { TrueCost } from './true-cost.ts';

const PROJECT = 'climate';
/** Of the project, in units and hours. */
const BUDGET = 1200;
const MOST_LEASES = 16;
const HOUR = 3600;

class ChargedBlazar {
  /** `undefined` = it does not start. */
  readonly blazar: RealBlazar | undefined;
  readonly ledger: Ledger;
  readonly enforcement: UsageEnforcement;
  readonly #service: Awaited<ReturnType<typeof startedService>>;

  private constructor(
    blazar: RealBlazar | undefined,
    ledger: Ledger,
    enforcement: UsageEnforcement,
    service: Awaited<ReturnType<typeof startedService>>,
  ) {
    this.blazar = blazar;
    this.ledger = ledger;
    this.enforcement = enforcement;
    this.#service = service;
  }

  static async start(program: string, connection: string): Promise<ChargedBlazar> {
    const values = {
      ledger: { connection },
      enforcement: {
        enabled_filters: ['UsageBudgetFilter', 'MaxLeasesFilter'],
        usage_budget_rates: { 'physical:host': 1, 'virtual:instance': 0.3 },
        max_leases_per_project: MOST_LEASES,
      },
    };
    const service = await startedService({ ...values, service: { port: 0 } });
    const sources = { environment: {}, configFiles: [], values };
    const enforcement = await UsageEnforcement.load(sources, { logger: recordingLogger() });
    const ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
    await giveBudget(ledger, { projectId: PROJECT, amount: String(BUDGET), ...VALID });
    const blazar = await RealBlazar.startOrSkip(program, service.url, 12);
    return new ChargedBlazar(blazar, ledger, enforcement, service);
  }

  /** Of one user in the project. */
  async giveBudgetTo(userId: string, amount: number): Promise<void> {
    await giveBudget(this.ledger, { projectId: PROJECT, userId, amount: String(amount), ...VALID });
  }

  openRows(): Promise<LeaseRow[]> {
    const query = this.ledger.database.queries.selectFrom('leases').selectAll().where('state', '=', 'open');
    return this.ledger.read('read', () => rows(query.compile()), NO_WAIT);
  }

  /** Of the budget of the project, or of a user, in tenths of a unit, times seconds. */
  async taken(userId: string | null = null): Promise<number> {
    const budgets = await listBudgets(this.ledger, PROJECT, NO_WAIT);
    return Number(budgets.find((one) => one.userId === userId)?.taken ?? 0n) / 100_000;
  }

  async stop(): Promise<void> {
    await this.blazar?.stop();
    await this.enforcement.close();
    await this.ledger.close();
    await this.#service.close();
  }
}

const VALID = { from: '2026-01-01', until: '2040-01-01' };

const STEPS = Number(process.env.BLAZAR_STEPS ?? 120);
const SEEDS = (process.env.BLAZAR_SEED ?? '1').split(',').map(Number);
/** In seconds: longer than a test takes. */
const GRACE = 3600;
/** The budget of one of the users. */
const ALICE = 700;

const program = peerProgram('BLAZAR_PEER');
const newLedger = newLedgers();

describe.skipIf(program === undefined).each(SEEDS)(
  'a ledger that follows a real Blazar (BLAZAR_SEED=%s)',
  (seed) => {
    let charged: ChargedBlazar;
    const counts = new Map<string, number>();
    const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1);

    beforeAll(async () => {
      charged = await ChargedBlazar.start(program ?? '', await newLedger('sqlite'));
      await charged.giveBudgetTo('alice', ALICE);
    });

    afterAll(() => charged?.stop());

    async function round(of: RealBlazar, grace = GRACE): Promise<{ followed: Followed; done: Reconciled[] }> {
      const keystone = headerKeystone(of.url);
      const done: Reconciled[] = [];
      const following: Following = {
        ledger: charged.ledger,
        keystone,
        endpoint: undefined,
        region: undefined,
        claimants: charged.enforcement.claimants,
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
      const { blazar } = charged;
      if (blazar === undefined) {
        return skip('it does not start');
      }
      const cost = new TrueCost();
      const scene: Scene = { leases: new Map() };
      const done: Deed[] = [];
      for (const deed of randomDeeds(seed, STEPS, scene)) {
        const since = performance.now();
        const status = await deed.do(blazar);
        count(`${deed.kind} ${status}`);
        done.push({ ...deed, status });
        const truth = (await blazar.truth()).filter(({ status: one }) => one !== 'TERMINATED');
        cost.observe(truth, since);
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
          await charged.taken(),
        );
        expect(cost.total() - cost.slack, said()).toBeLessThanOrEqual(BUDGET * HOUR * 10);
        const hers = cost.total((id) => scene.leases.get(id)?.who.endsWith('/alice') === true) - cost.slack;
        expect(hers, said()).toBeLessThanOrEqual(await charged.taken('alice'));
        expect(hers, said()).toBeLessThanOrEqual(ALICE * HOUR * 10);
        expect(new Set(truth.map(({ lease_id }) => lease_id)).size, said()).toBeLessThanOrEqual(MOST_LEASES);

        let one = await round(blazar);
        if (one.done.some(({ outcome }) => outcome === 'left')) {
          // The grace is over.
          one = await round(blazar, 0);
        }
        const changes = () =>
          `${JSON.stringify(one, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))} ${said()}`;
        expect(one.followed, changes()).toMatchObject({ kind: 'done', doubts: [] });
        expect(
          Math.abs(cost.total() - (await charged.taken())),
          `${changes()}: ${cost.total()} / ${await charged.taken()}`,
        ).toBeLessThanOrEqual(cost.slack);
        const open = await charged.openRows();
        expect(open.map(({ lease_id }) => lease_id).sort(), changes()).toEqual(
          [...new Set(truth.map(({ lease_id }) => lease_id))].sort(),
        );
      }
      await blazar.failNova(false);
      for (const [id, { who }] of scene.leases) {
        await blazar.ask('DELETE', `/v1/leases/${id}`, who);
      }
      expect(await charged.openRows()).toEqual([]);
      expect((await verifyLedger(charged.ledger, NO_WAIT)).differences).toEqual([]);
      process.stderr.write(`${JSON.stringify(Object.fromEntries([...counts].sort()))}\n`);
    }, 3_600_000);
  },
);
