/**
 * The ledger follows a real Blazar, with one caller and with eight at once: whatever users do, and whatever fails after our yes, what is really
 * allocated never costs more than the budgets of project and user, nor is charged less than it costs; and once nobody asks any more, a round
 * later, it is charged exactly that. `BLAZAR_SEED`, `BLAZAR_STEPS` and `BLAZAR_CALLERS` are for long runs: each takes one number, or several.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Reconciled } from '../../src/ledger/reconciliation/change-lease.ts';
import { RowAges } from '../../src/ledger/reconciliation/reconcile.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import type { LeaseRow } from '../../src/ledger/storage/schema.ts';
import { NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { peerProgram } from '../support/peers.ts';
import type { RealBlazar, TrueReservation } from './blazar.ts';
import { type CaseBudget, ChargedBlazar, MOST_LEASES, PROJECT, tenths } from './charged-blazar.ts';
import { TrueCost } from './true-cost.ts';
import { type Action, beginOfLeases, randomActions, type Scene } from './user-actions.ts';

const numbers = (text: string) => text.split(',').map(Number);
const SEEDS = numbers(process.env.BLAZAR_SEED ?? '1');
/** For eight callers at once, and for one, who waits for a round after each. */
const STEPS = numbers(process.env.BLAZAR_STEPS ?? '48,16');
const CALLERS = numbers(process.env.BLAZAR_CALLERS ?? '1,8');
/** In seconds: longer than Blazar takes to build a lease, on a busy machine too. */
const GRACE = 60;
const HOUR = 3600;

/** Leases begin under the first budgets, and end under the others; user and project have theirs for other times. */
function budgetsOf(begin: number, more: number): CaseBudget[] {
  const after = (hours: number) => new Date(begin + hours * HOUR * 1000).toISOString();
  const first = '2026-01-01T00:00:00Z';
  const last = '2040-01-01T00:00:00Z';
  return [
    { user: null, from: first, until: after(9), amount: 300 * more },
    { user: null, from: after(9), until: last, amount: 700 * more },
    { user: 'alice', from: first, until: after(30), amount: 350 * more },
    { user: 'alice', from: after(30), until: last, amount: 200 * more },
  ];
}

/** What must have happened in the end. */
const WANTED = [
  'several types 201',
  'begin now 201',
  'begin now with several types 201',
  'prolong a running 200',
  'shorten a running 200',
  'end early 204',
  'delete 204',
  'heal resources_changed',
  'heal missing_resources',
];

class History {
  readonly charged: ChargedBlazar;
  readonly blazar: RealBlazar;
  readonly callers: number;
  readonly counts = new Map<string, number>();
  readonly scene: Scene = { leases: new Map(), owners: new Map(), look: () => this.#look() };
  readonly #cost = new TrueCost();
  readonly #done: Action[] = [];
  readonly #known = new RowAges();
  /** When the actions began that are being done. */
  readonly #begun = new Set<{ at: number }>();
  /** Before anything began that may have changed since the last look. */
  #since = performance.now();
  #looking: Promise<void> = Promise.resolve();
  #nextLook: Promise<void> | undefined;
  #released: Reconciled[] = [];

  constructor(charged: ChargedBlazar, blazar: RealBlazar, callers: number) {
    this.charged = charged;
    this.blazar = blazar;
    this.callers = callers;
  }

  get steps(): number {
    return this.#done.length;
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** Some actions, by all callers at once. */
  async wave(actions: Iterator<Action>, meanwhile: () => Promise<void>): Promise<void> {
    const ending = new AbortController();
    // One caller waits for a round after each action.
    const following = this.callers === 1 ? undefined : this.#follow(ending.signal);
    let left = this.callers === 1 ? 1 : 2 * this.callers;
    const caller = async () => {
      while (left > 0) {
        left -= 1;
        const { value: action } = actions.next();
        await this.#do(action);
      }
    };
    try {
      await Promise.all([meanwhile(), ...Array.from({ length: this.callers }, caller)]);
    } finally {
      ending.abort();
      await following;
    }
  }

  async #do(action: Action): Promise<void> {
    const begun = { at: performance.now() };
    this.#begun.add(begun);
    const outcome = await action.do(this.blazar);
    await this.#look();
    this.#begun.delete(begun);
    this.count(`${action.kind} ${outcome}`);
    this.#done.push({ ...action, outcome });
  }

  /** Each second, until it is over. */
  async #follow(ending: AbortSignal): Promise<void> {
    while (!ending.aborted) {
      await this.#round(GRACE, this.#known);
      await sleep(1000, undefined, { signal: ending }).catch(() => {});
    }
  }

  async #round(grace: number, known?: RowAges) {
    const began = performance.now();
    const one = await this.charged.round(this.blazar, grace, known);
    this.#cost.heard(began);
    for (const change of one.done) {
      this.count(`round ${change.outcome}`);
      if (change.outcome === 'released') {
        this.#released.push(change);
      }
    }
    return one;
  }

  /** Looks at what is there, after what runs has looked. */
  #look(): Promise<void> {
    this.#nextLook ??= this.#looking.then(() => {
      this.#nextLook = undefined;
      this.#looking = this.#observe().then(() => {});
      return this.#looking;
    });
    return this.#nextLook;
  }

  async #observe(): Promise<TrueReservation[]> {
    const since = this.#since;
    this.#since = Math.min(performance.now(), ...[...this.#begun].map(({ at }) => at));
    const truth = (await this.blazar.truth()).filter(({ status }) => status !== 'TERMINATED');
    this.#cost.observe(truth, since);
    return truth;
  }

  /** Nobody asks: the ledger may be charged more than is there, and a round later is charged that. */
  async compare(): Promise<void> {
    const truth = await this.#observe();
    const early = (await this.#sums()).filter(({ least, taken, amount }) => least > taken || least > amount);
    if (early.length > 0) {
      expect.fail(`more is there than is charged or allowed: ${await this.#said(truth, early)}`);
    }
    let one = await this.#round(GRACE);
    for (let more = 0; more < 4 && one.done.some(({ outcome }) => outcome === 'left'); more += 1) {
      // The grace is over. The first round may doubt to release so many.
      one = await this.#round(0);
    }
    const sums = await this.#sums();
    const isExact = sums.every(({ least, most, taken }) => least <= taken && taken <= most);
    if (!isExact || one.followed.kind !== 'done' || one.followed.doubts.length > 0) {
      expect.fail(`something else is charged than is there: ${await this.#said(truth, one, sums)}`);
    }
    const now = new Date();
    const there = truth.filter(({ end_date }) => date(end_date) > now);
    const ids = [...new Set(there.map(({ lease_id }) => lease_id))].sort();
    const open = await this.charged.openRows(now);
    const charges = await this.charged.chargesByRow();
    const isCharged = ({ id, lease_id, starts_at }: LeaseRow) => {
      const own = new Set(
        there.filter((each) => each.lease_id === lease_id).map((each) => each.reservation_id),
      );
      const isPlanned = starts_at > BigInt(now.getTime()) * 1000n && !this.#cost.hasRun(own);
      const real = this.#cost.total({ isOf: (reservation) => own.has(reservation) });
      // A row with an id that users reuse has what earlier leases have used.
      return !isPlanned || isChosen(lease_id) || charges.get(id) === real;
    };
    const isSame = JSON.stringify(open.map(({ lease_id }) => lease_id).sort()) === JSON.stringify(ids);
    const wrongly = this.#released.filter(({ leaseId }) => ids.includes(leaseId ?? '') && !isChosen(leaseId));
    if (!isSame || ids.length > MOST_LEASES || !open.every(isCharged) || wrongly.length > 0) {
      expect.fail(`other leases are charged than are there: ${await this.#said(truth, open, wrongly)}`);
    }
    this.#released = [];
  }

  /** Of each budget: what is charged, and what it costs. Where several users have asked for leases with one id, the last of them pays. */
  async #sums() {
    const { slack } = this.#cost;
    return (await this.charged.budgets()).map(({ userId, validFrom, validUntil, taken, amount }) => {
      const times = { from: Number(validFrom), until: Number(validUntil) };
      const owner = (id: string) => this.scene.owners.get(id);
      const isSurely = (id: string) => userId === null || owner(id) === `${PROJECT}/${userId}`;
      const mayBe = (id: string) => isSurely(id) || owner(id) === undefined;
      return {
        name: `${userId ?? PROJECT} from ${new Date(times.from * 1000).toISOString()}`,
        least: this.#cost.total({ isOf: isSurely, ...times }) - slack,
        most: this.#cost.total({ isOf: mayBe, ...times }) + slack,
        taken: tenths(taken),
        amount: tenths(amount),
      };
    });
  }

  /** For whoever looks for a cause: what each lease costs and is charged, where that differs, and what was done last. */
  async #said(truth: readonly TrueReservation[], ...more: unknown[]): Promise<string> {
    const charges = await this.charged.chargesByRow();
    const open = await this.charged.openRows(new Date(0));
    const ids = new Set([...truth, ...open].map(({ lease_id }) => lease_id));
    const leases = [...ids].map((leaseId) => {
      const own = new Set(truth.filter((one) => one.lease_id === leaseId).map((one) => one.reservation_id));
      const rows = open.filter(({ lease_id }) => lease_id === leaseId);
      const charged = rows.reduce((sum, { id }) => sum + (charges.get(id) ?? 0), 0);
      return { leaseId, costs: this.#cost.total({ isOf: (id) => own.has(id) }), charged, rows };
    });
    const last = this.#done.slice(-16).map(({ kind, who, body, outcome }) => ({ kind, who, body, outcome }));
    const differing = leases.filter(({ costs, charged }) => costs !== charged);
    return texts({ more, differing, last, truth });
  }

  /** One that stays: a ledger does not believe a Blazar that lists none of its leases. */
  async anchor(begin: number): Promise<void> {
    const at = (hours: number) =>
      new Date(begin + hours * HOUR * 1000).toISOString().slice(0, 16).replace('T', ' ');
    const reservations = [{ resource_type: 'virtual:floatingip', network_id: 'net1', amount: 1 }];
    const body = { name: 'anchor', start_date: at(240), end_date: at(241), reservations };
    const { lease } = await this.blazar.ask('POST', '/v1/leases', 'climate/carol', body);
    for (const { id } of lease?.reservations ?? []) {
      this.scene.owners.set(id, 'climate/carol');
    }
    await this.compare();
  }

  async deleteAll(): Promise<void> {
    await this.blazar.failNova(false);
    for (const [id, { who }] of this.scene.leases) {
      await this.blazar.ask('DELETE', `/v1/leases/${id}`, who);
    }
    this.scene.leases.clear();
  }
}

/** Users choose such ids, and give them to other leases later. */
function isChosen(leaseId: string | null): boolean {
  return leaseId?.startsWith('own-') === true;
}

function date(text: string): Date {
  return new Date(`${text.replace(' ', 'T')}Z`);
}

function texts(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? String(one) : one), 1);
}

const program = peerProgram('BLAZAR_PEER');
const newLedger = newLedgers();
const runs = SEEDS.flatMap((seed) => CALLERS.map((callers) => ({ seed, callers })));

describe.skipIf(program === undefined)('a ledger that follows a real Blazar', () => {
  it.each(runs)(
    'is charged what is there (BLAZAR_SEED=$seed BLAZAR_CALLERS=$callers)',
    async ({ seed, callers }) => {
      const begin = beginOfLeases();
      const charged = await ChargedBlazar.start(
        program ?? '',
        await newLedger('sqlite'),
        budgetsOf(begin, 1),
      );
      onTestFinished(() => charged.stop());
      if (charged.blazar === undefined) {
        return;
      }
      const history = new History(charged, charged.blazar, callers);
      await history.anchor(begin);
      const isAlone = callers === 1;
      const steps = (isAlone ? STEPS[1] : undefined) ?? STEPS[0] ?? 0;
      const isMissing = (what: string) => !history.counts.has(what);
      const actions = randomActions(seed, Number.POSITIVE_INFINITY, history.scene, isAlone);
      let isImported = false;
      while (history.steps < steps || (!isAlone && WANTED.some(isMissing))) {
        const isDue: boolean = !isImported && history.steps >= steps / 2;
        isImported ||= isDue;
        await history.wave(actions, async () => {
          if (isDue) {
            await charged.import(budgetsOf(begin, 1.25));
          }
        });
        await history.compare();
      }
      await history.deleteAll();
      await history.compare();
      expect((await verifyLedger(charged.ledger, NO_WAIT)).differences).toEqual([]);
      process.stderr.write(`${JSON.stringify(Object.fromEntries([...history.counts].sort()))}\n`);
    },
    7_200_000,
  );
});
