import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MAX_AMOUNT } from '../../../src/filter/claim.ts';
import { listBudgets } from '../../../src/ledger/budgets/budgets.ts';
import { budgetHistory } from '../../../src/ledger/budgets/history.ts';
import { pageOfRequests, requestById } from '../../../src/ledger/budgets/requests/lists.ts';
import {
  askForBudget,
  MOST_A_DAY,
  MOST_OPEN,
  stepRequest,
} from '../../../src/ledger/budgets/requests/requests.ts';
import { type BudgetRequest, isOpen } from '../../../src/ledger/budgets/requests/rows.ts';
import type { RequestEdit, RequestStep } from '../../../src/ledger/budgets/requests/steps.ts';
import { NO_WAIT } from '../../support/ledgers.ts';
import type { Ground, Grounds } from '../ground.ts';

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

function ask({ ledger, project }: Ground, wish: Wish = {}): Promise<RequestEdit> {
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

async function asked(ground: Ground, wish?: Wish): Promise<BudgetRequest> {
  return doneBy(await ask(ground, wish));
}

function step(
  { ledger }: Ground,
  which: BudgetRequest,
  how: RequestStep,
  author = OPERATOR,
): Promise<RequestEdit> {
  return stepRequest(ledger, which, how, author, NO_WAIT);
}

function kindOf(edit: RequestEdit): string {
  return edit.kind === 'done' ? edit.request.state : edit.refusal.kind;
}

async function budgets({ ledger, project }: Ground) {
  return (await listBudgets(ledger, project, NO_WAIT)).map(({ userId, validFrom, validUntil, amount }) => ({
    ...{ userId, validFrom, validUntil, hours: amount / HOUR },
  }));
}

/** Asking for more budget, and what becomes of it. */
export function requesting(grounds: Grounds): void {
  it('goes from asked to endorsed to granted, grows the budget once, and keeps who and why in its history', async () => {
    const ground = await grounds({ budget: '100' });
    const request = await asked(ground);
    expect(request).toMatchObject({ state: 'requested', asked: { who: 'alice' }, granted: null });
    const manager = { who: 'manager', reason: 'needed' };
    expect(doneBy(await step(ground, request, { kind: 'endorse' }, manager))).toMatchObject({
      state: 'endorsed',
      endorsed: manager,
    });
    const granted = doneBy(await step(ground, request, GRANT));
    const [budget] = await listBudgets(ground.ledger, ground.project, NO_WAIT);
    expect(granted).toMatchObject({
      state: 'granted',
      endorsed: manager,
      settled: OPERATOR,
      granted: { amount: 5n * HOUR, validUntil: UNTIL, budget: budget?.id },
    });
    expect(budget?.amount).toBe(105n * HOUR);
    const history = await budgetHistory(ground.ledger, ground.project, NO_WAIT);
    expect(history.slice(1)).toMatchObject([
      { operation: 'set', who: 'operator', reason: `request ${request.id} by alice: fine` },
    ]);
    expect(await requestById(ground.ledger, request.id, NO_WAIT)).toEqual(granted);
  });

  it('endorses what is granted without endorsement, by who grants it', async () => {
    const ground = await grounds({ budget: '100' });
    const granted = doneBy(await step(ground, await asked(ground), GRANT));
    expect(granted).toMatchObject({
      state: 'granted',
      endorsed: { who: 'operator', at: granted.settled?.at },
    });
  });

  it('grants something else than was asked for, and calls it changed', async () => {
    const ground = await grounds({ budget: '100' });
    const request = await asked(ground);
    const changed = doneBy(await step(ground, request, { ...GRANT, amount: 2n * HOUR }));
    expect(changed).toMatchObject({ state: 'changed', amount: 5n * HOUR, granted: { amount: 2n * HOUR } });
    expect(await budgets(ground)).toMatchObject([{ hours: 102n }]);
  });

  it('grants once, however often and from however many processes it is granted at the same time', async () => {
    const ground = await grounds({ budget: '100' });
    const request = await asked(ground);
    const other = await grounds({ projectId: ground.project, isApart: true });
    const grants = Array.from({ length: 6 }, (_, index) =>
      step(index % 2 === 0 ? ground : other, request, GRANT),
    );
    const edits = await Promise.all(grants);
    expect(edits.map(kindOf)).toEqual(Array.from({ length: 6 }, () => 'granted'));
    expect(await budgets(ground)).toMatchObject([{ hours: 105n }]);
    expect(await budgetHistory(ground.ledger, ground.project, NO_WAIT)).toHaveLength(2);
    const others = await step(ground, request, { ...GRANT, amount: HOUR });
    expect(others).toMatchObject({
      kind: 'refused',
      refusal: { kind: 'settled', current: { state: 'granted' } },
    });
  });

  it('extends the budget if it ends before, adds to the last one until then, and sets one where there is none', async () => {
    const ground = await grounds();
    doneBy(await step(ground, await asked(ground), GRANT));
    const first = { userId: null, validFrom: NOW, validUntil: UNTIL, hours: 5n };
    expect(await budgets(ground)).toEqual([first]);
    doneBy(await step(ground, await asked(ground, { validUntil: UNTIL + DAY }), GRANT));
    const extended = { ...first, validUntil: UNTIL + DAY, hours: 10n };
    expect(await budgets(ground)).toEqual([extended]);
    doneBy(await step(ground, await asked(ground, { validUntil: NOW + 1n }), GRANT));
    expect(await budgets(ground)).toEqual([{ ...extended, hours: 15n }]);
    await ground.give({ from: '2027-01-01', until: '2028-01-01', amount: '7' });
    doneBy(await step(ground, await asked(ground, { validUntil: 1_798_848_000n }), GRANT));
    expect(await budgets(ground)).toMatchObject([{ hours: 15n }, { hours: 12n, validUntil: 1_830_297_600n }]);
  });

  it('refuses what is over, what no budget can hold, and a first budget of a user, which would limit them', async () => {
    const ground = await grounds({ budget: '100' });
    const before = await ground.everything();
    expect(kindOf(await ask(ground, { validUntil: NOW }))).toBe('over');
    expect(kindOf(await ask(ground, { userId: 'alice' }))).toBe('no-budget');
    expect(await ground.everything()).toEqual(before);
    const huge = await asked(ground, { amount: MAX_AMOUNT });
    expect(kindOf(await step(ground, huge, GRANT))).toBe('too-large');
    const late = await asked(ground, { validUntil: NOW + 60n });
    ground.now = '2026-11-21T10:00:00Z';
    expect(kindOf(await step(ground, late, GRANT))).toBe('over');
    expect(kindOf(await step(ground, late, { ...GRANT, validUntil: UNTIL }))).toBe('changed');
    expect(await budgets(ground)).toMatchObject([{ hours: 105n }]);
  });

  it('lets a manager grant to a user what the project has, and no more', async () => {
    const ground = await grounds({ budget: '100' });
    await ground.give({ userId: 'alice', amount: '96' });
    const bounded = { ...GRANT, isBounded: true };
    const request = await asked(ground, { userId: 'alice' });
    expect(await step(ground, request, bounded)).toMatchObject({
      kind: 'refused',
      refusal: { kind: 'budget', refusal: { kind: 'beyond-project', beyond: { most: 100n * HOUR } } },
    });
    expect((await requestById(ground.ledger, request.id, NO_WAIT))?.state).toBe('requested');
    expect(kindOf(await step(ground, request, { ...bounded, amount: 4n * HOUR }))).toBe('changed');
    expect(await budgets(ground)).toMatchObject([{ hours: 100n }, { userId: 'alice', hours: 100n }]);
  });

  it('is one request if it is asked for twice, and bounds how many are open, and how many are asked for in a day', async () => {
    const ground = await grounds({ budget: '100' });
    const [one, same] = await Promise.all([asked(ground), asked(ground)]);
    expect(same).toEqual(one);
    await step(ground, one, { kind: 'withdraw' });
    for (let number = 1; number < MOST_A_DAY; number += 1) {
      const request = await asked(ground, { reason: `${number}` });
      if (number < MOST_A_DAY - MOST_OPEN) {
        await step(ground, request, { kind: 'withdraw' });
      }
    }
    expect(await ask(ground, { reason: 'more' })).toMatchObject({
      refusal: { kind: 'too-many', open: true },
    });
    const { items } = await listed(ground, { states: ['requested'] });
    expect(items).toHaveLength(MOST_OPEN);
    for (const request of items) {
      await step(ground, request, { kind: 'refuse' });
    }
    expect(await ask(ground, { reason: 'more' })).toMatchObject({
      refusal: { kind: 'too-many', open: false },
    });
    ground.now = '2026-11-22T09:00:31Z';
    expect(kindOf(await ask(ground, { reason: 'more' }))).toBe('requested');
  });

  it('lists requests in pages, the newest first, of some projects or all', async () => {
    const ground = await grounds({ budget: '100' });
    await ground.give({ userId: 'bob', amount: '5' });
    const ids: bigint[] = [];
    for (const userId of [null, 'bob', null]) {
      ids.push((await asked(ground, { userId, reason: `${ids.length}` })).id);
    }
    const first = await listed(ground, { limit: 2 });
    const second = await listed(ground, { limit: 2, after: first.next });
    expect([first, second].map(({ items }) => items.map(({ id }) => id))).toEqual([
      [ids[2], ids[1]],
      [ids[0]],
    ]);
    expect(second.next).toBeUndefined();
    expect((await listed(ground, { userId: 'bob' })).items).toMatchObject([{ id: ids[1] }]);
    expect(await listed(ground, { projectIds: [] })).toEqual({ items: [], next: undefined });
    const everywhere = await listed(ground, { projectIds: undefined, limit: 1 });
    expect(everywhere.items).toMatchObject([{ id: ids[2] }]);
    await expect(listed(ground, { after: 'x' })).rejects.toMatchObject({ name: 'CursorError' });
  });

  it('finds no request in another project than it is of', async () => {
    const ground = await grounds({ budget: '100' });
    const request = await asked(ground);
    const other = { ...request, projectId: 'another' };
    expect(kindOf(await step(ground, other, GRANT))).toBe('gone');
    expect(kindOf(await step(ground, { ...request, id: 2n ** 62n }, GRANT))).toBe('gone');
    expect(await budgets(ground)).toMatchObject([{ hours: 100n }]);
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
    const wish = fc.record({
      amount: fc.constantFrom(HOUR, 3n * HOUR),
      validUntil: fc.constantFrom(UNTIL, UNTIL + 40n * DAY),
      userId: fc.constantFrom(null, 'alice'),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(wish, { minLength: 1, maxLength: 4 }),
        fc.array(tried, { maxLength: 12 }),
        async (wishes, tries) => {
          const ground = await grounds({ budget: '100' });
          await ground.give({ userId: 'alice', amount: '50' });
          const requests: BudgetRequest[] = [];
          for (const [index, one] of wishes.entries()) {
            requests.push(await asked(ground, { ...one, reason: `${index}` }));
          }
          for (const { which, how, isTwice } of tries) {
            const at = which % requests.length;
            const before = requests[at];
            if (before === undefined) {
              continue;
            }
            await Promise.all([step(ground, before, how), ...(isTwice ? [step(ground, before, how)] : [])]);
            const after = await requestById(ground.ledger, before.id, NO_WAIT);
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
            const all = await listBudgets(ground.ledger, ground.project, NO_WAIT);
            const [budget] = all.filter((one) => one.userId === userId);
            expect(budget?.amount).toBe((userId === null ? 100n : 50n) * HOUR + granted);
          }
          const changes = await budgetHistory(ground.ledger, ground.project, NO_WAIT);
          expect(changes).toHaveLength(2 + requests.filter(({ granted }) => granted !== null).length);
        },
      ),
      { numRuns: 20 },
    );
  });
}

function listed({ ledger, project }: Ground, query: Partial<Parameters<typeof pageOfRequests>[1]> = {}) {
  return pageOfRequests(ledger, { projectIds: [project], limit: 1000, after: undefined, ...query }, NO_WAIT);
}
