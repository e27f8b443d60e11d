/** A service of two workers beside a real cluster: one of them follows it, and both judge by what it has. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { creating } from '../support/kubernetes-service.ts';
import { childrenOf } from '../support/service-of-workers.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { granted, schedulingPolicy } from './policed-cluster.ts';
import {
  applyWithoutWebhooks,
  kubeconfigOfService,
  type ReplicaProcess,
  startReplica,
} from './served-cluster.ts';

const { cluster: started, here, closing } = clusterOfFile();

const SETTLED = { timeout: 90_000, interval: 200 };
const VALIDATION = '/kubernetes/validation/token?timeout=5s';
/** Policies, and four kinds of roles and bindings. */
const KINDS = 5;
/** Each request comes over a connection of its own, and connections are given in turns. */
const ENOUGH = 6;
const onDisk = (disk: string) => ({ allowed: { nodeSelectors: { disk: [disk] } } });

let replica: ReplicaProcess | undefined;
closing.push(() => {
  started?.thaw();
  return replica?.stop();
});

function service(): ReplicaProcess {
  if (replica === undefined) {
    throw new Error('there is no service');
  }
  return replica;
}

const workers = () => childrenOf(service().pid);

/** What the workers say of a pod with this disk. */
async function judged(disk: string): Promise<(boolean | undefined)[]> {
  const body = creating({ serviceAccountName: 'worker', nodeSelector: { disk } });
  const answers = await Promise.all(Array.from({ length: ENOUGH }, () => service().ask(VALIDATION, body)));
  return answers.map((answer) =>
    answer?.status === 200 ? (JSON.parse(answer.text).response.allowed as boolean) : undefined,
  );
}

const everybodySays = (disk: string, allowed: boolean) =>
  vi.waitFor(async () => expect(await judged(disk)).toEqual(Array(ENOUGH).fill(allowed)), SETTLED);

const isReady = () =>
  vi.waitFor(async () => expect(await service().ask('/readyz')).toMatchObject({ status: 200 }), SETTLED);

/** How many connections to the API server each worker has. */
function connections(): number[] {
  const [, port = '0'] =
    /https:\/\/127\.0\.0\.1:(\d+)/.exec(readFileSync(`${here().folder}/admin.conf`, 'utf8')) ?? [];
  const remote = `:${Number(port).toString(16).toUpperCase().padStart(4, '0')}`;
  const inodes = new Set(
    readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , to = '', state]) => to.endsWith(remote) && state === '01')
      .map((fields) => `socket:[${fields[9]}]`),
  );
  return workers().map((pid) => {
    const open = readdirSync(`/proc/${pid}/fd`).map((name) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${name}`);
      } catch {
        return '';
      }
    });
    return open.filter((target) => inodes.has(target)).length;
  });
}

describe.skipIf(started === undefined)('a service of two workers, beside a real cluster', () => {
  beforeAll(async () => {
    if (started === undefined) {
      return;
    }
    await applyWithoutWebhooks(started);
    await started.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
      schedulingPolicy('disks', onDisk('ssd')),
    ]);
    const kubeconfig = await kubeconfigOfService(started);
    await started.apply(granted('shop', 'worker', 'disks'));
    const options = { kubeconfig, cluster_stale_after: '10' };
    replica = await startReplica(started, 'both', options, { workers: '2' });
    await isReady();
  });

  it('has one watch of each kind', () => {
    expect(connections().toSorted()).toEqual([0, expect.any(Number)]);
    expect(Math.max(...connections())).toBeGreaterThanOrEqual(KINDS);
  });

  it('judges by a policy, and by its change, in both workers', async () => {
    await everybodySays('ssd', true);
    await everybodySays('tape', false);
    await here().apply([schedulingPolicy('disks', onDisk('tape'))]);
    await everybodySays('tape', true);
    await everybodySays('ssd', false);
  });

  it('goes on when the worker that follows is killed, and the other one takes over', async () => {
    const [first = 0] = workers();
    process.kill(first, 'SIGKILL');
    // What was known is in force meanwhile: the one that is left answers, and so does the one that comes.
    await vi.waitFor(() => {
      expect(workers()).toHaveLength(2);
      expect(workers()).not.toContain(first);
    }, SETTLED);
    expect((await judged('ssd')).filter((allowed) => allowed === true)).toEqual([]);
    await isReady();
    await here().apply([schedulingPolicy('disks', onDisk('ssd'))]);
    await everybodySays('ssd', true);
    await everybodySays('tape', false);
    await vi.waitFor(() => expect(connections().filter((open) => open >= KINDS)).toHaveLength(1), SETTLED);
  });

  it('takes a right away in both workers, also from an account that has just used it', async () => {
    await everybodySays('ssd', true);
    const removed = await here().kubectl(['-n', 'shop', 'delete', 'rolebinding', 'use-disks']);
    expect(removed.stderr).toBe('');
    await everybodySays('ssd', false);
    await here().apply(granted('shop', 'worker', 'disks'));
    await everybodySays('ssd', true);
  });

  it('admits nothing in any worker when the cluster is silent for too long, and says which are not ready', async () => {
    here().freeze();
    await vi.waitFor(async () => {
      const answer = await service().ask('/readyz');
      expect(answer?.status).toBe(503);
      expect(JSON.parse(answer?.text ?? '{}').problems).toEqual(
        expect.arrayContaining([expect.stringMatching(/^worker \d: /)]),
      );
      expect((await judged('ssd')).filter((allowed) => allowed === true)).toEqual([]);
    }, SETTLED);
    here().thaw();
    await isReady();
    await everybodySays('ssd', true);
  });
});
