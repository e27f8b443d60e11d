/** Who may use which policy, asked as the service asks: held against single reviews of a real API server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import { ReviewedPermissions } from '../../src/kubernetes/cluster/live/reviewed-permissions.ts';
import { serviceAccount } from '../../src/kubernetes/policies/access.ts';
import { ANSWERS, type Answers, OBJECTS, QUESTIONS } from '../support/access-questions.ts';
import { accessInForce, askedAccess } from './asked-access.ts';
import { type AskedCluster, askCluster, RBAC_PATH } from './asked-cluster.ts';
import { GROUP, namespace, RBAC, useOf } from './cluster-objects.ts';
import { clusterOfFile } from './cluster-of-file.ts';

const { cluster, here, closing } = clusterOfFile();

/** One more than are asked about one by one. */
const MANY = ['gold', 'silver', ...Array.from({ length: 31 }, (_, index) => `policy-${index}`)];

const role = (kind: 'Role' | 'ClusterRole', name: string, resourceNames?: string[], more: object = {}) => ({
  apiVersion: `${RBAC}/v1`,
  kind,
  metadata: { name, ...(kind === 'Role' && { namespace: 'team' }), ...more },
  rules: [{ ...useOf(), resourceNames }],
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
      ...[...namespaces].map((name) => namespace(name)),
      ...OBJECTS,
      role('ClusterRole', 'empty-name', ['']),
      binding('ClusterRoleBinding', 'empty-name', ['ClusterRole', 'empty-name'], 'empty-name'),
    ]);
    asked = askCluster(cluster);
    closing.push(asked.close);
    // Where it says something else, the first test shows what, or records it.
    await accessInForce(cluster).catch(() => undefined);
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

  it('SubjectAccessReviews answer as the fixture says', async () => {
    // `npx vitest run --project proofs test/peers/kubernetes-rights --update` records them anew.
    await expect(`${JSON.stringify(await askedAccess(here()), null, 2)}\n`).toMatchFileSnapshot(ANSWERS);
  });

  const bound = (name: string) =>
    [
      () =>
        create(
          'clusterrolebindings',
          binding('ClusterRoleBinding', `${name}-gold`, ['ClusterRole', 'gold'], name),
        ),
      () => remove(`clusterrolebindings/${name}-gold`),
    ] as const;
  const changes: [string, string, () => Promise<unknown>, () => Promise<unknown>][] = [
    ['a ClusterRoleBinding', 'a', ...bound('a')],
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
  ];
  type Change = (typeof changes)[number];

  async function isInForce(
    [what, name, bind, unbind]: Change,
    options: Parameters<AskedCluster['permissions']>[0],
  ) {
    const account = serviceAccount('team', name);
    const took: string[] = [];
    const one = asked.permissions(options);
    const has = async () => (await one.usable(account, MANY)).includes('gold');
    expect(await has()).toBe(false);
    for (const [how, expected] of [
      [bind, true],
      [unbind, false],
    ] as const) {
      await how();
      const at = performance.now();
      // Not `expect.poll`, which fails in a concurrent test when another one has ended.
      await vi.waitFor(async () => expect(await has()).toBe(expected), { timeout: 120_000, interval: 20 });
      took.push(`${expected ? 'bound' : 'unbound'}: ${Math.round(performance.now() - at)} ms`);
    }
    one.close();
    process.stderr.write(`${what}: ${took.join('; ')}\n`);
  }

  // Then answers end with their time, whatever has changed: once shows it, beside the next test, since it takes long.
  it.concurrent('a ClusterRoleBinding that comes and goes is in force without a hint', () =>
    isInForce(['a ClusterRoleBinding, without a hint', 'b', ...bound('b')], {}));

  it.concurrent('every account of the fixture may use what the API server says, in every mode', async () => {
    const { answers } = JSON.parse(readFileSync(ANSWERS, 'utf8')) as Answers;
    const modes = {
      auto: asked.permissions({ hint: asked.hint }),
      'auto without hint': asked.permissions(),
      every: asked.permissions({ rights: 'every' }),
    };
    for (const { usable, ...account } of answers) {
      expect(await asked.truth(account, MANY.slice(0, 2)), account.user).toEqual(usable[GROUP]);
      const many = await asked.truth(account, MANY);
      for (const [mode, one] of Object.entries(modes)) {
        const about = `${mode}: ${JSON.stringify(account)}`;
        expect(await one.usable(account, MANY), about).toEqual(many);
        expect(await one.usable(account, MANY.slice(0, 2)), about).toEqual(usable[GROUP]);
      }
      // Not out of an answer above.
      const few = MANY.slice(0, 10);
      expect(await asked.permissions().usable(account, few), account.user).toEqual(
        few.filter((name) => many.includes(name)),
      );
    }
  });

  it('the name "" in a role is no right to all policies, although a review without a name says so', async () => {
    const account = serviceAccount('team', 'empty-name');
    expect(await asked.truth(account, ['', 'gold'])).toEqual(['']);
    expect(await asked.permissions({ hint: asked.hint }).usable(account, MANY)).toEqual([]);
    expect(await asked.permissions().usable(account, MANY)).toEqual([]);
  });

  it.each(changes)('%s that comes and goes is in force', (...change) =>
    isInForce(change, { hint: asked.hint }),
  );

  it('an account that may create no reviews learns nothing', async () => {
    const alice = createApiClient({ kubeconfig: join(cluster?.folder ?? '', 'alice.conf') });
    const one = new ReviewedPermissions({ client: alice, rights: 'auto' });
    await expect(one.usable(serviceAccount('team', 'plain'), MANY)).rejects.toThrow(
      /403 Forbidden.*cannot create resource "subjectaccessreviews"/,
    );
    await alice.close();
  });
});
