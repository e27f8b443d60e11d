/** Who may use which policy, asked as the service asks: held against single reviews of a real API server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Deadline } from '../../src/base/deadline.ts';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import { elapsed } from '../../src/kubernetes/cluster/api/timing.ts';
import { ReviewedPermissions } from '../../src/kubernetes/cluster/live/reviewed-permissions.ts';
import { SourceUnavailableError, serviceAccount } from '../../src/kubernetes/policies/access.ts';
import { ANSWERS, type Answers, OBJECTS, QUESTIONS } from '../support/access-questions.ts';
import { accessInForce } from './asked-access.ts';
import { type AskedCluster, askCluster, GROUP, RBAC, RBAC_PATH } from './asked-cluster.ts';
import { startCluster } from './kubernetes.ts';

const cluster = startCluster();
const closing: (() => unknown)[] = [() => cluster?.stop()];
afterAll(async () => {
  for (const close of closing.toReversed()) {
    await close();
  }
});

const MANY = ['gold', 'silver', ...Array.from({ length: 40 }, (_, index) => `policy-${index}`)];
const THOUSAND = Array.from({ length: 1000 }, (_, index) => `policy-${index}`);

const role = (kind: 'Role' | 'ClusterRole', name: string, resourceNames?: string[], more: object = {}) => ({
  apiVersion: `${RBAC}/v1`,
  kind,
  metadata: { name, ...(kind === 'Role' && { namespace: 'team' }), ...more },
  rules: [{ apiGroups: [GROUP], resources: ['schedulingpolicies'], verbs: ['use'], resourceNames }],
});
const binding = (
  kind: 'RoleBinding' | 'ClusterRoleBinding',
  name: string,
  [of, named]: [string, string],
  to: string,
) => ({
  apiVersion: `${RBAC}/v1`,
  kind,
  metadata: { name, ...(kind === 'RoleBinding' && { namespace: 'team' }) },
  roleRef: { apiGroup: RBAC, kind: of, name: named },
  subjects: [{ kind: 'ServiceAccount', name: to, namespace: 'team' }],
});

describe.skipIf(cluster === undefined)('beside a real API server', () => {
  let asked: AskedCluster;

  const create = (path: string, body: object) =>
    asked.client.request({ method: 'POST', path: `${RBAC_PATH}/${path}`, body });
  const remove = (path: string) => asked.client.request({ method: 'DELETE', path: `${RBAC_PATH}/${path}` });

  beforeAll(async () => {
    if (cluster === undefined) {
      return;
    }
    const namespaces = new Set(['team', ...QUESTIONS.flatMap(({ namespace }) => namespace ?? [])]);
    await cluster.apply([
      ...[...namespaces].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
      ...OBJECTS,
      role('ClusterRole', 'empty-name', ['']),
      binding('ClusterRoleBinding', 'empty-name', ['ClusterRole', 'empty-name'], 'empty-name'),
    ]);
    asked = askCluster(cluster);
    closing.push(asked.close);
    await accessInForce(cluster);
    await vi.waitFor(() => expect(asked.hint.problem).toBeUndefined(), { timeout: 120_000 });
    const { answers } = JSON.parse(readFileSync(ANSWERS, 'utf8')) as Answers;
    // What is followed may be behind what the API server decides by.
    await vi.waitFor(
      () => {
        for (const { usable, ...account } of answers) {
          const candidates = asked.hint.candidates(account, MANY) ?? MANY;
          expect(candidates).toEqual(expect.arrayContaining([...(usable[GROUP] ?? [])]));
        }
      },
      { timeout: 120_000 },
    );
  });

  it('every account of the fixture may use what the API server says, in every mode', async () => {
    const { answers } = JSON.parse(readFileSync(ANSWERS, 'utf8')) as Answers;
    const modes = {
      auto: asked.permissions({ hint: asked.hint }),
      'auto without hint': asked.permissions(),
      every: asked.permissions({ rights: 'every' }),
      'every with hint': asked.permissions({ rights: 'every', hint: asked.hint }),
    };
    for (const { usable, ...account } of answers) {
      expect(await asked.truth(account, MANY.slice(0, 2)), account.user).toEqual(usable[GROUP]);
      const many = await asked.truth(account, MANY);
      for (const [mode, one] of Object.entries(modes)) {
        const about = `${mode}: ${JSON.stringify(account)}`;
        expect(await one.usable(account, MANY), about).toEqual(many);
        expect(await one.usable(account, MANY.slice(0, 2)), about).toEqual(usable[GROUP]);
        // Not out of the answer above.
        const few = MANY.slice(0, 10);
        const fresh = asked.permissions(mode.startsWith('every') ? { rights: 'every' } : {});
        expect(await fresh.usable(account, few), about).toEqual(few.filter((name) => many.includes(name)));
      }
    }
  });

  it('the name "" in a role is no right to all policies, although a review without a name says so', async () => {
    const account = serviceAccount('team', 'empty-name');
    expect(await asked.truth(account, ['', 'gold'])).toEqual(['']);
    expect(await asked.permissions({ hint: asked.hint }).usable(account, MANY)).toEqual([]);
    expect(await asked.permissions().usable(account, MANY)).toEqual([]);
  });

  const changes: [string, string, () => Promise<unknown>, () => Promise<unknown>][] = [
    [
      'a ClusterRoleBinding',
      'a',
      () =>
        create('clusterrolebindings', binding('ClusterRoleBinding', 'a-gold', ['ClusterRole', 'gold'], 'a')),
      () => remove('clusterrolebindings/a-gold'),
    ],
    [
      'a RoleBinding',
      'b',
      () =>
        create(
          'namespaces/team/rolebindings',
          binding('RoleBinding', 'b-gold', ['ClusterRole', 'gold'], 'b'),
        ),
      () => remove('namespaces/team/rolebindings/b-gold'),
    ],
    [
      'a Role that is bound already',
      'c',
      async () => {
        await create('namespaces/team/rolebindings', binding('RoleBinding', 'c', ['Role', 'c'], 'c'));
        await create('namespaces/team/roles', role('Role', 'c', ['gold']));
      },
      () => remove('namespaces/team/roles/c'),
    ],
    [
      'a role that an aggregated one selects',
      'of-in',
      () => create('clusterroles', role('ClusterRole', 'x', ['gold'], { labels: { part: 'x' } })),
      () => remove('clusterroles/x'),
    ],
    [
      'the resourceNames of a role',
      'd',
      async () => {
        await create('clusterroles', role('ClusterRole', 'd', ['iron', 'gold']));
        await create('clusterrolebindings', binding('ClusterRoleBinding', 'd', ['ClusterRole', 'd'], 'd'));
      },
      () =>
        asked.client.request({
          method: 'PATCH',
          path: `${RBAC_PATH}/clusterroles/d`,
          body: role('ClusterRole', 'd', ['iron']),
        }),
    ],
  ];

  it.each(changes)('%s that comes and goes is in force', async (what, name, bind, unbind) => {
    const account = serviceAccount('team', name);
    const took: string[] = [];
    for (const [mode, options] of Object.entries({
      'with hint': { hint: asked.hint },
      'without hint': {},
    })) {
      const one = asked.permissions(options);
      const has = async () => (await one.usable(account, MANY)).includes('gold');
      expect(await has()).toBe(false);
      for (const [how, expected] of [
        [bind, true],
        [unbind, false],
      ] as const) {
        await how();
        const at = performance.now();
        await expect.poll(has, { timeout: 120_000, interval: 20 }).toBe(expected);
        took.push(`${mode}, ${expected ? 'bound' : 'unbound'}: ${Math.round(performance.now() - at)} ms`);
      }
      if (name === 'c') {
        await remove('namespaces/team/rolebindings/c');
      } else if (name === 'd') {
        await remove('clusterrolebindings/d');
        await remove('clusterroles/d');
      }
      // What the last change settles.
      await new Promise((resolve) => setTimeout(resolve, 1200));
      one.close();
    }
    process.stderr.write(`${what}: ${took.join('; ')}\n`);
  });

  it('a thousand policies cost few reviews, where roles and bindings are followed', async () => {
    await cluster?.apply([
      ...Array.from({ length: 50 }, (_, index) =>
        role('ClusterRole', `of-${index}`, [`policy-${index}`, `policy-${index + 500}`, 'policy-999']),
      ),
      ...Array.from({ length: 50 }, (_, index) =>
        binding('ClusterRoleBinding', `of-${index}`, ['ClusterRole', `of-${index}`], `account-${index}`),
      ),
    ]);
    const accounts = Array.from({ length: 50 }, (_, index) => serviceAccount('team', `account-${index}`));
    await expect
      .poll(() => accounts.every((account) => asked.hint.candidates(account, THOUSAND)?.length === 3), {
        timeout: 120_000,
      })
      .toBe(true);
    const last = accounts.at(-1) ?? serviceAccount('team', 'account-49');
    // What is followed may be ahead of what the API server decides by.
    await expect
      .poll(() => asked.truth(last, ['policy-49', 'policy-549', 'policy-999']))
      .toEqual(['policy-49', 'policy-549', 'policy-999']);
    /** 2,000 pods at once. */
    const burst = async (what: string, one: ReviewedPermissions, count: number) => {
      asked.counted.reviews = 0;
      const started = performance.now();
      const answers = await Promise.all(
        Array.from({ length: 2000 }, async (_, index) => {
          const names = await one.usable(serviceAccount('team', `account-${index % count}`), THOUSAND);
          return { names, took: performance.now() - started };
        }),
      );
      const times = answers.map(({ took }) => took).sort((a, b) => a - b);
      expect(answers.map(({ names }) => names)).toEqual(
        answers.map((_, index) => [
          `policy-${index % count}`,
          `policy-${(index % count) + 500}`,
          'policy-999',
        ]),
      );
      const [half, most, last] = [1000, 1980, 1999].map((index) => Math.round(times[index] ?? 0));
      process.stderr.write(
        `1000 policies, 2000 pods of ${count} accounts at once, ${what}: ${asked.counted.reviews} reviews; p50 ${half} ms, p99 ${most} ms, last ${last} ms\n`,
      );
      return asked.counted.reviews;
    };
    // On a busy machine, answers would get old in between.
    const now = elapsed();
    const one = asked.permissions({ hint: asked.hint, now: () => now });
    expect(await burst('first', one, 50)).toBe(50 * 4);
    expect(await burst('again', one, 50)).toBe(0);
    expect(await burst('first, warm', asked.permissions({ hint: asked.hint }), 50)).toBe(50 * 4);
    const blind = asked.permissions();
    expect(await burst('roles not followed', blind, 1)).toBe(1001);
    blind.close();
    const tooMany = asked.permissions();
    asked.counted.reviews = 0;
    const outcomes = await Promise.all(
      accounts.map((account) =>
        Promise.resolve(tooMany.usable(account, THOUSAND)).catch((error: unknown) => error),
      ),
    );
    for (const [index, outcome] of outcomes.entries()) {
      if (!(outcome instanceof SourceUnavailableError)) {
        expect(outcome).toEqual([`policy-${index}`, `policy-${index + 500}`, 'policy-999']);
      }
    }
    const known = outcomes.filter(Array.isArray).length;
    process.stderr.write(
      `1000 policies, 50 accounts, roles not followed: ${known} known within 10 s, the others refused, ${asked.counted.reviews} reviews\n`,
    );
  });

  it('an account that may create no reviews learns nothing', async () => {
    const alice = createApiClient({ kubeconfig: join(cluster?.folder ?? '', 'alice.conf') });
    const one = new ReviewedPermissions({ client: alice, rights: 'auto' });
    await expect(one.usable(serviceAccount('team', 'plain'), MANY)).rejects.toThrow(
      /403 Forbidden.*cannot create resource "subjectaccessreviews"/,
    );
    await alice.close();
  });

  it('a frozen API server gives no answer in time, known ones end, and it goes on afterwards', async () => {
    const pid = Number(readFileSync(join(cluster?.folder ?? '', 'kube-apiserver.pid'), 'utf8'));
    const one = asked.permissions();
    const known = serviceAccount('team', 'plain');
    const before = await one.usable(known, MANY);
    process.kill(pid, 'SIGSTOP');
    try {
      const deadline = new Deadline(1);
      await expect(one.usable(serviceAccount('team', 'in-team'), MANY, deadline)).rejects.toThrow(
        SourceUnavailableError,
      );
      deadline.end();
      expect(one.usable(known, MANY)).toBe(before);
      await new Promise((resolve) => setTimeout(resolve, 10_000));
      const later = new Deadline(1);
      await expect(one.usable(known, MANY, later)).rejects.toThrow(SourceUnavailableError);
      later.end();
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await expect
      .poll(() => Promise.resolve(one.usable(known, MANY)).catch(String), { timeout: 120_000 })
      .toEqual(before);
  });
});
