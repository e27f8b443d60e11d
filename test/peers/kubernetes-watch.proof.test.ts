/** Following a real API server through everything that happens to one. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import {
  type ApiClient,
  ApiError,
  type ApiObject,
  type ApiRequest,
} from '../../src/kubernetes/cluster/api/contract.ts';
import { listObjects } from '../../src/kubernetes/cluster/api/list.ts';
import { ListWatch, type ListWatchTimes } from '../../src/kubernetes/cluster/api/list-watch.ts';
import { projectFile } from '../support/files.ts';
import { accountSubject, binding, schedulingPolicy, serviceAccount } from './cluster-objects.ts';
import { type Cluster, startCluster } from './kubernetes.ts';

const cluster = startCluster();

const POLICIES = '/apis/scheduling.blazar-enforcement/v1alpha1/schedulingpolicies';
const MAPS = '/api/v1/namespaces/default/configmaps';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (line: string) => process.stdout.write(`    ${line}\n`);
const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(2)} s`;

async function until(what: string, holds: () => boolean, ms = 300_000): Promise<void> {
  const end = performance.now() + ms;
  while (!holds()) {
    if (performance.now() > end) {
      throw new Error(`not in time: ${what}`);
    }
    await pause(5);
  }
}

/** Follows one kind, and remembers what it was told, and how often. */
class Follower {
  readonly versions = new Map<string, string>();
  readonly restarts: string[] = [];
  requests = 0;
  replacements = 0;
  /** Changes that were told twice. */
  repeated = 0;
  readonly watch: ListWatch;
  readonly #client: ApiClient;
  readonly #path: string;

  constructor(client: ApiClient, path: string, times: Partial<ListWatchTimes> = {}) {
    this.#client = client;
    this.#path = path;
    this.watch = new ListWatch({
      client: this.#counted(),
      path,
      times,
      observer: { restarted: (reason) => this.restarts.push(reason) },
      listener: {
        replaced: (objects) => {
          this.replacements += 1;
          this.versions.clear();
          for (const object of objects) {
            this.#keep(object);
          }
        },
        changed: (object) => {
          this.repeated += this.#keep(object) ? 0 : 1;
        },
        removed: ({ metadata }) => {
          this.repeated += this.versions.delete(metadata.name) ? 0 : 1;
        },
      },
    });
    this.watch.start();
  }

  /** Whether it knows what a fresh list says. */
  async isRight(): Promise<void> {
    const { objects } = await listObjects(this.#client, this.#path);
    const there = new Map(objects.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
    await until(
      'the last change was heard',
      () => [...there].every(([name, version]) => this.versions.get(name) === version),
      300_000,
    );
    expect(this.versions).toEqual(there);
    expect(this.repeated).toBe(0);
    expect(this.watch.following).toMatchObject({ hasList: true, problem: undefined });
  }

  heard(object: unknown): Promise<void> {
    const { name, resourceVersion } = (object as ApiObject).metadata;
    return until(`${name} was heard`, () => Number(this.versions.get(name)) >= Number(resourceVersion));
  }

  #keep({ metadata }: ApiObject): boolean {
    const { name, resourceVersion = '' } = metadata;
    const isNew = this.versions.get(name) !== resourceVersion;
    this.versions.set(name, resourceVersion);
    return isNew;
  }

  #counted(): ApiClient {
    const client = this.#client;
    const count = () => {
      this.requests += 1;
    };
    return {
      server: client.server,
      namespace: client.namespace,
      serverTime: client.serverTime,
      close: () => client.close(),
      request: (request: ApiRequest) => {
        count();
        return client.request(request);
      },
      watch: (...args) => {
        count();
        return client.watch(...args);
      },
    };
  }
}

describe.skipIf(cluster === undefined)('following a real API server', () => {
  const real = cluster as Cluster;
  let client: ApiClient;
  let policies: Follower;
  const closing: (() => Promise<void>)[] = [];

  const put = (name: string) =>
    client.request({
      method: 'POST',
      path: POLICIES,
      body: schedulingPolicy(name, { allowed: { schedulerNames: ['s0'] } }),
    });

  beforeAll(() => {
    client = createApiClient({ kubeconfig: join(real.folder, 'admin.conf') });
    policies = new Follower(client, POLICIES);
    closing.push(() => policies.watch.close());
  });

  afterAll(async () => {
    for (const close of closing.reverse()) {
      await close();
    }
    await client?.close();
    cluster?.stop();
  });

  it('waits for the definition of the kind', async () => {
    await until('it has tried', () => policies.watch.following.problem !== undefined);
    expect(policies.watch.following.problem).toContain('does not know schedulingpolicies');
    const answer = await real.kubectl([
      'apply',
      '-f',
      projectFile('etc/kubernetes/custom-resource-definition.yaml'),
    ]);
    expect(answer.stderr).toBe('');
    const applied = performance.now();
    await until('there is a list', () => policies.watch.following.hasList);
    say(`followed ${seconds(applied)} after the definition was applied`);
    expect(policies.watch.following.problem).toBeUndefined();
  });

  it('reads 1,200 objects in pages', async () => {
    const names = Array.from({ length: 1_200 }, (_, index) => `map-${index}`);
    const create = async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        await client.request({ method: 'POST', path: MAPS, body: { metadata: { name } } });
      }
    };
    await Promise.all(Array.from({ length: 16 }, create));
    const started = performance.now();
    const maps = new Follower(client, MAPS);
    closing.push(() => maps.watch.close());
    await until('there is a list', () => maps.watch.following.hasList);
    say(`1,200 objects listed in ${seconds(started)}`);
    await until('there is a watch', () => maps.requests === 4);
    await maps.isRight();
    expect(maps.versions.size).toBe(1_200);
    await maps.watch.close();
  });

  it('goes on where its token is replaced and the old one refused', async () => {
    const names = ['first', 'second'];
    await real.apply([
      ...names.map((name) => serviceAccount(name, 'default')),
      binding(
        'followers',
        'cluster-admin',
        names.map((name) => accountSubject(name, 'default')),
      ),
    ]);
    const [one, other] = await Promise.all(
      names.map(async (name) => {
        const path = `/api/v1/namespaces/default/serviceaccounts/${name}/token`;
        const made = await client.request({ method: 'POST', path, body: { spec: {} } });
        return (made as { readonly status: { readonly token: string } }).status.token;
      }),
    );
    const file = join(real.folder, 'token');
    const kubeconfig = join(real.folder, 'follower.conf');
    const text = readFileSync(join(real.folder, 'admin.conf'), 'utf8');
    writeFileSync(kubeconfig, text.replace(/user: \{client.*\}\}\]/, 'user: {tokenFile: token}}]'));
    writeFileSync(file, String(one));
    const renewing = createApiClient({ kubeconfig });
    const follower = new Follower(renewing, POLICIES, { watchSeconds: [2, 2] });
    closing.push(
      () => renewing.close(),
      () => follower.watch.close(),
    );
    await until('there is a list', () => follower.watch.following.hasList);
    writeFileSync(file, String(other));
    await client.request({ method: 'DELETE', path: '/api/v1/namespaces/default/serviceaccounts/first' });
    // The API server remembers for some seconds whom it has accepted.
    writeFileSync(join(real.folder, 'old-token'), String(one));
    writeFileSync(`${kubeconfig}.old`, readFileSync(kubeconfig, 'utf8').replace('token}', 'old-token}'));
    const stale = createApiClient({ kubeconfig: `${kubeconfig}.old` });
    closing.push(() => stale.close());
    const ask = () => stale.request({ method: 'GET', path: POLICIES });
    const refused = (thrown: unknown) => thrown instanceof ApiError && thrown.status === 401;
    while (!(await ask().then(() => false, refused))) {
      await pause(250);
    }
    const before = follower.restarts.length;
    await until('it has watched anew', () => follower.restarts.length >= before + 2);
    await follower.heard(await put('after-the-rotation'));
    await follower.isRight();
    expect(new Set(follower.restarts)).toEqual(new Set(['ended']));
  });
});
