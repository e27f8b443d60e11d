/**
 * Estimates beside a real Blazar: the verdict is that of the lease when it is asked for, what it takes is what is charged then, and what is
 * suggested instead of a refused lease is granted.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatUnitHours, parseUnitHours } from '../../src/filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../src/index.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { ShownCharge, ShownEstimate } from '../../src/server/estimate/estimate-lease.ts';
import { balancesOf, giveBudget, ledgerAt, newLedgers } from '../support/ledgers.ts';
import { peerProgram } from '../support/peers.ts';
import { startedService } from '../support/started-service.ts';
import { hostReservation, RealBlazar } from './blazar.ts';

const program = peerProgram('BLAZAR_PEER');
const newLedger = newLedgers();
const DAY = 86_400_000;
/** Far from now, and each case apart: Blazar has hosts for all of them. */
let day = 20;

interface LeaseForm {
  readonly what: string;
  readonly minutes: number;
  readonly reservations: readonly object[];
}

const instances = (amount: number) => ({
  ...{ resource_type: 'virtual:instance', amount, affinity: null },
  ...{ vcpus: 1, memory_mb: 1000, disk_gb: 1, resource_properties: '' },
});
const WISHES: readonly LeaseForm[] = [
  { what: 'one host', minutes: 600, reservations: [hostReservation(1, 1)] },
  { what: 'a range of hosts that are there', minutes: 600, reservations: [hostReservation(2, 4)] },
  { what: 'more hosts than there are', minutes: 600, reservations: [hostReservation(1, 6)] },
  { what: 'instances', minutes: 90, reservations: [instances(3)] },
  { what: 'a host and instances', minutes: 61, reservations: [hostReservation(1, 1), instances(1)] },
  {
    what: 'two reservations of hosts',
    minutes: 120,
    reservations: [hostReservation(1, 2), hostReservation(1, 1)],
  },
  { what: 'too many hosts for too long', minutes: 4 * 1440, reservations: [hostReservation(1, 4)] },
  { what: 'too long a lease', minutes: 11 * 1440, reservations: [hostReservation(1, 1)] },
  { what: 'too much of both', minutes: 8 * 1440, reservations: [hostReservation(1, 3), instances(4)] },
  { what: 'not less than min', minutes: 6 * 1440, reservations: [hostReservation(4, 4)] },
];

describe.skipIf(program === undefined)('an estimate beside a real Blazar', () => {
  let blazar: RealBlazar | undefined;
  let ledger: Ledger;
  let url = '';
  let close: () => Promise<void> = async () => {};

  beforeAll(async () => {
    const connection = await newLedger('sqlite');
    const service = await startedService({
      ledger: { connection },
      enforcement: {
        enabled_filters: ['UsageBudgetFilter', 'MaxLeaseDurationFilter', 'MaxLeasesFilter'],
        usage_budget_rates: { 'physical:host': 1, 'virtual:instance': 0.3 },
        max_lease_duration: 10 * 86_400,
        max_leases_per_project: 20,
      },
      service: { port: 0 },
    });
    close = () => service.close();
    url = service.url;
    ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
    blazar = await RealBlazar.startOrSkip(program ?? '', service.url, 4);
  });

  afterAll(async () => {
    await blazar?.stop();
    await ledger?.close();
    await close();
  });

  const estimate = async (project: string, lease: object): Promise<ShownEstimate> => {
    const answer = await fetch(`${url}/v1/projects/${project}/estimate`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...lease, user_id: 'alice' }),
    });
    expect(answer.status).toBe(200);
    return (await answer.json()) as ShownEstimate;
  };
  /** That what is recorded is what was foreseen: exactly, or at most that. */
  const expectCharged = async (project: string, charges: readonly ShownCharge[]) => {
    const recorded = await balancesOf(ledger, project);
    for (const { account, kind, amount, taken, precision } of charges) {
      const balance = recorded.get(account) ?? 0n;
      if (kind === 'held') {
        expect(String(balance)).toBe(String(BigInt(taken) + BigInt(amount)));
      } else if (precision === 'exact') {
        expect(formatUnitHours(balance)).toBe(amount);
      } else {
        expect(precision).toBe('at-most');
        expect(balance).toBeLessThanOrEqual(parseUnitHours(amount) ?? 0n);
      }
    }
    expect(charges.length).toBeGreaterThan(0);
  };

  it.each(WISHES)('is true for $what', async ({ what, minutes, reservations }) => {
    if (blazar === undefined) {
      return;
    }
    const first = Math.floor(Date.now() / DAY) * DAY;
    const at = (days: number, more = 0) => date(first + days * DAY + more * 60_000);
    day += 15;
    const project = what.replaceAll(' ', '-');
    for (const [from, until, amount] of [
      [0, day + 12, '200'],
      [day + 12, day + 400, '300'],
    ] as const) {
      await giveBudget(ledger, { projectId: project, amount, from: at(from), until: at(until) });
    }
    const lease = {
      name: what,
      start_date: at(day, 9 * 60),
      end_date: at(day, 9 * 60 + minutes),
      reservations,
    };
    const before = JSON.stringify([...(await balancesOf(ledger, project))], String);
    const estimated = await estimate(project, lease);
    expect(JSON.stringify([...(await balancesOf(ledger, project))], String)).toBe(before);
    const asked = await blazar.ask('POST', '/v1/leases', `${project}/alice`, lease);
    expect(asked.lease !== undefined, asked.text).toBe(estimated.allowed);
    if (estimated.allowed) {
      await expectCharged(project, estimated.charges);
      return;
    }
    expect(asked.text).toContain(estimated.message ?? '?');
    expect(estimated.suggestions.length, estimated.searched ?? '').toBeGreaterThan(0);
    for (const { lease: suggested, charges, change } of estimated.suggestions) {
      const granted = await blazar.ask('POST', '/v1/leases', `${project}/alice`, suggested);
      expect(granted.lease, `${change}: ${granted.text}`).toBeDefined();
      await expectCharged(project, charges);
      await blazar.ask('DELETE', `/v1/leases/${granted.lease?.id}`, `${project}/alice`);
    }
    process.stderr.write(`${what}: ${estimated.suggestions.map(({ text }) => text).join(' ')}\n`);
  });

  it('takes the date "now" as Blazar does', async () => {
    if (blazar === undefined) {
      return;
    }
    const project = 'now';
    await giveBudget(ledger, { projectId: project, amount: '100', from: '2026-01-01', until: '2040-01-01' });
    const lease = {
      ...{ name: 'now', start_date: 'now', end_date: date(Date.now() + 2 * DAY) },
      reservations: [instances(2)],
    };
    const minuteNow = () => BigInt(Math.floor(Date.now() / 60_000));
    const before = minuteNow();
    const estimated = await estimate(project, lease);
    const asked = await blazar.ask('POST', '/v1/leases', `${project}/alice`, lease);
    const begun = minuteNow() - before;
    expect(asked.lease).toBeDefined();
    const minute = (parseUnitHours('0.6') ?? 0n) / 60n;
    const [usage] = estimated.charges;
    const charged = (await balancesOf(ledger, project)).get(usage?.account ?? '') ?? 0n;
    // Minutes may have begun between the two.
    const foreseen = parseUnitHours(usage?.amount ?? '') ?? 0n;
    expect(foreseen - charged).toBeLessThanOrEqual(begun * minute + MICROSECONDS_PER_SECOND);
    expect(foreseen - charged).toBeGreaterThanOrEqual(0n);
  });
});

function date(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ');
}
