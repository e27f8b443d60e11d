/** The service follows a Blazar that is broken, hostile or something else. */
import type { ServerResponse } from 'node:http';
import { Registry } from 'prom-client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { requireConfiguration } from '../../../src/enforcement/configuration.ts';
import { UsageEnforcement } from '../../../src/enforcement/enforcement.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import type { LeaseRow } from '../../../src/ledger/storage/schema.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { Follower } from '../../../src/server/followers/blazar-follower.ts';
import { Instruments } from '../../../src/server/metrics/instruments.ts';
import { FollowerMetrics } from '../../../src/server/metrics/reconciliation-metrics.ts';
import { eventIn } from '../../enforcement/notifications/cloud-events.ts';
import { drips, endsEarly, hugely, sends } from '../../support/faulty-answers.ts';
import { valuesOnly } from '../../support/files.ts';
import { giveBudget, ledgerAt, NO_WAIT, newLedger } from '../../support/ledgers.ts';
import { recordingLogger } from '../../support/logger.ts';
import { metric } from '../../support/metric.ts';
import { policyServer } from '../../support/policy-server.ts';
import { createPhysicalHost } from '../../support/requests.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';
import { recorded } from './recorded-blazar.ts';

type Answers = Record<string, (response: ServerResponse) => void>;

const ROUNDS = 'blazar_enforcement_blazar_rounds_total';
const LISTED = JSON.stringify(recorded('leases').body);
const LEASES = (JSON.parse(LISTED) as { leases: Record<string, unknown>[] }).leases;
const listing = (leases: readonly unknown[], headers = {}) => sends(JSON.stringify({ leases }), 200, headers);
const changed = (changes: Record<string, unknown>) =>
  listing([{ ...LEASES[0], ...changes }, ...LEASES.slice(1)]);

const endlessly = (response: ServerResponse) => drips(response, '{"leases": [');
const cutOff = (response: ServerResponse) => endsEarly(response, LISTED.slice(0, 2000));

/** A ledger that has the recorded leases, and the service's follower of a Blazar with these answers. */
async function blazar({ rate = 1, timeout = 30, notifications = {} } = {}) {
  const answers: Answers = {};
  const blazar = await policyServer((request, response) => {
    const path = request.url ?? '';
    const name = path.split('/').at(-1) ?? '';
    (answers[path] ?? sends(JSON.stringify(recorded(name === 'os-hosts' ? 'hosts' : name).body)))(response);
  });
  const keystone = await ValidatingKeystone.start();
  keystone.tokens.set('gAAAAABour-own', 'service');
  const connection = await newLedger();
  const values = {
    ledger: { connection },
    notifications,
    keystone: { ...keystone.account, region_name: 'RegionOne', timeout },
    blazar: { endpoint: `${blazar.url}/v1`, reconcile_interval: 1, reconcile_grace: 0 },
    enforcement: {
      enabled_filters: ['UsageBudgetFilter', 'MaxLeaseDurationFilter'],
      usage_budget_required: false,
      usage_budget_rates: { 'physical:host': rate },
    },
  };
  const configuration = await requireConfiguration(valuesOnly(values), SECTIONS);
  const logger = recordingLogger();
  const enforcement = await UsageEnforcement.fromConfiguration(configuration, { logger });
  const ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
  await giveBudget(ledger, {
    projectId: 'climate',
    amount: '100000',
    from: '2026-01-01',
    until: '2040-01-01',
  });
  const registry = new Registry();
  const metrics = new FollowerMetrics(new Instruments(registry));
  let current = configuration;
  const followed = () => ({ configuration: current, enforcement, enter() {}, leave() {} });
  const written = (query: Parameters<typeof rows>[0]) =>
    ledger.transact(
      'reconcile',
      function* () {
        return yield* rows(query);
      },
      NO_WAIT,
    );
  vi.spyOn(Math, 'random').mockReturnValue(0);
  onTestFinished(async () => {
    await enforcement.close();
    await ledger.close();
  });
  /** Until the service has done one round. */
  const round = async () => {
    const { queries } = ledger.database;
    await written(queries.updateTable('follower').set({ followed_at: null }).compile());
    const follower = new Follower({ current: followed, metrics, logger });
    const before = metric(await registry.metrics(), ROUNDS);
    follower.start();
    while (metric(await registry.metrics(), ROUNDS) === before) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await follower.close();
  };
  const open = async () => {
    const query = ledger.database.queries.selectFrom('leases').selectAll().where('state', '=', 'open');
    return (await written(query.orderBy('id').compile())) as readonly LeaseRow[];
  };
  const outcome = async (name: string) => metric(await registry.metrics(), ROUNDS, { outcome: name });
  /** Follows every second, for so many rounds at least. */
  const follow = async (rounds: number) => {
    const follower = new Follower({ current: followed, metrics, logger });
    follower.start();
    onTestFinished(() => follower.close());
    await expect.poll(() => outcome('complete')).toBeGreaterThanOrEqual(rounds);
    return follower;
  };
  /** Follows every second, and then, after a reload, not any more. */
  const unfollow = async () => {
    const follower = await follow(1);
    const blazarOptions = { ...values.blazar, reconcile_interval: 0 };
    const changed = { ...values, blazar: blazarOptions };
    current = await requireConfiguration(valuesOnly(changed), SECTIONS);
    follower.start();
  };
  const overdue = async () => metric(await registry.metrics(), 'blazar_enforcement_blazar_overdue_leases');
  const asked = () => blazar.requests.length;
  return { answers, round, open, outcome, logger, enforcement, keystone, follow, unfollow, overdue, asked };
}

it('tells a webhook what a round has changed, once', async () => {
  const receiver = await policyServer({ status: 204 });
  const { round, enforcement } = await blazar({ notifications: { webhook_url: receiver.url } });
  enforcement.deliver();
  await round();
  await expect.poll(() => receiver.requests).toHaveLength(1);
  const event = eventIn(receiver.requests[0]?.body ?? '');
  expect(event.type).toBe('io.blazar-enforcement.ledger.corrected');
  expect(event.data).toMatchObject({ changed_by: 'blazar-enforcement', released: 0, corrected: 0 });
  expect(event.data.recorded).toBeGreaterThan(0);
  expect(event.data.leases).toHaveLength(Number(event.data.recorded));
  await round();
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(receiver.requests).toHaveLength(1);
});

it('warns once of leases that Blazar has not ended five minutes after their end, or not created within the grace', async () => {
  const { answers, follow, overdue, logger } = await blazar();
  const ago = (minutes: number) => new Date(Date.now() - 60_000 * minutes).toISOString().slice(0, 19);
  const held = (id: string, minutes: number, status: string) => {
    const [reservation] = (LEASES[0]?.reservations ?? []) as object[];
    return {
      ...LEASES[0],
      id,
      events: [],
      end_date: ago(minutes),
      reservations: [{ ...reservation, status }],
    };
  };
  const creating = (id: string, minutes: number) => ({
    ...held(id, -60, 'pending'),
    status: 'CREATING',
    created_at: ago(minutes),
  });
  answers['/v1/leases'] = listing([
    ...LEASES,
    held('is held', 6, 'active'),
    held('is ending', 4, 'active'),
    held('has ended', 6, 'deleted'),
    held('never started', 6, 'pending'),
    creating('is stuck', 11),
    creating('is being created', -1),
  ]);
  await follow(2);
  const { end_date: end } = held('is held', 6, 'active');
  expect(logger.lines.filter(({ level }) => level === 'warn')).toMatchObject([
    {
      message: 'Blazar has not ended this lease at its end: it stays in use',
      fields: { lease_id: 'is held', end: expect.stringContaining(end.slice(0, 13)) },
    },
    {
      message:
        'Blazar has begun to create this lease, and does not finish: nobody can use its hosts until its end',
      fields: { lease_id: 'is stuck' },
    },
  ]);
  expect(await overdue()).toBe(1);
});

describe('a Blazar or Keystone that does not answer as it should', () => {
  it.each<[string, Answers, 'failed' | 'doubtful', RegExp]>([
    ['with a page', { '/v1/leases': sends('<html>hello</html>') }, 'failed', /not a whole list/],
    ['with half of an answer', { '/v1/leases': cutOff }, 'failed', /leases/],
    ['with a list of nothing', { '/v1/leases': listing([null]) }, 'failed', /leases\.0/],
    [
      'with two lists',
      { '/v1/leases': sends(`{"leases": [], ${LISTED.slice(1)}`) },
      'failed',
      /not a whole list/,
    ],
    ['with a date that is none', { '/v1/leases': changed({ end_date: 'soon' }) }, 'failed', /end_date/],
    ['without an end', { '/v1/leases': endlessly }, 'failed', /5 s|time|second/],
    ['with 100 MiB', { '/v1/leases': hugely }, 'failed', /max size/],
    ['with an error in the second answer', { '/v1/os-hosts/allocations': sends('', 500) }, 'failed', /500/],
    [
      'with an empty list',
      { '/v1/leases': listing([]), '/v1/os-hosts/allocations': sends('{"allocations": []}') },
      'doubtful',
      /no lease at all/,
    ],
    [
      'an hour later',
      {
        '/v1/leases': listing(LEASES.slice(0, 2), { date: new Date(Date.now() + 3_600_000).toUTCString() }),
        '/v1/os-hosts/allocations': sends('{"allocations": []}'),
      },
      'doubtful',
      /the clock of Blazar differs/,
    ],
  ])(
    'that answers %s: nothing is released, it is said, and leases are judged',
    async (_, wrong, kind, why) => {
      const { answers, round, open, outcome, logger, enforcement } = await blazar(
        wrong['/v1/leases'] === endlessly ? { timeout: 5 } : {},
      );
      await round();
      expect(await outcome('complete')).toBe(1);
      const before = await open();
      expect(before).toHaveLength(3);
      Object.assign(answers, wrong);
      const rounds = round();
      expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject({
        allowed: expect.any(Boolean),
      });
      await rounds;
      expect(await outcome(kind)).toBe(1);
      const said = logger.lines.filter(({ level }) => level === 'error' || level === 'warn');
      expect(said.map(({ fields }) => String(fields.error ?? fields.doubts))).toEqual([
        expect.stringMatching(why),
      ]);
      expect((await open()).slice(0, 3)).toEqual(before);
      for (const path of Object.keys(answers)) {
        delete answers[path];
      }
      await round();
      expect(await outcome('complete')).toBe(2);
      expect((await open()).map(({ claims }) => claims)).toEqual(before.map(({ claims }) => claims));
    },
  );

  it('says it when a lease cannot be compared, and compares the others', async () => {
    const { answers, round, open, outcome, logger } = await blazar({ rate: 1_000_000 });
    // It takes more than can be counted.
    answers['/v1/leases'] = changed({ end_date: '2033-01-01 00:00' });
    await round();
    expect(await outcome('complete')).toBe(1);
    expect((await open()).map(({ project_id }) => project_id)).toEqual(['climate', 'physics']);
    expect(logger.lines.filter(({ level }) => level === 'error')).toMatchObject([
      { message: expect.stringMatching(/could not be compared/), fields: { leases: 1 } },
    ]);
  });

  it('is not asked any more when reconcile_interval becomes 0', async () => {
    const { asked, unfollow } = await blazar();
    await unfollow();
    // A round may still have been under way.
    await new Promise((resolve) => setTimeout(resolve, 1200));
    const before = asked();
    await new Promise((resolve) => setTimeout(resolve, 2400));
    expect(before).toBeGreaterThan(0);
    expect(asked()).toBe(before);
  });

  it('goes on when Keystone is there again', async () => {
    const { round, open, outcome, logger, keystone } = await blazar();
    await round();
    const before = await open();
    await keystone.stop();
    // Its token is known: Blazar is asked with it.
    await round();
    expect(await open()).toEqual(before);
    await keystone.restart();
    await round();
    expect(await outcome('complete')).toBe(3);
    expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });
});
