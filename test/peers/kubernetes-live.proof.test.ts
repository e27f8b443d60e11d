/** A service that follows a real cluster: what kubectl changes is in force, and nothing passes while the cluster is away. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { type Service, startService } from '../../src/server/service.ts';
import { projectFile } from '../support/files.ts';
import { creating } from '../support/kubernetes-service.ts';
import { recordingLogger } from '../support/logger.ts';
import { clusterOfFile } from './cluster-of-file.ts';

const { cluster, here, closing } = clusterOfFile();

let service: Service | undefined;
const logger = recordingLogger();
closing.push(async () => {
  signal('SIGCONT');
  await service?.close();
});

const SOON = { timeout: 120_000, interval: 50 };
const SETTLED = { timeout: 120_000, interval: 100 };
const GROUP = 'scheduling.blazar-enforcement';
const RBAC = 'rbac.authorization.k8s.io';
const DEFINITION = readFileSync(projectFile('etc/kubernetes/custom-resource-definition.yaml'), 'utf8');

const allowing = (...disk: readonly string[]) => ({
  allowed: { schedulerNames: [], nodeSelectors: { disk } },
});
const policy = (name: string, spec: object) => ({
  ...{ apiVersion: `${GROUP}/v1alpha1`, kind: 'SchedulingPolicy', metadata: { name } },
  spec,
});
const role = (name: string) => ({
  ...{ apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name } },
  rules: [{ apiGroups: [GROUP], resources: ['schedulingpolicies'], resourceNames: [name], verbs: ['use'] }],
});
const binding = (name: string) => ({
  ...{ apiVersion: `${RBAC}/v1`, kind: 'ClusterRoleBinding', metadata: { name } },
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name },
  subjects: [{ kind: 'Group', name: 'system:serviceaccounts:shop', apiGroup: RBAC }],
});

/** Stops, continues or ends the API server. */
function signal(name: NodeJS.Signals): void {
  if (cluster !== undefined) {
    try {
      process.kill(Number(readFileSync(join(cluster.folder, 'kube-apiserver.pid'), 'utf8')), name);
    } catch {
      // It has ended.
    }
  }
}

/** As an API server would ask. */
async function allows(
  disk: string,
  serviceAccountName = 'default',
  seconds = 30,
): Promise<boolean | undefined> {
  const answer = await fetch(`${service?.url}/kubernetes/admission?timeout=${seconds}s`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(creating({ serviceAccountName, nodeSelector: { disk } })),
  });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { response: { allowed: boolean } }).response.allowed;
}

async function ready(): Promise<Record<string, unknown>> {
  const answer = await fetch(`${service?.url}/readyz`);
  return { httpStatus: answer.status, ...((await answer.json()) as object) };
}

async function kubectl(...args: readonly string[]): Promise<void> {
  const { status, stderr } = await here().kubectl(args);
  expect(stderr).not.toContain('rror');
  expect(status).toBe(0);
}

const patch = (name: string, spec: object) =>
  kubectl('patch', 'schedpol', name, '--type=merge', '-p', JSON.stringify({ spec }));

const conf = join(cluster?.folder ?? '', 'policy-service.conf');
function configure(changes: Readonly<Record<string, string>> = {}): void {
  const options = {
    ...{ source: 'cluster', kubeconfig: join(here().folder, 'admin.conf'), cluster_stale_after: '20' },
    ...changes,
  };
  const lines = Object.entries(options).map(([name, value]) => `${name} = ${value}`);
  writeFileSync(conf, ['[service]', 'port = 0', '[kubernetes]', ...lines].join('\n'));
}

describe.skipIf(cluster === undefined)('a service beside a real API server', () => {
  beforeAll(async () => {
    if (cluster !== undefined) {
      configure();
      service = await startService({ environment: {}, configFiles: [conf] }, { logger });
    }
  });

  it('waits for the CustomResourceDefinition, refuses until it is there, and says so once', async () => {
    await vi.waitFor(
      async () =>
        expect(await ready()).toMatchObject({
          ...{ httpStatus: 503, status: 'policies not known' },
          problems: [expect.stringContaining('CustomResourceDefinition')],
        }),
      SOON,
    );
    expect(await allows('ssd')).toBe(false);
    const { status, stderr } = await here().kubectl(['apply', '-f', '-'], { stdin: DEFINITION });
    expect({ status, stderr }).toMatchObject({ status: 0 });
    await vi.waitFor(async () => expect(await ready()).toMatchObject({ httpStatus: 200 }), SOON);
    expect(logger.lines.filter(({ message }) => message.includes('CustomResourceDefinition'))).toHaveLength(
      1,
    );
    expect(await allows('ssd')).toBe(false);
  });

  it('enforces what kubectl applies, and the last good form of what is invalid', async () => {
    await here().apply([policy('disks', allowing('ssd')), role('disks'), binding('disks')]);
    await vi.waitFor(async () => expect(await allows('ssd')).toBe(true), SOON);
    expect(await allows('hdd')).toBe(false);
    await patch('disks', allowing('hdd'));
    const began = performance.now();
    await vi.waitFor(async () => expect(await allows('hdd')).toBe(true), SOON);
    process.stdout.write(`a patch was in force after ${Math.round(performance.now() - began)} ms\n`);
    expect(await allows('ssd')).toBe(false);
    await patch('disks', { allowed: { colour: ['red'] } });
    await vi.waitFor(
      () =>
        expect(logger.lines.filter(({ fields }) => fields.policy === 'disks')).toMatchObject([
          { level: 'warn', fields: { generation: 3, enforced_generation: 2 } },
        ]),
      SOON,
    );
    expect([await allows('hdd'), await allows('ssd')]).toEqual([true, false]);
    await kubectl('label', 'schedpol', 'disks', 'a=b');
    await patch('disks', { allowed: { colour: null } });
    await vi.waitFor(() => expect(logger.lines.at(-1)?.message).toContain('valid again'), SOON);
    await kubectl('delete', 'schedpol', 'disks');
    await vi.waitFor(async () => expect(await allows('hdd')).toBe(false), SOON);
    await here().apply([policy('disks', allowing('ssd'))]);
    await vi.waitFor(async () => expect(await allows('ssd')).toBe(true), SOON);
  });

  it('goes on after a reload while it follows, and refuses one that names a cluster that is away', async () => {
    configure({ merge_strategy: 'first' });
    const asked = Array.from({ length: 50 }, () => allows('ssd'));
    expect(await service?.reload()).toBe(true);
    expect(await Promise.all(asked)).toEqual(asked.map(() => true));
    expect(await allows('ssd')).toBe(true);
    const away = join(here().folder, 'away.conf');
    const admin = readFileSync(join(here().folder, 'admin.conf'), 'utf8');
    writeFileSync(away, admin.replace(/https:\/\/127\.0\.0\.1:\d+/, 'https://127.0.0.1:1'));
    configure({ kubeconfig: away });
    expect(await service?.reload()).toBe(false);
    expect(await allows('ssd')).toBe(true);
    configure();
    expect(await service?.reload()).toBe(true);
    expect(await ready()).toMatchObject({ httpStatus: 200, generation: 3 });
  });

  it('lets nothing pass while the API server is frozen, and is back by itself', async () => {
    expect(await allows('ssd')).toBe(true);
    signal('SIGSTOP');
    const answers: [at: number, hdd: boolean | undefined, other: boolean | undefined, ready: unknown][] = [];
    const began = performance.now();
    const isOver = () => answers.some(([, , , status]) => status === 503);
    const least = 40_000;
    const most = 240_000;
    while (performance.now() - began < (isOver() ? least : most)) {
      const [hdd, other, { httpStatus }] = await Promise.all([
        allows('hdd', 'default', 5),
        allows('ssd', 'other', 5),
        ready(),
      ]);
      answers.push([Math.round((performance.now() - began) / 1000), hdd, other, httpStatus]);
      await new Promise((later) => setTimeout(later, 500));
    }
    // An account that was not asked about is not known, and what no policy allows stays refused.
    expect(answers.filter(([, hdd, other]) => hdd !== false || other !== false)).toEqual([]);
    const stale = answers.find(([, , , status]) => status === 503);
    process.stdout.write(`frozen: stale after ${stale?.[0]} s\n`);
    expect(stale).toBeDefined();
    expect(await allows('ssd')).toBe(false);
    expect(await ready()).toMatchObject({ status: 'policies not known', policies: { state: 'stale' } });
    signal('SIGCONT');
    await vi.waitFor(async () => expect(await ready()).toMatchObject({ httpStatus: 200 }), SETTLED);
    await vi.waitFor(async () => expect(await allows('ssd')).toBe(true), SETTLED);
    expect(await allows('hdd')).toBe(false);
  });

  it('lets nothing pass while the API server is gone', async () => {
    signal('SIGKILL');
    await vi.waitFor(
      async () => expect(await ready()).toMatchObject({ policies: { state: 'behind' }, httpStatus: 200 }),
      { timeout: 120_000, interval: 20 },
    );
    const answers: unknown[] = [];
    await vi.waitFor(async () => {
      answers.push(await allows('hdd', 'default', 5), await allows('ssd', 'another', 5));
      expect(await ready()).toMatchObject({ httpStatus: 503 });
    }, SETTLED);
    expect(answers.every((allowed) => allowed === false)).toBe(true);
    expect(await allows('ssd')).toBe(false);
    await service?.close();
    service = await startService({ environment: {}, configFiles: [conf] }, { logger });
    expect(await ready()).toMatchObject({ httpStatus: 503, policies: { state: 'starting' } });
    expect(await allows('ssd')).toBe(false);
  });
});
