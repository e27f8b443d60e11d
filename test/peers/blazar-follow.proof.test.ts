/**
 * The ledger follows a real Blazar: whatever users do, and whatever fails after our yes, what is really allocated never costs more than the
 * budgets of project and user, nor is charged less than it costs; and after a round it is charged exactly that.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Reconciled } from '../../src/ledger/reconciliation/change-lease.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { type Followed, type Following, follow } from '../../src/server/followers/follow-blazar.ts';
import { NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { peerProgram } from '../support/peers.ts';
import type { RealBlazar } from './blazar.ts';
import { BUDGET, ChargedBlazar, HOUR, MOST_LEASES } from './charged-blazar.ts';
import { type Deed, randomDeeds, type Scene } from './deeds.ts';
import { headerKeystone } from './header-keystone.ts';
import { TrueCost } from './true-cost.ts';

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
