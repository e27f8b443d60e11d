/**
 * A real Blazar, used as users use and misuse it: whatever they ask in whatever order, and whatever fails after our yes, what it has
 * really allocated never costs more than the budget, and the ledger charges no less than that.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MICROSECONDS_PER_SECOND, toInstant } from '../../src/index.ts';
import { reconcileList } from '../../src/ledger/reconciliation/reconcile.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { peerProgram } from '../support/peers.ts';
import { listedLeases, type TrueReservation } from './blazar.ts';
import { BUDGET, ChargedBlazar, HOUR, MOST_LEASES, PROJECT } from './charged-blazar.ts';
import { type Deed, randomDeeds, type Scene } from './deeds.ts';

const STEPS = Number(process.env.BLAZAR_STEPS ?? 500);
const SEED = Number(process.env.BLAZAR_SEED ?? 12);
const ALICE = 700;
/** Units an hour; in tenths, so that nothing is rounded here. */
const TENTHS: Readonly<Record<string, number>> = { 'physical:host': 10, 'virtual:instance': 3 };

const program = peerProgram('BLAZAR_PEER');
const newLedger = newLedgers();

describe.skipIf(program === undefined)('a real Blazar', () => {
  let charged: ChargedBlazar;

  beforeAll(async () => {
    charged = await ChargedBlazar.start(program ?? '', await newLedger('sqlite'));
    await charged.giveBudgetTo('alice', ALICE);
  });

  afterAll(() => charged?.stop());

  it(`never has more than the budget pays for, after each of ${STEPS} steps (BLAZAR_SEED=${SEED})`, async ({
    skip,
  }) => {
    const { blazar, ledger, enforcement } = charged;
    if (blazar === undefined) {
      return skip('it does not start');
    }
    const books = new Books();
    const scene: Scene = { leases: new Map() };
    const done: Deed[] = [];
    let stuck = 0;
    const counts = new Map<string, number>();
    const { claimants } = enforcement;
    for (const deed of randomDeeds(SEED, STEPS, scene)) {
      if (deed.kind.startsWith('reconcile')) {
        const listed = await listedLeases(blazar, PROJECT, deed.kind === 'reconcile all');
        const options = {
          region: 'RegionOne',
          projectIds: new Set([PROJECT]),
          olderThan: 0n,
          isDryRun: false,
          claimants,
          exemptProjects: [],
          who: 'operator',
          reason: null,
        };
        for await (const { outcome } of reconcileList(ledger, listed, options, NO_WAIT)) {
          counts.set(`reconciled ${outcome}`, (counts.get(`reconciled ${outcome}`) ?? 0) + 1);
          stuck = outcome === 'released' ? Math.max(0, stuck - 1) : stuck;
        }
      }
      const before = await charged.openRows();
      const answer = await deed.do(blazar);
      done.push({ ...deed, status: answer });
      const outcome = `${deed.kind} ${answer}`;
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      const after = await charged.openRows();
      if (deed.kind.startsWith('create') && answer !== 201 && answer !== 200) {
        // Blazar has failed after our yes, and tells nobody.
        stuck += Math.max(0, after.length - before.length);
      }
      const truth = (await blazar.truth()).filter(({ status }) => status !== 'TERMINATED');
      books.observe(truth);
      const said = () =>
        JSON.stringify(
          done.slice(-25).map(({ kind, who, body, status }) => ({ kind, who, body, status })),
          null,
          1,
        );
      const [taken, ofAlice] = [await charged.taken(), await charged.taken('alice')];
      const all = books.cost(() => true);
      const hers = books.cost((owner) => owner === 'alice', scene);
      expect(all, `what is there costs more than what is charged: ${said()}`).toBeLessThanOrEqual(taken);
      expect(all, said()).toBeLessThanOrEqual(BUDGET * HOUR * 10);
      expect(hers, `of alice: ${said()}`).toBeLessThanOrEqual(ofAlice);
      expect(hers, said()).toBeLessThanOrEqual(ALICE * HOUR * 10);
      expect(new Set(truth.map(({ lease_id }) => lease_id)).size, said()).toBeLessThanOrEqual(MOST_LEASES);
    }
    // Everything ends, and everything is given back but what nobody has reported.
    await blazar.failNova(false);
    for (const [id, { who }] of scene.leases) {
      await blazar.ask('DELETE', `/v1/leases/${id}`, who);
    }
    expect(await blazar.truth()).toEqual([]);
    const left = await charged.openRows();
    process.stderr.write(
      `${JSON.stringify(Object.fromEntries([...counts].sort()))}; left open: ${left.length} of ${stuck} that failed\n`,
    );
    expect(left.length).toBeLessThanOrEqual(stuck);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  }, 3_600_000);
});

/** What there was of each reservation, as far as it was seen: an account of its own, kept without the ledger's code. */
class Books {
  readonly #kept = new Map<string, { used: number; seen: number; last: TrueReservation | undefined }>();

  observe(truth: readonly TrueReservation[]): void {
    const now = Date.now() / 1000;
    const there = new Map(truth.map((one) => [one.reservation_id, one]));
    for (const id of new Set([...this.#kept.keys(), ...there.keys()])) {
      const before = this.#kept.get(id);
      const current = there.get(id);
      const last = before?.last;
      const from = Math.max(before?.seen ?? now, last === undefined ? now : second(last.start_date));
      const both = last === undefined || current === undefined ? 0 : Math.min(rate(last), rate(current));
      const used = (before?.used ?? 0) + both * Math.max(0, now - from);
      this.#kept.set(id, { used, seen: now, last: current });
    }
  }

  /** In tenths of a unit, times seconds. */
  cost(isOf: (owner: string) => boolean, scene?: Scene): number {
    let total = 0;
    for (const { used, seen, last } of this.#kept.values()) {
      const owner = last === undefined ? undefined : scene?.leases.get(last.lease_id)?.who.split('/')[1];
      if (scene === undefined || (owner !== undefined && isOf(owner))) {
        const rest = last === undefined ? 0 : second(last.end_date) - Math.max(seen, second(last.start_date));
        total += used + (last === undefined ? 0 : rate(last) * Math.max(0, rest));
      }
    }
    return total;
  }
}

function rate({ resource_type, resources }: TrueReservation): number {
  return (TENTHS[resource_type] ?? 0) * resources;
}

function second(date: string): number {
  return Number((toInstant(date.replace(' ', 'T')) ?? 0n) / MICROSECONDS_PER_SECOND);
}
