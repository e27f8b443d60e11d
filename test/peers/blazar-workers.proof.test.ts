/** Two real Blazars ask a service of two workers about leases at the same time, while a worker is killed: the budget is never overdrawn. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { DIALECTS, giveBudget, ledgerAt, NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { peerProgram } from '../support/peers.ts';
import { readSamples } from '../support/samples.ts';
import { launchWorkers, SOON } from '../support/service-of-workers.ts';
import { RealBlazar } from './blazar.ts';

const program = peerProgram('BLAZAR_PEER');
const newLedger = newLedgers();
const PROJECT = 'climate';
/** Of one host each. */
const HOURS = 10;
const PAID_FOR = 12;
const ASKED = 48;
/** Of each Blazar, which serves one after the other. */
const AT_ONCE = 2;
const BLAZARS = 2;
/** The ledger counts in millionths. */
const TAKEN_PER_HOUR = 3600 * 1_000_000;
const DAY_MS = 86_400_000;

function lease(index: number) {
  // On days of their own, so that Blazar has hosts for all of them.
  const start = Math.ceil(Date.now() / DAY_MS) * DAY_MS + index * DAY_MS;
  const date = (time: number) => new Date(time).toISOString().slice(0, 16).replace('T', ' ');
  const host = {
    resource_type: 'physical:host',
    ...{ min: 1, max: 1, hypervisor_properties: '', resource_properties: '' },
  };
  const dates = { start_date: date(start), end_date: date(start + HOURS * 3_600_000) };
  return { name: `run-${index}`, ...dates, reservations: [host] };
}

describe.skipIf(program === undefined).each(DIALECTS)('real Blazars and two workers on %s', (dialect) => {
  it('allocate no more than the budget pays for, and charge what they allocate', async () => {
    const connection = await newLedger(dialect);
    const ledger = await ledgerAt(connection);
    onTestFinished(() => ledger.close());
    const dates = { from: '2026-01-01', until: '2040-01-01' };
    await giveBudget(ledger, { projectId: PROJECT, amount: String(PAID_FOR * HOURS), ...dates });
    const service = launchWorkers(`[enforcement]
enabled_filters = UsageBudgetFilter
usage_budget_rates = physical:host:1
[ledger]
connection = ${connection}
timeout = 60
[service]
workers = 2
deadline = 60
`);
    const url = await service.listening;
    const blazars = await Promise.all(
      Array.from({ length: BLAZARS }, async () => {
        const blazar = await RealBlazar.start(program ?? '', `${url}/v1/`, ['--hosts', '4']);
        onTestFinished(() => blazar.stop());
        return blazar;
      }),
    );
    const statuses: number[] = [];
    let next = 0;
    const create = async (blazar: RealBlazar) => {
      while (next < ASKED) {
        const body = lease(next);
        next += 1;
        const { status } = await blazar.ask('POST', '/v1/leases', `${PROJECT}/alice`, body);
        statuses.push(status);
      }
    };
    const clients = blazars.flatMap((blazar) => Array.from({ length: AT_ONCE }, () => create(blazar)));
    const creating = Promise.all(clients);
    await vi.waitFor(() => expect(statuses.length).toBeGreaterThanOrEqual(4), SOON);
    const [, victim = 0] = service.workers();
    process.kill(victim, 'SIGKILL');
    await creating;
    const truths = await Promise.all(blazars.map((blazar) => blazar.truth()));
    const truth = truths.flat().filter(({ status }) => status !== 'TERMINATED');
    const there = new Set(truth.map(({ lease_id }) => lease_id)).size;
    const [{ taken = 0n } = {}] = await listBudgets(ledger, PROJECT, NO_WAIT);
    const charged = Number(taken) / TAKEN_PER_HOUR / HOURS;
    process.stderr.write(
      `${dialect}: ${there} leases there, ${charged} charged, of ${statuses.length} asked for\n`,
    );
    expect(there).toBe(statuses.filter((status) => status < 300).length);
    expect(there).toBeLessThanOrEqual(charged);
    expect(charged).toBeLessThanOrEqual(PAID_FOR);
    // Nobody but the killed worker has lost anything: what it was asked may be charged and refused.
    expect(there).toBeGreaterThanOrEqual(PAID_FOR - BLAZARS);
    expect(statuses).toHaveLength(ASKED);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
    await vi.waitFor(
      async () => expect(await readSamples(url)).toMatchObject({ workers: 2, workers_running: 2 }),
      SOON,
    );
    const counted = await readSamples(url);
    expect(counted['worker_ends_total{reason="died"}']).toBe(1);
  });
});
