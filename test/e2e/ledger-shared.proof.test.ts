/** Four services and 64 clients on one ledger never exceed a budget. SQLite and PostgreSQL. */
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { budgetAccount, parseUnitHours } from '../../src/filter/claim.ts';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { newClients, startClients } from '../support/lease-clients.ts';
import { extremes, inspect } from '../support/ledger-inspection.ts';
import { SCALE, startServices, withBudget } from '../support/ledger-processes.ts';
import { DIALECTS, NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { PROJECT } from '../support/requests.ts';

const SERVICES = 4;
const CLIENTS = 64;
const ANSWERS = 700 * SCALE;
/** Some half of what the clients would have if they could. */
const BUDGET = '9000';
const MOST_LEASES = 50;

const newLedger = newLedgers();

/** Looks at a budget all the time, and keeps what was ever wrong with it. */
function startWatch(ledger: Ledger) {
  const wrong: string[] = [];
  let looks = 0;
  let isOver = false;
  const watch = async () => {
    while (!isOver) {
      for (const { amount, taken } of await listBudgets(ledger, PROJECT, NO_WAIT)) {
        looks += 1;
        if (taken < 0n || taken > amount) {
          wrong.push(`${taken} of ${amount}`);
        }
      }
      await pause(1);
    }
    return { looks, wrong };
  };
  const watched = watch();
  return () => {
    isOver = true;
    return watched;
  };
}

describe.each(DIALECTS)('4 services and 64 clients on one ledger in %s', (dialect) => {
  it('never exceed the budget, and record what they say', { timeout: 1_200_000 * SCALE }, async () => {
    const connection = await newLedger(dialect);
    const ledger = await withBudget(connection, BUDGET);
    onTestFinished(() => ledger.close());
    const [budget] = await listBudgets(ledger, PROJECT, NO_WAIT);
    const services = await startServices(SERVICES, {
      connection,
      enforcement: `max_leases_per_project = ${MOST_LEASES}`,
    });
    const clients = newClients(CLIENTS);
    const stopWatch = startWatch(ledger);
    const load = startClients(clients, services);
    const answers = () => clients.flatMap((client) => client.answers);
    while (answers().length < ANSWERS) {
      await pause(20);
    }
    await load.stop();
    const { wrong, looks } = await stopWatch();

    expect(wrong).toEqual([]);
    expect(looks).toBeGreaterThan(0);
    expect(await inspect(ledger, clients)).toEqual([]);
    const { highest, lowest } = await extremes(ledger, budgetAccount(budget ?? { id: 0n }));
    expect(highest).toBeLessThanOrEqual(parseUnitHours(BUDGET) ?? 0n);
    expect(lowest).toBe(0n);
    expect((await extremes(ledger, 'max_leases/project')).highest).toBeLessThanOrEqual(MOST_LEASES);
    // The limits were reached, and nothing else was in the way.
    const refusals = answers().filter(({ status }) => status !== 204);
    expect(refusals.filter(({ message }) => message?.includes('would cost'))).not.toEqual([]);
    expect(refusals.filter(({ message }) => message?.includes('pending or active leases'))).not.toEqual([]);
    expect(
      refusals.filter(({ message }) => !/would cost|pending or active leases/.test(message ?? '')),
    ).toEqual([]);
    expect(clients.reduce((sum, { unanswered }) => sum + unanswered, 0)).toBe(0);
  });
});
