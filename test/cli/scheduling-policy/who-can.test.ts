import { describe, expect, it } from 'vitest';
import type { ApiServerDouble } from '../../support/api-server-double.ts';
import { printed, refused, refusedWith } from '../../support/run-command.ts';
import { policedDouble, RBAC, refuse, useOf } from './cluster.ts';

const rule = useOf('disks');

function bindings({ store }: ApiServerDouble): void {
  store.put(`${RBAC}/clusterroles`, { metadata: { name: 'sp:disks' }, rules: [rule] });
  store.put(`${RBAC}/clusterroles`, { metadata: { name: 'view' }, rules: [{ ...rule, verbs: ['get'] }] });
  store.put(`${RBAC}/namespaces/shop/roles`, {
    metadata: { name: 'local', namespace: 'shop' },
    rules: [rule],
  });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'sp:disks' };
  store.put(`${RBAC}/clusterrolebindings`, {
    metadata: { name: 'sp:disks' },
    roleRef,
    subjects: [
      { kind: 'Group', name: 'system:authenticated' },
      { kind: 'User', name: 'gone' },
    ],
  });
  store.put(`${RBAC}/clusterrolebindings`, {
    metadata: { name: 'viewers' },
    roleRef: { ...roleRef, name: 'view' },
    subjects: [{ kind: 'User', name: 'viewer' }],
  });
  store.put(`${RBAC}/namespaces/shop/rolebindings`, {
    metadata: { name: 'web-disks', namespace: 'shop' },
    roleRef: { ...roleRef, kind: 'Role', name: 'local' },
    subjects: [{ kind: 'ServiceAccount', name: 'web', namespace: 'shop' }],
  });
  store.put(`${RBAC}/namespaces/ci/rolebindings`, {
    metadata: { name: 'nowhere', namespace: 'ci' },
    roleRef: { ...roleRef, kind: 'Role', name: 'local' },
    subjects: [{ kind: 'User', name: 'nobody' }],
  });
}

describe('scheduling-policy who-can', () => {
  it('shows who may use a policy, which role and binding grant it, and whether the API server agrees', async () => {
    const { api, run, allow } = await policedDouble();
    bindings(api);
    allow((user) => user !== 'gone');
    expect(
      printed(await run('who-can', 'disks')),
    ).toBe(`SUBJECT                     NAMESPACE  ROLE                  BINDING                      CONFIRMED
Group system:authenticated  all        ClusterRole sp:disks  ClusterRoleBinding sp:disks  yes
ServiceAccount shop/web     shop       Role local            RoleBinding web-disks        yes
User gone                   all        ClusterRole sp:disks  ClusterRoleBinding sp:disks  no
`);
  });

  it('shows only who may use it in a namespace, as JSON', async () => {
    const { api, run } = await policedDouble();
    bindings(api);
    const { code, stdout } = await run('who-can', 'disks', '-n', 'ci', '--format', 'json');
    const answer = JSON.parse(stdout);
    expect({ code, policy: answer.policy, namespace: answer.namespace }).toEqual({
      code: 0,
      policy: 'disks',
      namespace: 'ci',
    });
    expect(answer.users.map(({ subject }: { subject: unknown }) => subject)).toEqual([
      { kind: 'Group', name: 'system:authenticated', namespace: null },
      { kind: 'User', name: 'gone', namespace: null },
    ]);
  });

  it('says that nobody may use it', async () => {
    const { run } = await policedDouble();
    expect(printed(await run('who-can', 'disks'))).toBe('no role with a binding grants the use of disks\n');
  });

  it.for([
    [['--service-account', 'shop/web'], 0, { user: 'system:serviceaccount:shop:web', namespace: 'shop' }],
    [
      ['--service-account', 'web', '-n', 'shop'],
      0,
      { user: 'system:serviceaccount:shop:web', namespace: 'shop' },
    ],
    [['--user', 'jane'], 1, { user: 'jane', groups: ['system:authenticated'] }],
    [['--user', 'jane', '--group', 'a'], 1, { user: 'jane', groups: ['a', 'system:authenticated'] }],
    [['--group', 'a', '-n', 'shop'], 1, { user: '', groups: ['a'], namespace: 'shop' }],
  ] as const)('answers for %j with a review alone', async ([flags, code, account]) => {
    const { api, run, allow } = await policedDouble();
    allow((user) => user.endsWith(':web'));
    const { stdout, code: ended } = await run('who-can', 'disks', ...flags);
    expect({ stdout, ended }).toEqual({ stdout: code === 0 ? 'yes\n' : 'no\n', ended: code });
    const review = api.requests.find(({ path }) => path.endsWith('subjectaccessreviews'));
    const { user, groups, resourceAttributes } = JSON.parse(review?.body ?? '{}').spec;
    expect({ user, groups, namespace: resourceAttributes.namespace }).toMatchObject(account);
    expect(api.requests.some(({ path }) => path.startsWith(RBAC))).toBe(false);
  });

  it('names the nearest policy where there is none of the name', async () => {
    const { run } = await policedDouble();
    expect(await run('who-can', 'disk')).toEqual(
      refused('there is no scheduling policy "disk" in the cluster; the nearest right name is "disks"'),
    );
  });

  it.for(['..', '.', 'a/b', 'disks?x=1', 'disks#'])('takes %j for a name, not for a path', async (name) => {
    const { run } = await policedDouble();
    expect(await run('who-can', name)).toEqual(
      refusedWith(`there is no scheduling policy ${JSON.stringify(name)} in the cluster`),
    );
  });

  it('says what it may not list', async () => {
    const { api, run } = await policedDouble();
    refuse(api, 'clusterroles', 403);
    expect(await run('who-can', 'disks')).toEqual(
      refused(/^error: https:\S+ forbids what this command needs: an answer with 403\n$/),
    );
  });

  it.for([
    [['--service-account', 'web'], '--service-account: expected NAMESPACE/NAME, got "web"'],
    [['--service-account', 'a/b/c'], '--service-account: expected NAMESPACE/NAME, got "a/b/c"'],
    [['--service-account', 'a/b', '-n', 'c'], '--namespace is c, but the service account is in a'],
    [['--service-account', 'a/b', '--user', 'c'], 'expected either --service-account, or --user and --group'],
    [['--user', ''], 'The value is empty'],
  ] as const)('refuses %j', async ([flags, words]) => {
    const { api, run } = await policedDouble();
    expect(await run('who-can', 'disks', ...flags)).toEqual(refusedWith(words));
    expect(api.requests).toEqual([]);
  });
});
