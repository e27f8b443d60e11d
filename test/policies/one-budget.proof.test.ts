/** Leases of Blazar and launches of SkyPilot on one ledger, through several processes. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { listLeases } from '../../src/ledger/reports/reports.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { readCountedAt } from '../../src/skypilot/charging/counted-clusters.ts';
import { type ServiceProcess, SOON, startServices } from '../support/ledger-processes.ts';
import { DIALECTS, giveBudget, ledgerAt, NO_WAIT, newLedgers, openedLedger } from '../support/ledgers.ts';
import { postJson } from '../support/post-json.ts';
import { envelope } from '../support/skypilot.ts';
import { SkypilotApiDouble } from '../support/skypilot-api-server.ts';
import { hours, openLab } from './charging.ts';

const newLedgerOn = newLedgers();
const POLICIES = 'admin_policies = UsageBudgetPolicy, GpuQuotaPolicy';

/** Two services as processes of their own, with the filter and the policies, and their ledger. */
async function laboratory(
  budget: string,
  options = 'gpu_quota_per_user = A100:100000',
  dialect: (typeof DIALECTS)[number] = 'postgresql',
) {
  const connection = await newLedgerOn(dialect);
  const api = await SkypilotApiDouble.start({ now: () => Date.now() / 1000 });
  const ledger = await openedLedger(connection, { now: () => new Date().toISOString() });
  await giveBudget(ledger, { projectId: 'ml', amount: budget, from: '2020-01-01', until: '2200-01-01' });
  const services = (await startServices(2, {
    connection,
    enabled: 'UsageBudgetFilter',
    service: 'decision_store = none',
    sections: `[skypilot]\n${POLICIES}\napi_server = ${api.url}\napi_server_interval = 5\n${options}\n`,
  })) as [ServiceProcess, ServiceProcess];
  // Quotas let nothing start before.
  await vi.waitFor(
    async () =>
      expect(await ledger.read('read', () => readCountedAt(ledger), NO_WAIT)).toHaveProperty('size', 2),
    SOON,
  );
  return { api, ledger, services };
}

/** `undefined` = the service is gone without an answer. */
async function launch(service: ServiceProcess, cluster: string, gpus: number, user = '0a1b2c3d') {
  const request = envelope({
    task: `resources: {accelerators: A100:${gpus}}\n`,
    skypilot_config: 'active_workspace: ml\n',
    user: `id: ${user}\nname: lin\n`,
    request_options: { cluster_name: cluster, idle_minutes_to_autostop: null, down: false, dryrun: false },
  });
  try {
    const answer = await postJson(`${service.url}/skypilot/admin-policy`, request);
    return { status: answer.status, message: await answer.text() };
  } catch {
    return undefined;
  }
}

/** Nodes for a day. */
function lease(service: ServiceProcess, nodes: number) {
  const start = Date.now() + 60_000;
  return service.ask('check-create', {
    context: { user_id: 'alice', project_id: 'ml' },
    lease: {
      name: `nodes-${nodes}`,
      start_date: new Date(start).toISOString(),
      end_date: new Date(start + 86_400_000).toISOString(),
      reservations: [
        {
          resource_type: 'physical:host',
          min: nodes,
          max: nodes,
          hypervisor_properties: '',
          resource_properties: '',
        },
      ],
    },
  });
}

async function taken(ledger: Ledger): Promise<number> {
  const [budget] = await listBudgets(ledger, 'ml', NO_WAIT);
  return hours(budget?.taken ?? 0n);
}

const statuses = (answers: readonly ({ readonly status: number } | undefined)[]) =>
  answers.map((answer) => answer?.status).sort();

for (const dialect of DIALECTS) {
  it(`one budget pays for leases and launches, and refuses what exceeds the sum, on ${dialect}`, async () => {
    const { ledger, services } = await laboratory('100', undefined, dialect);
    const [one, other] = services;
    expect(await lease(one, 2)).toMatchObject({ status: 204 });
    expect(await launch(other, 'train', 2)).toMatchObject({ status: 200 });
    expect(await taken(ledger)).toBeCloseTo(96, 0);
    expect(await launch(one, 'more', 1)).toMatchObject({
      status: 400,
      message: expect.stringMatching(/the workspace ml has 3\.99\d* GPU-hours left/),
    });
    expect(await lease(other, 1)).toMatchObject({ status: 403, message: expect.stringMatching(/has 3\.99/) });
    const leases = await listLeases(ledger, { limit: 10 }, NO_WAIT);
    expect(leases.filter(({ projectId }) => projectId === 'ml')).toHaveLength(2);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  });

  it(`of leases and launches at once, only so many pass as the budget pays for, on ${dialect}`, async () => {
    const { ledger, services } = await laboratory('100', undefined, dialect);
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, index) => {
        const service = services[index % 2 === 0 ? 0 : 1];
        return index % 3 === 0 ? lease(service, 1) : launch(service, `train-${index}`, 1);
      }),
    );
    expect(answers.filter((answer) => answer !== undefined && answer.status < 300)).toHaveLength(4);
    expect(statuses(answers).filter((status) => (status ?? 500) >= 500)).toEqual([]);
    expect(await taken(ledger)).toBeCloseTo(96, 0);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  });
}

it('one launch that client and server ask about at two services at once is charged once', async () => {
  const { ledger, services } = await laboratory('25', 'gpu_quota_per_user = A100:1');
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) => launch(services[index % 2 === 0 ? 0 : 1], 'train', 1)),
  );
  expect(statuses(answers)).toEqual(Array(8).fill(200));
  expect(await taken(ledger)).toBeCloseTo(24, 1);
  expect(await listLeases(ledger, { limit: 10 }, NO_WAIT)).toHaveLength(2);
  expect(await launch(services[0], 'more', 1)).toMatchObject({ status: 400 });
  expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
});

it('of launches at once that each take the whole quota, exactly one passes', async () => {
  const { ledger, services } = await laboratory('1000000', 'gpu_quota_per_user = A100:8');
  for (let round = 0; round < 5; round += 1) {
    const user = `abcd${round}`;
    const answers = await Promise.all(
      services.flatMap((service, index) => [
        launch(service, `train-${round}-${index}-a`, 8, user),
        launch(service, `train-${round}-${index}-b`, 8, user),
      ]),
    );
    expect(statuses(answers)).toEqual([200, 400, 400, 400]);
  }
  // A launch that the quota refuses takes nothing of the budget.
  expect(await taken(ledger)).toBeCloseTo(5 * 8 * 24, 0);
  expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
});

it('a process that is killed in the midst of launches leaves no half of a charge, and each answer is charged', async () => {
  const { ledger, services } = await laboratory('1000000');
  const [doomed, other] = services;
  const asked = Array.from({ length: 240 }, (_, index) =>
    launch(index % 2 === 0 ? doomed : other, `train-${index}`, 1),
  );
  await Promise.race(asked);
  await doomed.kill();
  const answers = await Promise.all(asked);
  const allowed = answers.flatMap((answer, index) => (answer?.status === 200 ? [`ml/train-${index}`] : []));
  expect(answers.filter((answer) => answer === undefined).length).toBeGreaterThan(0);
  const charged = async (scheme: string) =>
    (await listLeases(ledger, { limit: 1000 }, NO_WAIT))
      .flatMap(({ leaseId }) => (leaseId?.startsWith(`${scheme}:`) ? [leaseId.slice(scheme.length + 1)] : []))
      .sort();
  expect(await charged('skypilot')).toEqual(expect.arrayContaining(allowed));
  // Budget and quota are charged in one transaction.
  await vi.waitFor(
    async () => expect(await charged('skypilot')).toEqual(await charged('skypilot-gpus')),
    SOON,
  );
  expect(await taken(ledger)).toBeCloseTo((await charged('skypilot')).length * 24, 0);
  expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
});

it('of two replicas one asks SkyPilot, and the other one goes on when it is gone', async () => {
  const lab = await openLab({ connection: await newLedgerOn('postgresql'), budget: '100' });
  const another = await ledgerAt(lab.connection);
  onTestFinished(() => another.close());
  const follow = async (by: Ledger, holder: string, every: number) =>
    (await lab.poll(0, { by, holder, every })).round.kind;
  lab.api.pending = 1;
  const both = await Promise.all([follow(lab.ledger, 'one', 0), follow(another, 'two', 0)]);
  expect(both.sort()).toEqual(['done', 'held']);
  expect(await follow(another, 'two', 60)).toBe('early');
  expect(await follow(another, 'two', 0)).toBe('done');
});

it.each([
  ['ahead', 7200],
  ['behind', -7200],
])(
  'a replica whose clock is %s by two hours charges no launch twice and releases none that is on its way',
  async (_, skew) => {
    const connection = await newLedgerOn('postgresql');
    const lab = await openLab({ connection, budget: '100', options: { usage_budget_grace: 1800 } });
    const skewed = await openLab({ connection });
    skewed.pass(skew);
    expect(await skewed.ask()).toMatchObject({ allowed: true });
    lab.api.launch({ name: 'train', workspace: 'ml', accelerators: { A100: 1 } });
    await lab.poll();
    expect(await lab.ask()).toMatchObject({ allowed: true });
    lab.pass(3600);
    lab.api.down('train');
    await lab.poll(3600 * 3);
    expect(await lab.taken()).toBe(1);
    expect((await lab.leases()).filter(({ state }) => state === 'open')).toEqual([]);
    await lab.verify();
  },
);
