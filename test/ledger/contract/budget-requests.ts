import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MAX_AMOUNT } from '../../../src/filter/claim.ts';
import { listBudgets } from '../../../src/ledger/budgets/budgets.ts';
import { budgetHistory } from '../../../src/ledger/budgets/history.ts';
import {
  askForBudget,
  MOST_A_DAY,
  MOST_OPEN,
  pageOfRequests,
  requestById,
  stepRequest,
} from '../../../src/ledger/budgets/requests/requests.ts';
import { type BudgetRequest, isOpen } from '../../../src/ledger/budgets/requests/rows.ts';
import type { RequestEdit, RequestStep } from '../../../src/ledger/budgets/requests/steps.ts';
import { NO_WAIT } from '../../support/ledgers.ts';
import type { LedgerFixture, LedgerFixtures } from '../fixture.ts';

const HOUR = 3_600_000_000n;
const DAY = 86_400n;
/** 2026-11-21T09:00:30Z */
const NOW = 1_795_251_630n;
const UNTIL = NOW + 10n * DAY;
const ALICE = { who: 'alice', reason: 'a workshop', identity: 'keystone alice' };
const OPERATOR = { who: 'operator', reason: 'fine' };
const GRANT = { kind: 'grant', isBounded: false } as const;

interface Wish {
  readonly userId?: string | null;
  readonly amount?: bigint;
  readonly validUntil?: bigint;
  readonly reason?: string;
}

function ask({ ledger, project }: LedgerFixture, wish: Wish = {}): Promise<RequestEdit> {
  const { userId = null, amount = 5n * HOUR, validUntil = UNTIL, reason = ALICE.reason } = wish;
  return askForBudget(
    ledger,
    { projectId: project, userId, amount, validUntil },
    { ...ALICE, reason },
    NO_WAIT,
  );
}

function doneBy(edit: RequestEdit): BudgetRequest {
  if (edit.kind !== 'done') {
    throw new Error(`refused: ${edit.refusal.kind}`);
  }
  return edit.request;
}

async function asked(fixture: LedgerFixture, wish?: Wish): Promise<BudgetRequest> {
  return doneBy(await ask(fixture, wish));
}

function step(
  { ledger }: LedgerFixture,
  which: BudgetRequest,
  how: RequestStep,
  author = OPERATOR,
): Promise<RequestEdit> {
  return stepRequest(ledger, which, how, author, NO_WAIT);
}

function kindOf(edit: RequestEdit): string {
  return edit.kind === 'done' ? edit.request.state : edit.refusal.kind;
}

async function budgets({ ledger, project }: LedgerFixture) {
  return (await listBudgets(ledger, project, NO_WAIT)).map(({ userId, validFrom, validUntil, amount }) => ({
    userId,
    validFrom,
    validUntil,
    hours: amount / HOUR,
  }));
}

/** Asking for more budget, and what becomes of it. */
export function requesting(fixtures: LedgerFixtures): void {
  it('goes from asked to endorsed to granted, grows the budget once, and keeps who and why in its history', async () => {
    const fixture = await fixtures({ budget: '100' });
    const request = await asked(fixture);
    expect(request).toMatchObject({ state: 'requested', asked: { who: 'alice' }, granted: null });
    const manager = { who: 'manager', reason: 'needed' };
    expect(doneBy(await step(fixture, request, { kind: 'endorse' }, manager))).toMatchObject({
      state: 'endorsed',
      endorsed: manager,
    });
    const granted = doneBy(await step(fixture, request, GRANT));
    const [budget] = await listBudgets(fixture.ledger, fixture.project, NO_WAIT);
    expect(granted).toMatchObject({
      state: 'granted',
      endorsed: manager,
      settled: OPERATOR,
      granted: { amount: 5n * HOUR, validUntil: UNTIL, budget: budget?.id },
    });
    expect(budget?.amount).toBe(105n * HOUR);
    const history = await budgetHistory(fixture.ledger, fixture.project, NO_WAIT);
    expect(history.slice(1)).toMatchObject([
      { operation: 'set', who: 'operator', reason: `request ${request.id} by alice: fine` },
    ]);
    expect(await requestById(fixture.ledger, request.id, NO_WAIT)).toEqual(granted);
  });

  it('endorses what is granted without endorsement, by who grants it', async () => {
    const fixture = await fixtures({ budget: '100' });
    const granted = doneBy(await step(fixture, await asked(fixture), GRANT));
    expect(granted).toMatchObject({
      state: 'granted',
      endorsed: { who: 'operator', at: granted.settled?.at },
    });
  });

  it('grants something else than was asked for, and calls it changed', async () => {
    const fixture = await fixtures({ budget: '100' });
    const request = await asked(fixture);
    const changed = doneBy(await step(fixture, request, { ...GRANT, amount: 2n * HOUR }));
    expect(changed).toMatchObject({ state: 'changed', amount: 5n * HOUR, granted: { amount: 2n * HOUR } });
    expect(await budgets(fixture)).toMatchObject([{ hours: 102n }]);
  });

  it('grants once, however often and from however many processes it is granted at the same time', async () => {
    const fixture = await fixtures({ budget: '100' });
    const request = await asked(fixture);
    const other = await fixtures({ projectId: fixture.project, isApart: true });
    const grants = Array.from({ length: 6 }, (_, index) =>
      step(index % 2 === 0 ? fixture : other, request, GRANT),
    );
    const edits = await Promise.all(grants);
    expect(edits.map(kindOf)).toEqual(Array.from({ length: 6 }, () => 'granted'));
    expect(await budgets(fixture)).toMatchObject([{ hours: 105n }]);
    expect(await budgetHistory(fixture.ledger, fixture.project, NO_WAIT)).toHaveLength(2);
    const others = await step(fixture, request, { ...GRANT, amount: HOUR });
    expect(others).toMatchObject({
      kind: 'refused',
      refusal: { kind: 'settled', current: { state: 'granted' } },
    });
  });

  it('extends the budget if it ends before, adds to the last one until then, and sets one where there is none', async () => {
    const fixture = await fixtures();
    doneBy(await step(fixture, await asked(fixture), GRANT));
    const first = { userId: null, validFrom: NOW, validUntil: UNTIL, hours: 5n };
    expect(await budgets(fixture)).toEqual([first]);
    doneBy(await step(fixture, await asked(fixture, { validUntil: UNTIL + DAY }), GRANT));
    const extended = { ...first, validUntil: UNTIL + DAY, hours: 10n };
    expect(await budgets(fixture)).toEqual([extended]);
    doneBy(await step(fixture, await asked(fixture, { validUntil: NOW + 1n }), GRANT));
    expect(await budgets(fixture)).toEqual([{ ...extended, hours: 15n }]);
    await fixture.give({ from: '2027-01-01', until: '2028-01-01', amount: '7' });
    doneBy(await step(fixture, await asked(fixture, { validUntil: 1_798_848_000n }), GRANT));
    expect(await budgets(fixture)).toMatchObject([
      { hours: 15n },
      { hours: 12n, validUntil: 1_830_297_600n },
    ]);
  });

  it('refuses what is over, what no budget can hold, and a first budget of a user, which would limit them', async () => {
    const fixture = await fixtures({ budget: '100' });
    const before = await fixture.everything();
    expect(kindOf(await ask(fixture, { validUntil: NOW }))).toBe('over');
    expect(kindOf(await ask(fixture, { userId: 'alice' }))).toBe('no-budget');
    expect(await fixture.everything()).toEqual(before);
    const huge = await asked(fixture, { amount: MAX_AMOUNT });
    expect(kindOf(await step(fixture, huge, GRANT))).toBe('too-large');
    const late = await asked(fixture, { validUntil: NOW + 60n });
    fixture.now = '2026-11-21T10:00:00Z';
    expect(kindOf(await step(fixture, late, GRANT))).toBe('over');
    expect(kindOf(await step(fixture, late, { ...GRANT, validUntil: UNTIL }))).toBe('changed');
    expect(await budgets(fixture)).toMatchObject([{ hours: 105n }]);
  });

  it('lets a manager grant to a user what the project has, and no more', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.give({ userId: 'alice', amount: '96' });
    const bounded = { ...GRANT, isBounded: true };
    const request = await asked(fixture, { userId: 'alice' });
    expect(await step(fixture, request, bounded)).toMatchObject({
      kind: 'refused',
      refusal: { kind: 'budget', refusal: { kind: 'beyond-project', beyond: { most: 100n * HOUR } } },
    });
    expect((await requestById(fixture.ledger, request.id, NO_WAIT))?.state).toBe('requested');
    expect(kindOf(await step(fixture, request, { ...bounded, amount: 4n * HOUR }))).toBe('changed');
    expect(await budgets(fixture)).toMatchObject([{ hours: 100n }, { userId: 'alice', hours: 100n }]);
  });

  it('is one request if it is asked for twice, and bounds how many are open, and how many are asked for in a day', async () => {
    const fixture = await fixtures({ budget: '100' });
    const [one, same] = await Promise.all([asked(fixture), asked(fixture)]);
    expect(same).toEqual(one);
    await step(fixture, one, { kind: 'withdraw' });
    for (let number = 1; number < MOST_A_DAY; number += 1) {
      const request = await asked(fixture, { reason: `${number}` });
      if (number < MOST_A_DAY - MOST_OPEN) {
        await step(fixture, request, { kind: 'withdraw' });
      }
    }
    expect(await ask(fixture, { reason: 'more' })).toMatchObject({
      refusal: { kind: 'too-many', open: true },
    });
    const { items } = await listed(fixture, { states: ['requested'] });
    expect(items).toHaveLength(MOST_OPEN);
    for (const request of items) {
      await step(fixture, request, { kind: 'refuse' });
    }
    expect(await ask(fixture, { reason: 'more' })).toMatchObject({
      refusal: { kind: 'too-many', open: false },
    });
    fixture.now = '2026-11-22T09:00:31Z';
    expect(kindOf(await ask(fixture, { reason: 'more' }))).toBe('requested');
  });

  it('lists requests in pages, the newest first, of some projects or all', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.give({ userId: 'bob', amount: '5' });
    const ids: bigint[] = [];
    for (const userId of [null, 'bob', null]) {
      ids.push((await asked(fixture, { userId, reason: `${ids.length}` })).id);
    }
    const first = await listed(fixture, { limit: 2 });
    const second = await listed(fixture, { limit: 2, after: first.next });
    expect([first, second].map(({ items }) => items.map(({ id }) => id))).toEqual([
      [ids[2], ids[1]],
      [ids[0]],
    ]);
    expect(second.next).toBeUndefined();
    expect((await listed(fixture, { userId: 'bob' })).items).toMatchObject([{ id: ids[1] }]);
    expect(await listed(fixture, { projectIds: [] })).toEqual({ items: [], next: undefined });
    const everywhere = await listed(fixture, { projectIds: undefined, limit: 1 });
    expect(everywhere.items).toMatchObject([{ id: ids[2] }]);
    await expect(listed(fixture, { after: 'x' })).rejects.toMatchObject({ name: 'CursorError' });
  });

  it('finds no request in another project than it is of', async () => {
    const fixture = await fixtures({ budget: '100' });
    const request = await asked(fixture);
    const other = { ...request, projectId: 'another' };
    expect(kindOf(await step(fixture, other, GRANT))).toBe('gone');
    expect(kindOf(await step(fixture, { ...request, id: 2n ** 62n }, GRANT))).toBe('gone');
    expect(await budgets(fixture)).toMatchObject([{ hours: 100n }]);
  });

  it('takes no step out of order, and grows budgets by the sum of what is granted, whatever is tried', async () => {
    const order: Readonly<Record<string, readonly string[]>> = {
      requested: ['requested', 'endorsed', 'granted', 'changed', 'refused', 'withdrawn'],
      endorsed: ['endorsed', 'granted', 'changed', 'refused', 'withdrawn'],
    };
    const tried = fc.record({
      which: fc.nat(3),
      how: fc.oneof(
        fc.constantFrom<RequestStep>({ kind: 'endorse' }, { kind: 'refuse' }, { kind: 'withdraw' }, GRANT),
        fc.record({
          kind: fc.constant('grant' as const),
          isBounded: fc.constant(false),
          amount: fc.constantFrom(HOUR, 2n * HOUR),
          validUntil: fc.constantFrom(UNTIL, UNTIL + DAY, NOW + 1n, NOW),
        }),
      ),
      isTwice: fc.boolean(),
    });
    const draft = fc.record({
      amount: fc.constantFrom(HOUR, 3n * HOUR),
      validUntil: fc.constantFrom(UNTIL, UNTIL + 40n * DAY),
      userId: fc.constantFrom(null, 'alice'),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(draft, { minLength: 1, maxLength: 4 }),
        fc.array(tried, { maxLength: 12 }),
        async (drafts, tries) => {
          const fixture = await fixtures({ budget: '100' });
          await fixture.give({ userId: 'alice', amount: '50' });
          const requests: BudgetRequest[] = [];
          for (const [index, one] of drafts.entries()) {
            requests.push(await asked(fixture, { ...one, reason: `${index}` }));
          }
          for (const { which, how, isTwice } of tries) {
            const at = which % requests.length;
            const before = requests[at];
            if (before === undefined) {
              continue;
            }
            await Promise.all([step(fixture, before, how), ...(isTwice ? [step(fixture, before, how)] : [])]);
            const after = await requestById(fixture.ledger, before.id, NO_WAIT);
            if (after === undefined) {
              throw new Error('expected the request');
            }
            if (isOpen(before)) {
              expect(order[before.state]).toContain(after.state);
            } else {
              expect(after).toEqual(before);
            }
            expect(after.granted !== null).toBe(['granted', 'changed'].includes(after.state));
            expect(after.endorsed === null && after.granted !== null).toBe(false);
            requests[at] = after;
          }
          for (const userId of [null, 'alice']) {
            const granted = requests
              .filter((one) => one.userId === userId)
              .reduce((sum, one) => sum + (one.granted?.amount ?? 0n), 0n);
            const all = await listBudgets(fixture.ledger, fixture.project, NO_WAIT);
            const [budget] = all.filter((one) => one.userId === userId);
            expect(budget?.amount).toBe((userId === null ? 100n : 50n) * HOUR + granted);
          }
          const changes = await budgetHistory(fixture.ledger, fixture.project, NO_WAIT);
          expect(changes).toHaveLength(2 + requests.filter(({ granted }) => granted !== null).length);
        },
      ),
      { numRuns: 20 },
    );
  });
}

function listed(
  { ledger, project }: LedgerFixture,
  query: Partial<Parameters<typeof pageOfRequests>[1]> = {},
) {
  return pageOfRequests(ledger, { projectIds: [project], limit: 1000, after: undefined, ...query }, NO_WAIT);
}
