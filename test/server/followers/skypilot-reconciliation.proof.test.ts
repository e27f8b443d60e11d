/** The rounds with SkyPilot over reloads, several services, and an API server that is broken, hostile or something else. */
import type { ServerResponse } from 'node:http';
import { Registry } from 'prom-client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { waitFor } from '../../../src/base/deadline.ts';
import type { DecisionRecord } from '../../../src/decisions/record.ts';
import { DecisionTable } from '../../../src/decisions/store/table.ts';
import {
  type Configuration,
  requireConfiguration,
  sectionOf,
} from '../../../src/enforcement/configuration.ts';
import { notificationsSection } from '../../../src/enforcement/notifications/options.ts';
import { ledgerSection } from '../../../src/ledger/options.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { SkypilotFollower } from '../../../src/server/followers/skypilot-follower.ts';
import { Instruments } from '../../../src/server/metrics/instruments.ts';
import { SkypilotMetrics } from '../../../src/server/metrics/reconciliation-metrics.ts';
import { PolicyChain } from '../../../src/skypilot/policies/policy-chain.ts';
import { skypilotSection } from '../../../src/skypilot/section.ts';
import { openLab } from '../../policies/charging.ts';
import { drips, hugely, sends } from '../../support/faulty-answers.ts';
import { valuesOnly } from '../../support/files.ts';
import { SOON, startServices } from '../../support/ledger-processes.ts';
import { DIALECTS, giveBudget, NO_WAIT, newLedgers, openedLedger } from '../../support/ledgers.ts';
import { metric } from '../../support/metric.ts';
import { SkypilotApiDouble } from '../../support/skypilot-api-server.ts';

const newLedgerOn = newLedgers();
const TOKEN = 'sky_secret_of_ours';
const PREFIX = 'blazar_enforcement_skypilot_';

/** A lab with one charged cluster, and a follower whose first round begins at once. */
async function world() {
  vi.spyOn(Math, 'random').mockReturnValue(0);
  const options = { api_server_token: TOKEN, api_server_timeout: 600, api_server_interval: 5 };
  const lab = await openLab({ budget: '100', api: { token: TOKEN }, options });
  const registry = new Registry();
  const metrics = new SkypilotMetrics(new Instruments(registry));
  const records: DecisionRecord[] = [];
  let held = 0;
  const generationOf = (configuration: Configuration, policies: PolicyChain) => ({
    number: 1,
    configuration,
    enforcement: { notifications: undefined },
    skypilot: { options: sectionOf(configuration, skypilotSection), policies },
    enter() {
      held += 1;
    },
    leave() {
      held -= 1;
    },
  });
  let current = generationOf(lab.configuration, lab.chain);
  const newFollower = () => {
    const follower = new SkypilotFollower({
      current: () => current,
      metrics,
      httpObserver: undefined,
      logger: lab.logger,
      record: async (record) => void records.push(record),
    });
    onTestFinished(() => follower.close());
    return follower;
  };
  const count = async (name: string, labels: Record<string, string> = {}) =>
    metric(await registry.metrics(), PREFIX + name, labels);
  const hasAge = async () => /^\w+_last_round_age_seconds \d/m.test(await registry.metrics());
  const total = () => count('rounds_total');
  /** As if the last round were long ago. */
  const forgetRound = () =>
    lab.ledger.transact(
      'reconcile',
      function* () {
        yield* rows(lab.ledger.database.queries.updateTable('follower').set({ followed_at: null }).compile());
      },
      NO_WAIT,
    );
  const round = async () => {
    await forgetRound();
    const follower = newFollower();
    const before = await total();
    follower.start();
    await expect.poll(total).toBe((before ?? 0) + 1);
    await follower.close();
  };
  /** Returns what has another configuration take over. */
  const prepare = async (changes: Readonly<Record<string, unknown>>) => {
    const values = {
      ledger: { connection: lab.connection },
      skypilot: {
        isolation: 'worker',
        admin_policies: ['UsageBudgetPolicy'],
        api_server: lab.api.url,
        ...options,
        ...changes,
      },
    };
    const sections = [skypilotSection, ledgerSection, notificationsSection];
    const configuration = await requireConfiguration(valuesOnly(values), sections);
    const clock = { now: () => new Date(lab.now() * 1000) };
    const chain = await PolicyChain.fromConfiguration(configuration, {
      logger: lab.logger,
      clock,
      recordsLaunches: true,
    });
    onTestFinished(() => chain.close());
    return () => {
      current = generationOf(configuration, chain);
    };
  };
  const reload = async (changes: Readonly<Record<string, unknown>>) => (await prepare(changes))();
  const asked = (api = lab.api) => api.asked.filter((path) => path === 'POST /cost_report').length;
  return {
    lab,
    count,
    hasAge,
    round,
    prepare,
    reload,
    newFollower,
    forgetRound,
    asked,
    records,
    heldNow: () => held,
  };
}

const endlessly = (response: ServerResponse) =>
  drips(response, '{"status": "SUCC', { 'x-skypilot-request-id': 'a' });

const result = (value: unknown) =>
  sends(JSON.stringify({ status: 'SUCCEEDED', return_value: JSON.stringify(value) }));

describe('an API server that does not answer as it should', () => {
  it.each<[string, (response: ServerResponse) => void, 'failed' | 'doubtful']>([
    ['with a page', sends('<html>log in</html>', 200, { 'content-type': 'text/html' }), 'failed'],
    ['without an end', endlessly, 'failed'],
    ['with 100 MiB', hugely, 'failed'],
    ['with the mapping of another version', result({ clusters: [] }), 'failed'],
    ['with records of another version', result([{ cluster: { id: 7 } }, null, 'one']), 'doubtful'],
  ])(
    '%s: nothing is given back, the token stays secret, and the next round is whole',
    async (_, wrong, kind) => {
      const { lab, count, round, reload } = await world();
      await lab.ask();
      lab.api.launch({ name: 'train', workspace: 'ml', accelerators: { A100: 1 } });
      await round();
      expect(await count('rounds_total', { outcome: 'complete' })).toBe(1);
      const before = await lab.leases();
      lab.api.disturb = (response, path) => {
        if (kind === 'failed' || path.startsWith('/api/get')) {
          wrong(response);
          return true;
        }
        return false;
      };
      if (wrong === endlessly) {
        await reload({ api_server_timeout: 1 });
      }
      await round();
      expect(await count('rounds_total', { outcome: kind })).toBe(1);
      expect(await lab.leases()).toEqual(before);
      expect(JSON.stringify(lab.logger.lines)).not.toContain(TOKEN);
      lab.api.disturb = undefined;
      if (wrong === endlessly) {
        await reload({});
      }
      await round();
      expect(await count('rounds_total', { outcome: 'complete' })).toBe(2);
      await lab.verify();
    },
  );
});

describe('the rounds over reloads', () => {
  it('are one after the other, however often the configuration is read again', async () => {
    const { lab, count, newFollower, asked, heldNow } = await world();
    const follower = newFollower();
    lab.api.pending = 3;
    for (let reloads = 0; reloads < 50; reloads += 1) {
      follower.start();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await expect.poll(() => count('rounds_total', { outcome: 'complete' })).toBe(1);
    await follower.close();
    expect(asked()).toBe(1);
    expect(heldNow()).toBe(0);
  });

  it('ask the API server of the next configuration, and the one before no more', async () => {
    const { lab, count, newFollower, prepare, forgetRound, asked } = await world();
    const next = await SkypilotApiDouble.start({ now: lab.now, token: TOKEN });
    // Before the first round: it takes long on a busy machine, and there is a round every five seconds.
    const change = await prepare({ api_server: next.url });
    const follower = newFollower();
    follower.start();
    await expect.poll(() => count('rounds_total', { outcome: 'complete' })).toBe(1);
    change();
    await forgetRound();
    follower.start();
    await expect.poll(() => count('rounds_total', { outcome: 'complete' })).toBe(2);
    expect([asked(), asked(next)]).toEqual([1, 1]);
  });

  it('end with the policy, also in the middle of a round, and begin again with it: nothing is lost', async () => {
    const { lab, count, hasAge, newFollower, prepare, reload, forgetRound, asked, heldNow, records } =
      await world();
    const change = await prepare({ admin_policies: ['RejectAllPolicy'] });
    const follower = newFollower();
    lab.api.launch({ name: 'wild', workspace: 'ml', accelerators: { A100: 1 } });
    lab.api.pending = 2;
    follower.start();
    await expect.poll(asked).toBe(1);
    change();
    follower.start();
    await expect.poll(heldNow).toBe(0);
    // The round that ran has ended with what it had begun with, and leaves no age behind.
    expect(await count('rounds_total', { outcome: 'complete' })).toBe(1);
    expect(await hasAge()).toBe(false);
    expect(records.map(({ lease_name }) => lease_name)).toEqual(['wild']);
    lab.pass(60);
    lab.api.down('wild');
    lab.api.launch({ name: 'later', workspace: 'ml', accelerators: { A100: 1 } });
    await reload({});
    await forgetRound();
    follower.start();
    await expect.poll(() => count('rounds_total', { outcome: 'complete' })).toBe(2);
    expect(await hasAge()).toBe(true);
    await follower.close();
    follower.start();
    expect(records.map(({ lease_name }) => lease_name)).toEqual(['wild', 'later']);
    expect(asked()).toBe(2);
    await lab.verify();
  });

  it('stop in the middle of a request, and the seat is free', async () => {
    const { lab, count, newFollower, round, heldNow } = await world();
    const follower = newFollower();
    lab.api.disturb = (response) => {
      endlessly(response);
      return true;
    };
    follower.start();
    await expect.poll(heldNow).toBe(1);
    await expect.poll(() => lab.api.asked.length).toBeGreaterThan(0);
    await follower.close();
    expect(heldNow()).toBe(0);
    lab.api.disturb = undefined;
    await round();
    expect(await count('rounds_total', { outcome: 'complete' })).toBe(1);
  });
});

it('go on when the ledger can be written again: a cluster is recorded once', async () => {
  const { lab, count, round, records } = await world();
  const { database } = lab.ledger;
  const run = (text: string) =>
    lab.ledger.transact(
      'reconcile',
      function* () {
        yield* rows({ sql: text, parameters: [] } as never);
      },
      NO_WAIT,
    );
  expect(database.dialect).toBe('sqlite');
  lab.api.launch({ name: 'wild', workspace: 'ml', accelerators: { A100: 1 } });
  await run(
    "create trigger readonly before insert on leases begin select raise(abort, 'attempt to write a readonly database'); end",
  );
  await round();
  expect(records).toEqual([]);
  expect(await lab.leases()).toEqual([]);
  await run('drop trigger readonly');
  await round();
  await round();
  expect(records.map(({ lease_name }) => lease_name)).toEqual(['wild']);
  expect(await count('changes_total', { kind: 'recorded' })).toBe(1);
});

it('two services record a cluster that got past the policies once, also after a restart', async () => {
  const recorded = async (dialect: (typeof DIALECTS)[number]) => {
    const connection = await newLedgerOn(dialect);
    const api = await SkypilotApiDouble.start({ now: () => Date.now() / 1000 });
    const ledger = await openedLedger(connection, { now: () => new Date().toISOString() });
    await giveBudget(ledger, { projectId: 'ml', amount: '100', from: '2020-01-01', until: '2200-01-01' });
    const sections = `[skypilot]\nadmin_policies = UsageBudgetPolicy, GpuQuotaPolicy\ngpu_quota_per_user = A100:4\napi_server = ${api.url}\napi_server_interval = 5\n`;
    const setup = { connection, enabled: 'MaxLeaseDurationFilter', service: '', sections };
    const before = await startServices(2, setup);
    api.launch({ name: 'wild', workspace: 'ml', user: 'eve', accelerators: { A100: 1 }, autostop: 10 });
    const table = new DecisionTable(ledger.database, 'test');
    const bypasses = async () => {
      const query = { operations: ['skypilot.bypass'], limit: 100, after: undefined } as const;
      const { items } = await table.search(query, waitFor(undefined));
      return items.map(
        ({ record }) => `${record.lease_name} ${record.filters.map(({ filter }) => filter).join(' ')}`,
      );
    };
    const once = ['wild UsageBudgetPolicy GpuQuotaPolicy'];
    await expect.poll(bypasses, SOON).toEqual(once);
    await Promise.all(before.map((service) => service.kill()));
    const asked = api.asked.length;
    await startServices(2, setup);
    await expect.poll(() => api.asked.length, SOON).toBeGreaterThan(asked + 4);
    expect(await bypasses()).toEqual(once);
    api.autostop('wild', -1);
    const twice = [...once, ...once];
    await expect.poll(bypasses, SOON).toEqual(twice);
  };
  // They wait for rounds most of the time.
  await Promise.all(DIALECTS.map(recorded));
});
