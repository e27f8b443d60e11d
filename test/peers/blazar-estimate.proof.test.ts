/**
 * Estimates beside a real Blazar: the verdict is that of the lease, or of its update, when it is asked for, what it takes is what is charged then,
 * and what is suggested instead of a refused one is granted.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatUnitHours, parseUnitHours } from '../../src/filter/claim.ts';
import { MICROSECONDS_PER_SECOND, UsageEnforcement } from '../../src/index.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { LeaseChange } from '../../src/server/estimate/changed-lease.ts';
import type { ShownCharge, ShownEstimate } from '../../src/server/estimate/estimate-lease.ts';
import { follow } from '../../src/server/followers/follow-blazar.ts';
import { valuesOnly } from '../support/files.ts';
import { balancesOf, giveBudget, ledgerAt, newLedgers } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { peerProgram } from '../support/peers.ts';
import { postJson } from '../support/post-json.ts';
import { startedService } from '../support/started-service.ts';
import { type BlazarLease, hostReservation, RealBlazar } from './blazar.ts';
import { headerKeystone } from './header-keystone.ts';

const program = peerProgram('BLAZAR_PEER');
const newLedger = newLedgers();
const DAY = 86_400_000;
const HOUR = 3_600_000;
/** Far from now, and each case apart: Blazar has hosts for all of them. */
let day = 20;

const instances = (amount: number) => ({
  resource_type: 'virtual:instance',
  amount,
  affinity: null,
  vcpus: 1,
  memory_mb: 1000,
  disk_gb: 1,
  resource_properties: '',
});
const hosts = (min: number, max: number) => ({ resource_type: 'physical:host', min, max });

/** A service with these filters too that judges a Blazar, for the tests of a `describe`. */
function estimating(...more: string[]) {
  let blazar: RealBlazar | undefined;
  let ledger: Ledger;
  let enforcement: UsageEnforcement;
  let service: Awaited<ReturnType<typeof startedService>>;
  beforeAll(async () => {
    const values = {
      ledger: { connection: await newLedger('sqlite') },
      enforcement: {
        enabled_filters: ['UsageBudgetFilter', 'MaxLeaseDurationFilter', 'MaxLeasesFilter', ...more],
        usage_budget_rates: { 'physical:host': 1, 'virtual:instance': 0.3 },
        max_lease_duration: 10 * 86_400,
        max_reservation_size: { 'physical:host': 3 },
        max_leases_per_project: 20,
      },
    };
    service = await startedService({ ...values, service: { port: 0 } });
    const sources = valuesOnly(values);
    enforcement = await UsageEnforcement.load(sources, { logger: recordingLogger() });
    ledger = await ledgerAt(values.ledger.connection, { now: () => new Date().toISOString() });
    blazar = await RealBlazar.startOrSkip(program ?? '', service.url, 4);
  });
  afterAll(async () => {
    await blazar?.stop();
    await enforcement?.close();
    await ledger?.close();
    await service?.close();
  });
  const balances = (project: string) => balancesOf(ledger, project);
  return {
    blazar: () => blazar,
    balances,
    give: (projectId: string, amount: string, from = '2026-01-01', until = '2040-01-01') =>
      giveBudget(ledger, { projectId, amount, from, until }),
    /** `path`: below that of the project. Changes no balance. */
    estimate: async (project: string, path: string, body: object) => {
      const before = await balances(project);
      const answer = await postJson(`${service.url}/v1/projects/${project}/${path}`, body);
      expect(await balances(project)).toEqual(before);
      return { status: answer.status, body: (await answer.json()) as ShownEstimate & { message: string } };
    },
    /** That the balance is what was foreseen: exactly, or at most that. */
    expectCharged: async (project: string, charges: readonly ShownCharge[]) => {
      const recorded = await balances(project);
      for (const { account, kind, amount, taken, precision } of charges) {
        const balance = recorded.get(account) ?? 0n;
        if (kind === 'held') {
          expect(String(balance)).toBe(String(BigInt(taken) + BigInt(amount)));
          continue;
        }
        const sign = amount.startsWith('-') ? -1n : 1n;
        const foreseen =
          (parseUnitHours(taken) ?? 0n) + sign * (parseUnitHours(amount.replace('-', '')) ?? 0n);
        if (precision === 'exact') {
          expect(formatUnitHours(balance), account).toBe(formatUnitHours(foreseen));
        } else {
          expect(balance, account).toBeLessThanOrEqual(foreseen);
        }
      }
      expect(charges.length).toBeGreaterThan(0);
    },
    /** Compares the ledger with Blazar, as the service does: what Blazar shows is what is charged. */
    round: async (of: RealBlazar) => {
      const keystone = headerKeystone(of.url);
      await follow({
        ledger,
        keystone,
        endpoint: undefined,
        region: undefined,
        claimants: enforcement.claimants,
        exemptProjects: [],
        grace: 3600,
        isDryRun: false,
        holder: 'a test',
        every: 0,
        who: 'follower',
        reason: null,
        signal: undefined,
        report: () => {},
      });
      await keystone.close();
    },
  };
}

const WISHES: readonly { what: string; minutes: number; reservations: object[] }[] = [
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
  const of = estimating();
  const estimate = async (project: string, lease: object) => {
    const { status, body } = await of.estimate(project, 'estimate', { ...lease, user_id: 'alice' });
    expect(status).toBe(200);
    return body;
  };

  it.each(WISHES)('is true for $what', async ({ what, minutes, reservations }) => {
    const blazar = of.blazar();
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
      await of.give(project, amount, at(from), at(until));
    }
    const lease = {
      name: what,
      start_date: at(day, 9 * 60),
      end_date: at(day, 9 * 60 + minutes),
      reservations,
    };
    const estimated = await estimate(project, lease);
    const asked = await blazar.ask('POST', '/v1/leases', `${project}/alice`, lease);
    expect(asked.lease !== undefined, asked.text).toBe(estimated.allowed);
    if (estimated.allowed) {
      await of.expectCharged(project, estimated.charges);
      return;
    }
    expect(asked.text).toContain(estimated.message ?? '?');
    expect(estimated.suggestions.length, estimated.searched ?? '').toBeGreaterThan(0);
    for (const { lease: suggested, charges, change } of estimated.suggestions) {
      const granted = await blazar.ask('POST', '/v1/leases', `${project}/alice`, suggested);
      expect(granted.lease, `${change}: ${granted.text}`).toBeDefined();
      await of.expectCharged(project, charges);
      await blazar.ask('DELETE', `/v1/leases/${granted.lease?.id}`, `${project}/alice`);
    }
    process.stderr.write(`${what}: ${estimated.suggestions.map(({ text }) => text).join(' ')}\n`);
  });

  it('takes the date "now" as Blazar does', async () => {
    const blazar = of.blazar();
    if (blazar === undefined) {
      return;
    }
    const project = 'now';
    await of.give(project, '100');
    const lease = {
      name: 'now',
      start_date: 'now',
      end_date: date(Date.now() + 2 * DAY),
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
    const charged = (await of.balances(project)).get(usage?.account ?? '') ?? 0n;
    // Minutes may have begun between the two.
    const foreseen = parseUnitHours(usage?.amount ?? '') ?? 0n;
    expect(foreseen - charged).toBeLessThanOrEqual(begun * minute + MICROSECONDS_PER_SECOND);
    expect(foreseen - charged).toBeGreaterThanOrEqual(0n);
  });
});

/** Of a lease of ten hours that begins at 9. In hours. */
interface Case {
  readonly what: string;
  readonly reservation: object;
  readonly start?: number;
  readonly end?: number;
  readonly reservations?: LeaseChange['reservations'];
  readonly change?: 'smaller-shorter';
}

const BEGUN = 'begun';
const USER_OF_BEGUN = `${BEGUN}/alice`;
const minute = () => Math.floor(Date.now() / 60_000);

const CASES: readonly Case[] = [
  { what: 'a day longer', reservation: hostReservation(1, 1), end: 24 },
  { what: 'shorter', reservation: hostReservation(2, 2), end: -4 },
  { what: 'later', reservation: hostReservation(1, 1), start: 30, end: 30 },
  { what: 'a later start', reservation: hostReservation(1, 1), start: 3 },
  { what: 'more hosts', reservation: hostReservation(1, 1), reservations: [hosts(3, 3)] },
  { what: 'fewer hosts', reservation: hostReservation(3, 3), reservations: [hosts(1, 1)] },
  { what: 'a range of hosts for longer', reservation: hostReservation(2, 3), end: 5 },
  { what: 'more hosts for longer', reservation: hostReservation(1, 2), end: 5, reservations: [hosts(2, 3)] },
  {
    what: 'more instances',
    reservation: instances(2),
    reservations: [{ resource_type: 'virtual:instance', amount: 5 }],
  },
  { what: 'too long', reservation: hostReservation(1, 1), end: 11 * 24 },
  { what: 'too dear', reservation: hostReservation(1, 2), end: 6 * 24 },
  {
    what: 'too many for too long',
    reservation: hostReservation(1, 1),
    end: 11 * 24,
    reservations: [hosts(1, 4)],
    change: 'smaller-shorter',
  },
];

describe.skipIf(program === undefined)('the estimate of a change beside a real Blazar', () => {
  const of = estimating('MaxReservationSizeFilter');
  const estimate = (project: string, id: string, change: object) =>
    of.estimate(project, `leases/${id}/estimate`, change);
  const sent = (
    { reservations: [one] }: BlazarLease,
    { reservations = [], ...dates }: Partial<LeaseChange>,
  ) => ({
    ...dates,
    ...(reservations.length > 0 && {
      reservations: reservations.map(({ resource_type: _, ...counts }) => ({ id: one?.id, ...counts })),
    }),
  });

  /** Begins before the other tests, which go on in its first minute. */
  let begun: { readonly lease: BlazarLease; readonly began: number } | undefined;
  beforeAll(async () => {
    const blazar = of.blazar();
    if (blazar === undefined) {
      return;
    }
    await of.give(BEGUN, '250');
    const { lease, text } = await blazar.ask('POST', '/v1/leases', USER_OF_BEGUN, {
      name: BEGUN,
      start_date: 'now',
      end_date: date(Date.now() + DAY),
      reservations: [hostReservation(1, 1)],
    });
    if (lease === undefined) {
      throw new Error(text);
    }
    begun = { lease, began: minute() };
  });

  it.each(CASES)('is true for a change of a lease: $what', async (one) => {
    const blazar = of.blazar();
    if (blazar === undefined) {
      return;
    }
    const { what, reservation, start, end, reservations, change: pair } = one;
    day += 15;
    const first = (Math.floor(Date.now() / DAY) + day) * DAY + 9 * HOUR;
    const project = what.replaceAll(' ', '-');
    await of.give(project, '250');
    const who = `${project}/alice`;
    const wanted = { start_date: date(first), end_date: date(first + 10 * HOUR) };
    const made = await blazar.ask('POST', '/v1/leases', who, {
      name: what,
      ...wanted,
      reservations: [reservation],
    });
    const lease = made.lease;
    if (lease === undefined) {
      throw new Error(made.text);
    }
    await of.round(blazar);
    const change = {
      ...(start !== undefined && { start_date: date(first + start * HOUR) }),
      ...(end !== undefined && { end_date: date(first + (10 + end) * HOUR) }),
      ...(reservations !== undefined && { reservations }),
    };
    const { status, body: estimated } = await estimate(project, lease.id, change);
    expect(status, estimated.message).toBe(200);
    const asked = await blazar.ask('PUT', `/v1/leases/${lease.id}`, who, sent(lease, change));
    expect(asked.lease !== undefined, asked.text).toBe(estimated.allowed);
    if (estimated.allowed) {
      await of.round(blazar);
      await of.expectCharged(project, estimated.charges);
      return;
    }
    expect(asked.text).toContain(estimated.message ?? '?');
    // Blazar has marked the lease as changed.
    await of.round(blazar);
    expect(estimated.suggestions.length, estimated.searched ?? '').toBeGreaterThan(0);
    expect(estimated.suggestions.map((one) => one.change)).toEqual(
      pair === undefined ? expect.not.arrayContaining(['smaller-shorter']) : [pair],
    );
    for (const { lease: suggested, change: how } of estimated.suggestions) {
      const again = await estimate(project, lease.id, suggested);
      expect(again.body.allowed, `${how}: ${again.body.message}`).toBe(true);
      const granted = await blazar.ask(
        'PUT',
        `/v1/leases/${lease.id}`,
        who,
        sent(lease, suggested as Partial<LeaseChange>),
      );
      expect(granted.lease, `${how}: ${granted.text}`).toBeDefined();
      await of.round(blazar);
      await of.expectCharged(project, again.body.charges);
    }
    process.stderr.write(`${what}: ${estimated.suggestions.map(({ text }) => text).join(' ')}\n`);
  });

  it('keeps to the dates that Blazar takes for a lease that has begun', async () => {
    const blazar = of.blazar();
    if (blazar === undefined || begun === undefined) {
      return;
    }
    const { lease, began } = begun;
    // Within the minute in which it begins, Blazar moves it.
    await expect.poll(minute, { timeout: 120_000, interval: 500 }).toBeGreaterThan(began);
    await blazar.tick();
    await of.round(blazar);
    for (const change of [
      { start_date: date(Date.now() + DAY / 2) },
      { end_date: date(Date.now() - DAY) },
      { start_date: date(Date.now() - DAY) },
    ]) {
      expect((await estimate(BEGUN, lease.id, change)).status).toBe(400);
      expect((await blazar.ask('PUT', `/v1/leases/${lease.id}`, USER_OF_BEGUN, change)).status).toBe(400);
    }
    const longer = { end_date: date(Date.now() + 2 * DAY) };
    const { body } = await estimate(BEGUN, lease.id, longer);
    expect(body.allowed).toBe(true);
    expect((await blazar.ask('PUT', `/v1/leases/${lease.id}`, USER_OF_BEGUN, longer)).status).toBe(200);
    await of.round(blazar);
    await of.expectCharged(BEGUN, body.charges);
  });
});

function date(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ');
}
