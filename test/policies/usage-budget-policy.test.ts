import { describe, expect, it } from 'vitest';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import { demandOfHardware } from '../../src/skypilot/charging/cluster-request.ts';
import { ALLOWED, REJECTED, rejectedWith, UNCHANGED } from '../support/decisions.ts';
import { projectFile } from '../support/files.ts';
import { breakLedger, giveBudget, mendLedger, NO_WAIT, runSql } from '../support/ledgers.ts';
import { FAILED } from '../support/skypilot.ts';
import { hours, type Lab, type LabSetup, type LaunchSetup, openLab } from './charging.ts';

const A100 = { A100: 1 };

/** Whether a launch is allowed, and what the budget has been charged then. A policy that fails fails the test. */
async function charged(lab: Lab, launch?: LaunchSetup): Promise<[allowed: boolean, taken: number]> {
  const { allowed, failed } = await lab.ask(launch);
  expect(failed).toBe(false);
  return [allowed, await lab.taken()];
}

describe('a launch', () => {
  it('is charged to the budget of its workspace for a day ahead, as a lease of the ledger', async () => {
    const lab = await openLab({ budget: '100' });
    expect(await lab.ask({ gpus: 'A100:2' })).toMatchObject(UNCHANGED);
    expect(await lab.taken()).toBe(48);
    expect(await lab.leases()).toMatchObject([
      { leaseId: 'skypilot:ml/train', projectId: 'ml', userId: 'a1b2c3d4', name: 'train', state: 'open' },
    ]);
    await lab.verify();
  });

  it('that does not fit is rejected with figures, and takes nothing', async () => {
    const lab = await openLab({ budget: '100' });
    const { allowed, failed, message } = await lab.ask({ gpus: 'A100:8' });
    expect({ allowed, failed, message }).toEqual({
      allowed: false,
      failed: false,
      message:
        'The launch would cost 192 GPU-hours; the workspace ml has 100 GPU-hours left, of a budget that is valid until 2028-01-01T00:00:00Z.',
    });
    expect(await lab.taken()).toBe(0);
    expect(await lab.leases()).toEqual([]);
  });

  it('is charged once, however often and under whatever name it is asked for', async () => {
    const lab = await openLab({ budget: '30' });
    for (const name of ['validate', 'optimize', 'launch', 'launch', 'validate']) {
      expect(await lab.ask({ name })).toMatchObject(ALLOWED);
      lab.pass(30);
    }
    expect(await lab.taken()).toBe(24);
    expect(await lab.ask({ cluster: 'other' })).toMatchObject(REJECTED);
  });

  it('of more on the same cluster is charged for the most of both', async () => {
    const lab = await openLab({ budget: '100' });
    await lab.ask({ gpus: 'A100:1' });
    expect(await charged(lab, { gpus: 'A100:4' })).toEqual([true, 96]);
    expect(await charged(lab, { gpus: 'A100:1' })).toEqual([true, 96]);
    expect(await charged(lab, { gpus: 'A100:8' })).toEqual([false, 96]);
  });

  it.each([
    ['on the client side', { atClientSide: true }],
    ['as a dry run', { dryrun: true }],
    ['by validate', { name: 'validate' }],
    ['by optimize', { name: 'optimize' }],
    ['by exec', { name: 'exec' }],
  ])('records nothing %s', async (_, launch) => {
    const lab = await openLab({ budget: '100' });
    expect(await lab.ask(launch)).toMatchObject(ALLOWED);
    expect(await lab.leases()).toEqual([]);
  });

  it('records nothing where policies are only tried', async () => {
    const lab = await openLab({ budget: '100', recordsLaunches: false });
    expect(await lab.ask()).toMatchObject(ALLOWED);
    expect(await lab.ask({ gpus: 'A100:8' })).toMatchObject(REJECTED);
    expect(await lab.leases()).toEqual([]);
  });

  it('fails closed while the ledger is away, and passes when it is back', async () => {
    const lab = await openLab({ budget: '100' });
    breakLedger(lab.connection);
    expect(await lab.ask()).toMatchObject({ allowed: false, failed: true, message: FAILED });
    mendLedger(lab.connection);
    expect(await lab.ask()).toMatchObject(ALLOWED);
  });

  it('is held no longer than an autostop that waits for nothing lets it be up', async () => {
    const lab = await openLab({ budget: '100' });
    const autostop = '{idle_minutes: 90, wait_for: none}';
    const task = `resources:\n  accelerators: A100:1\n  autostop: ${autostop}\n`;
    expect(await charged(lab, { task })).toEqual([true, 2]);
    lab.pass(60);
    expect(await charged(lab, { task })).toEqual([true, 2]);
    // The second one would keep the cluster of the first up.
    expect(await lab.ask({ gpus: 'A100:1' })).toMatchObject(ALLOWED);
    expect(await lab.taken()).toBeGreaterThanOrEqual(24);
    await lab.verify();
    const small = await openLab({ budget: '3' });
    expect(await small.ask({ task })).toMatchObject(ALLOWED);
    expect(await charged(small, { gpus: 'A100:1' })).toEqual([false, 2]);
  });

  it.each([
    ['resources:\n  accelerators: A100:1\n  autostop: {idle_minutes: 90, wait_for: none, hook: sleep 1d}\n'],
    [
      'resources:\n  accelerators: A100:1\n  autostop: {idle_minutes: 90, wait_for: none}\nconfig: {hooks: [{run: sleep 1d}]}\n',
    ],
  ])('is held for its whole time if a hook may keep it up', async (task) => {
    const lab = await openLab({ budget: '100' });
    expect(await charged(lab, { task })).toEqual([true, 24]);
  });
});

describe('who pays', () => {
  it('is refused without a budget, unless none is required', async () => {
    const lab = await openLab();
    expect(await lab.ask()).toMatchObject(rejectedWith('The workspace ml has no budget.'));
    const free = await openLab({ options: { usage_budget_required: false } });
    expect(await free.ask()).toMatchObject(ALLOWED);
  });

  it('is the project of the workspace by the configuration', async () => {
    const options = { usage_budget_projects: { vision: 'ml' } };
    const lab = await openLab({ budget: '100', options });
    expect(await charged(lab, { workspace: 'vision' })).toEqual([true, 24]);
    expect(await lab.ask({ workspace: 'ml', cluster: 'two' })).toMatchObject({
      message: 'The workspace "ml" has no project that pays for it.',
    });
    expect(await lab.ask({ workspace: '__proto__', cluster: 'two' })).toMatchObject(REJECTED);
  });

  it('is not known to validate, which does not show a workspace that the client names', async () => {
    const lab = await openLab({ budget: '100' });
    const config = 'kubernetes: {provision_timeout: 600}\n';
    expect(await lab.ask({ name: 'validate', config })).toMatchObject(ALLOWED);
    expect(await lab.ask({ name: 'validate', gpus: 'A100:8' })).toMatchObject(REJECTED);
    expect(await lab.ask({ config })).toMatchObject(rejectedWith('The workspace default has no budget.'));
  });

  it('is in doubt where the task names another workspace', async () => {
    const lab = await openLab({ budget: '100' });
    const task = (name: string) => `resources: {accelerators: A100:1}\nconfig: {active_workspace: ${name}}\n`;
    expect(await lab.ask({ task: task('bio') })).toMatchObject(
      rejectedWith('active_workspace of the task: expected ml, where it is launched.'),
    );
    expect(await lab.ask({ task: task('bio'), name: 'validate' })).toMatchObject(ALLOWED);
    expect(await lab.ask({ task: task('ml') })).toMatchObject(ALLOWED);
  });

  it('is not asked for what costs nothing', async () => {
    const lab = await openLab();
    expect(await lab.ask({ task: 'run: hostname\n' })).toMatchObject(ALLOWED);
  });

  it.each(['jobs.launch', 'serve.up', 'serve.update', 'jobs.pool_apply'])(
    'is nobody for %s, unless the operator says so',
    async (name) => {
      const lab = await openLab({ budget: '100' });
      const refused = await lab.ask({ name, cluster: null });
      expect(refused).toMatchObject(REJECTED);
      expect(await lab.ask({ name, cluster: null, task: 'run: hostname\n' })).toMatchObject(ALLOWED);
      const checking = await openLab({ budget: '100', options: { usage_budget_managed: 'check' } });
      expect(await checking.ask({ name, cluster: null })).toMatchObject(ALLOWED);
      expect(await checking.ask({ name, cluster: null, gpus: 'A100:8' })).toMatchObject(REJECTED);
      expect(await checking.leases()).toEqual([]);
    },
  );

  it('needs room for every worker of a pool, and for every replica of a service, also those in reserve', async () => {
    const lab = await openLab({ budget: '72', options: { usage_budget_managed: 'check' } });
    const task = (service: string) => `resources: {accelerators: A100:1}\nservice: {${service}}\n`;
    const ask = (service: string) => lab.ask({ name: 'serve.up', cluster: null, task: task(service) });
    const up = (policy: string) => ask(`replica_policy: {min_replicas: 1, ${policy}}`);
    expect(await ask('pool: {workers: 3}')).toMatchObject(ALLOWED);
    expect(await ask('pool: {workers: 4}')).toMatchObject(REJECTED);
    expect(await ask('pool: {min_workers: 0, max_workers: 4}')).toMatchObject(REJECTED);
    expect(await up('max_replicas: 3')).toMatchObject(ALLOWED);
    expect(await up('max_replicas: 3, num_overprovision: 1')).toMatchObject(REJECTED);
    expect(await up('max_replicas: 1, dynamic_ondemand_fallback: true')).toMatchObject(ALLOWED);
    expect(await up('max_replicas: 2, dynamic_ondemand_fallback: true')).toMatchObject(REJECTED);
    expect(await up('max_replicas: 1.5')).toMatchObject(REJECTED);
  });

  it('is unknown for a launch without a name', async () => {
    const lab = await openLab({ budget: '100' });
    expect(await lab.ask({ cluster: null })).toMatchObject(REJECTED);
  });

  it('is unknown for a name that SkyPilot cannot show: its workspace would be in doubt', async () => {
    const lab = await openLab({ budget: '100' });
    expect(await lab.ask({ cluster: 'other/train' })).toMatchObject(
      rejectedWith('The name of a cluster cannot contain a slash.'),
    );
    expect((await lab.poll(7200)).round).toMatchObject({ doubts: [] });
  });
});

describe('what SkyPilot shows', () => {
  it('settles a launch: charged from when it was up until it was stopped', async () => {
    const lab = await openLab({ budget: '100' });
    await lab.ask({ gpus: 'A100:2' });
    lab.pass(600);
    lab.api.launch({ name: 'train', workspace: 'ml', accelerators: { A100: 2 } });
    await lab.poll();
    expect(await lab.taken()).toBe(2 * (24 - 600 / 3600));
    lab.pass(3600);
    lab.api.stop('train');
    const { changes } = await lab.poll(40);
    // The launch was asked for within the grace, and may be on its way.
    expect(changes).toMatchObject([{ settlement: { outcome: 'ended' } }]);
    expect(await lab.taken()).toBe(2);
    await lab.verify();
  });

  it('gives back a launch that never came, after the grace, and charges it if it comes later', async () => {
    const lab = await openLab({ budget: '100' });
    await lab.ask();
    lab.api.launch({ name: 'other', workspace: 'ml' });
    await lab.poll(1799);
    expect(await lab.taken()).toBe(24);
    await lab.poll(1);
    expect(await lab.taken()).toBe(0);
    lab.api.launch({ name: 'train', workspace: 'ml', accelerators: A100 });
    await lab.poll(3600);
    expect(await lab.taken()).toBe(2);
    await lab.verify();
  });

  it('continues a cluster that outlives its charge, and reports what goes beyond the budget', async () => {
    const lab = await openLab({ budget: '30' });
    await lab.up();
    const { changes } = await lab.poll(25 * 3600);
    expect(changes).toMatchObject([{ settlement: { exceeded: undefined } }]);
    expect(await lab.taken()).toBe(26);
    const later = await lab.poll(5 * 3600);
    expect(later.changes).toMatchObject([
      { settlement: { exceeded: expect.stringContaining('GPU-hours left') } },
    ]);
    expect(await lab.taken()).toBe(31);
    await lab.verify();
  });

  it('charges a restart that no policy was asked about, and says so', async () => {
    const lab = await openLab({ budget: '100' });
    await lab.up();
    lab.pass(7200);
    lab.api.stop('train');
    await lab.poll();
    lab.pass(36_000);
    lab.api.start('train');
    const { changes } = await lab.poll(3600);
    expect(changes).toMatchObject([{ cluster: 'train', settlement: { outcome: 'recorded' } }]);
    expect(await lab.taken()).toBe(2 + 2);
    lab.api.down('train');
    await lab.poll(60);
    expect(await lab.taken()).toBe(3);
    await lab.verify();
  });

  describe('stopped', () => {
    const NOTHING = 'run: sleep 1d\n';

    async function stopped(budget: string) {
      const lab = await openLab({ budget });
      await lab.up(8);
      lab.pass(3600);
      lab.api.stop('train');
      await lab.poll();
      expect(await lab.taken()).toBe(8);
      await lab.poll(7 * 86_400);
      return lab;
    }

    it('starts with the hardware that it had, whatever the launch asks for', async () => {
      const lab = await stopped('250');
      expect(await charged(lab, { task: NOTHING })).toEqual([true, 8 + 8 * 24]);
      lab.pass(60);
      expect(await charged(lab, { task: NOTHING })).toEqual([true, 8 + 8 * 24]);
      lab.api.start('train');
      await lab.poll();
      lab.pass(3600);
      lab.api.down('train');
      await lab.poll();
      expect(await lab.taken()).toBe(16);
      await lab.verify();
    });

    it('is refused if that does not fit, and the reason says why', async () => {
      const lab = await stopped('100');
      for (const name of ['validate', 'launch']) {
        expect(await lab.ask({ name, task: NOTHING })).toMatchObject(
          rejectedWith(
            expect.stringMatching(
              /cost 192 GPU-hours.* SkyPilot starts a stopped cluster with the hardware.* try again in a minute/,
            ),
          ),
        );
      }
      expect(await lab.taken()).toBe(8);
    });

    it('is charged for it again if a launch with an early autostop or a failed one came before', async () => {
      const lab = await stopped('250');
      const early = 'resources: {autostop: {idle_minutes: 5, wait_for: none}}\n';
      expect(await lab.ask({ task: early })).toMatchObject(ALLOWED);
      expect(await lab.taken()).toBeCloseTo(8 + 8 * (35 / 60), 5);
      expect(await charged(lab, { task: NOTHING })).toEqual([true, 8 + 8 * 24]);
      await lab.poll(1800);
      expect(await lab.taken()).toBe(8);
      expect(await charged(lab, { task: NOTHING })).toEqual([true, 8 + 8 * 24]);
      await lab.verify();
    });

    it.each([
      ['down', (lab: Lab) => lab.api.down('train')],
      ['lost', (lab: Lab) => lab.api.forget()],
    ])('is forgotten when it is %s', async (_, end) => {
      const lab = await stopped('250');
      end(lab);
      const { changes, round } = await lab.poll();
      expect({ changes, round }).toMatchObject({ changes: [], round: { doubts: [] } });
      expect(await charged(lab, { task: NOTHING })).toEqual([true, 8]);
      await lab.verify();
    });

    it('stays known while an answer is in doubt', async () => {
      const lab = await stopped('100');
      lab.api.forget();
      lab.api.launch({ name: '', workspace: 'ml' });
      await lab.poll();
      expect(await lab.ask({ task: NOTHING })).toMatchObject(REJECTED);
    });
  });

  it('charges the owner of a cluster, not the one who had another of this name before', async () => {
    const lab = await openLab({ budget: '100' });
    await lab.up();
    lab.pass(3600);
    lab.api.down('train');
    await lab.poll();
    lab.pass(60);
    lab.api.launch({ name: 'train', workspace: 'ml', user: 'ffff0000', accelerators: A100 });
    expect((await lab.poll(60)).changes).toMatchObject([
      { settlement: { outcome: 'recorded', userId: 'ffff0000' } },
    ]);
    expect(await lab.leases()).toMatchObject([{ userId: 'ffff0000', state: 'open' }]);
    await lab.verify();
  });

  describe('of two users', () => {
    /** The user `a1b2c3d4` has a cluster that has been up for an hour. */
    async function ofAnother(options?: LabSetup['options']): Promise<Lab> {
      const lab = await openLab({ budget: '300', ...(options === undefined ? {} : { options }) });
      for (const userId of ['a1b2c3d4', 'ffff0000']) {
        await giveBudget(lab.ledger, { projectId: 'ml', userId, amount: '30' });
      }
      await lab.up();
      lab.pass(3600);
      return lab;
    }
    const takenBy = async (lab: Lab) =>
      Object.fromEntries(
        (await listBudgets(lab.ledger, 'ml', NO_WAIT)).map(({ userId, taken }) => [userId, hours(taken)]),
      );

    it('leaves a cluster that is up with its owner, as SkyPilot does, whoever launches on it', async () => {
      const lab = await ofAnother();
      await lab.poll();
      expect(await lab.ask({ user: 'ffff0000' })).toMatchObject(ALLOWED);
      lab.api.launch({ name: 'train', workspace: 'ml', user: 'ffff0000', accelerators: A100 });
      await lab.poll(3600);
      lab.api.down('train');
      await lab.poll();
      expect(await takenBy(lab)).toEqual({ null: 2, a1b2c3d4: 2, ffff0000: 0 });
      await lab.verify();
    });

    it('still asks whether the launch fits the budget of its user', async () => {
      const lab = await ofAnother();
      await giveBudget(lab.ledger, { projectId: 'ml', userId: 'ffff0000', amount: '0.1' });
      expect(await lab.ask({ user: 'ffff0000' })).toMatchObject(REJECTED);
    });

    it('leaves it there also if the launch asks for more, and charges what was used', async () => {
      const lab = await ofAnother();
      lab.api.stop('train');
      lab.pass(60);
      for (const userId of ['a1b2c3d4', 'ffff0000']) {
        await giveBudget(lab.ledger, { projectId: 'ml', userId, amount: '60' });
      }
      expect(await lab.ask({ user: 'ffff0000', gpus: 'A100:2' })).toMatchObject(ALLOWED);
      await lab.poll(1800);
      expect(await takenBy(lab)).toEqual({ null: 1, a1b2c3d4: 1, ffff0000: 0 });
      await lab.verify();
    });

    it('charges each for their own cluster of a name, whether or not a policy was asked', async () => {
      for (const isAsked of [true, false]) {
        const lab = await ofAnother();
        lab.api.down('train');
        lab.pass(600);
        if (isAsked) {
          expect(await lab.ask({ user: 'ffff0000' })).toMatchObject(ALLOWED);
        }
        lab.api.launch({ name: 'train', workspace: 'ml', user: 'ffff0000', accelerators: A100 });
        const { changes } = await lab.poll(1800);
        expect(changes).toMatchObject([
          { settlement: { outcome: 'ended', userId: 'a1b2c3d4' } },
          { settlement: { outcome: 'recorded', userId: 'ffff0000' } },
        ]);
        lab.api.down('train');
        await lab.poll();
        await lab.poll();
        expect(await takenBy(lab)).toEqual({ null: 1.5, a1b2c3d4: 1, ffff0000: 0.5 });
        await lab.verify();
      }
    });

    it('charges a cluster whose owner SkyPilot does not show with the next one of its name', async () => {
      const lab = await ofAnother();
      for (const user of ['', 'ffff0000']) {
        lab.api.launch({ name: 'wild', workspace: 'ml', user, accelerators: A100 });
        lab.pass(3600);
        lab.api.down('wild');
      }
      const { changes } = await lab.poll();
      expect(changes.filter(({ error }) => error !== undefined)).toEqual([]);
      expect(await takenBy(lab)).toMatchObject({ ffff0000: 2 });
    });

    it('charges clusters of a name that no policy was asked about to the owner of each', async () => {
      const lab = await ofAnother();
      for (const user of ['ffff0000', 'a1b2c3d4', 'ffff0000']) {
        lab.api.launch({ name: 'wild', workspace: 'ml', user, accelerators: A100 });
        lab.pass(3600);
        lab.api.down('wild');
      }
      lab.api.down('train');
      await lab.poll();
      await lab.poll();
      expect(await takenBy(lab)).toEqual({ null: 7, a1b2c3d4: 5, ffff0000: 2 });
      await lab.verify();
    });
  });

  it('charges runs that began and ended between two rounds, each at its own hardware', async () => {
    const lab = await openLab({ budget: '100' });
    await lab.ask({ gpus: 'A100:4' });
    lab.api.launch({ name: 'train', workspace: 'ml', accelerators: { A100: 4 } });
    lab.pass(3600);
    lab.api.down('train');
    lab.api.launch({ name: 'train', workspace: 'ml', accelerators: { A100: 1 } });
    lab.pass(3600);
    lab.api.down('train');
    await lab.poll(60);
    expect(await lab.taken()).toBe(5);
  });

  it('charges a cluster that nobody announced, and that was resized', async () => {
    const lab = await openLab({ budget: '100' });
    const cluster = { name: 'wild', workspace: 'ml', accelerators: { A100: 1 } };
    lab.api.launch(cluster);
    expect((await lab.poll(3600)).changes).toMatchObject([{ settlement: { outcome: 'recorded' } }]);
    expect(await lab.taken()).toBe(2);
    Object.assign(cluster.accelerators, { A100: 3 });
    await lab.poll();
    expect(await lab.taken()).toBe(1 + 3);
    lab.pass(3600);
    lab.api.down('wild');
    await lab.poll();
    expect(await lab.taken()).toBe(1 + 3);
    await lab.verify();
  });

  it('is the same cluster as in the ledger of an earlier version, from its start', async () => {
    const lab = await openLab({ budget: '100' });
    await lab.ask();
    lab.api.launch({ name: 'train', workspace: 'ml', accelerators: A100, cloud: 'gcp' });
    await lab.poll();
    const [before] = await lab.leases();
    const digest = demandOfHardware(
      {
        nodes: 1,
        cloud: 'gcp',
        region: 'us-east-1',
        instanceType: null,
        accelerators: { name: 'A100', count: 1 },
        isSpot: false,
      },
      false,
    );
    runSql(lab.connection, `UPDATE leases SET demand = '${digest}'`);
    await lab.poll(3600);
    expect(await lab.leases()).toEqual([before]);
    lab.api.stop('train');
    await lab.poll();
    expect(await lab.taken()).toBe(1);
    expect(await charged(lab, { task: 'run: sleep 1d\n' })).toEqual([true, 25]);
    await lab.verify();
  });

  it('tells that autostop was switched off, once', async () => {
    const lab = await openLab({ budget: '100' });
    await lab.ask();
    lab.api.launch({ name: 'train', workspace: 'ml', accelerators: A100, autostop: 10 });
    await lab.poll();
    lab.api.autostop('train', -1);
    expect((await lab.poll()).changes).toMatchObject([{ settlement: { hasLostAutostop: true } }]);
    expect((await lab.poll()).changes).toEqual([]);
  });
});

describe('while SkyPilot', () => {
  it.each([
    ['is unwell', 503, ''],
    ['says forbidden', 403, ''],
    ['answers nonsense', 200, '[]'],
    ['fails the request', 500, undefined],
  ])('%s, nothing is given back and launches are charged on', async (_, status, body) => {
    const lab = await openLab({ budget: '100' });
    await lab.ask();
    lab.pass(7200);
    if (body === undefined) {
      lab.api.outcome = 'FAILED';
    } else {
      lab.api.disturb = (response) => response.writeHead(status).end(body).writableEnded;
    }
    const error = await lab.poll().catch((thrown: unknown) => String(thrown));
    expect(error).toMatch(/API server/);
    expect(error).not.toContain('secret');
    expect(await lab.taken()).toBe(24);
    expect(await charged(lab, { cluster: 'two' })).toEqual([true, 48]);
  });

  it('has forgotten a cluster that it has shown, its charge stays', async () => {
    const lab = await openLab({ budget: '100' });
    await lab.up();
    lab.api.forget();
    expect((await lab.poll(7200)).round).toMatchObject({ doubts: [expect.stringContaining('forgotten')] });
    expect(await lab.taken()).toBe(24);
  });

  it('hides the workspace from our account, the launch stays charged', async () => {
    const lab = await openLab({ budget: '100', api: { visible: ['default'] } });
    await lab.ask();
    expect((await lab.poll(7200)).round).toMatchObject({ doubts: [expect.stringContaining('does not see')] });
    expect(await lab.taken()).toBe(24);
  });

  it('wants a token, uses the older header and takes its time, it is understood', async () => {
    const lab = await openLab({ budget: '100', api: { token: 'sky_token', idHeader: 'X-Request-ID' } });
    lab.api.pending = 2;
    expect((await lab.poll()).round).toMatchObject({ kind: 'done', doubts: [] });
  });
});

const OPTIONS = {
  usage_budget_unit: 'USD',
  usage_budget_catalog: { aws: projectFile('examples/skypilot-catalog/aws.csv') },
};

describe('a launch with a catalog of prices', () => {
  it('is charged at the most expensive that SkyPilot may choose, and settled by what it became', async () => {
    const lab = await openLab({ budget: '100', options: OPTIONS });
    const task = 'resources:\n  infra: aws\n  accelerators: T4\n  cpus: 8+\n';
    expect(await lab.ask({ task })).toMatchObject(UNCHANGED);
    expect(await lab.taken()).toBeCloseTo(0.838 * 24, 9);
    lab.api.launch({ name: 'train', workspace: 'ml', accelerators: { T4: 1 }, instanceType: 'g4dn.2xlarge' });
    lab.pass(7200);
    lab.api.stop('train');
    await lab.poll(3600);
    expect(await lab.taken()).toBe(0.752 * 2);
    await lab.verify();
  });

  it('without accelerators costs something, and is refused with figures where it does not fit', async () => {
    const lab = await openLab({ budget: '2', options: OPTIONS });
    const task = 'resources: {infra: aws/us-east-1, instance_type: m6i.large}\n';
    expect(await lab.ask({ task })).toMatchObject(
      rejectedWith(
        expect.stringMatching(/^The launch would cost 2\.304 USD; the workspace ml has 2 USD left/),
      ),
    );
    expect(await lab.ask({ task: 'run: hostname\n' })).toMatchObject(
      rejectedWith(
        'The cost of the launch cannot be determined: name a cloud in infra, because SkyPilot may choose one that has no prices here.',
      ),
    );
    const config = 'active_workspace: ml\nallowed_clouds: [AWS, cloudflare]\n';
    expect(await lab.ask({ config, task: 'resources: {instance_type: m6i.2xlarge}\n' })).toMatchObject({
      message: expect.stringContaining('10.272 USD'),
    });
  });
});
