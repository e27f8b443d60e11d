/** Who may do what in a real cluster: people, accounts, groups and namespaces, the roles of the proposal, and what is shown to whom. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Manifest, parse } from '../etc/kubernetes/manifests.ts';
import { projectFile } from '../support/files.ts';
import { namespace as aNamespace, GROUP, RBAC, schedulingPolicy, serviceAccount } from './cluster-objects.ts';
import { granted, pod, policedClusterOfFile } from './policed-cluster.ts';

const PROPOSAL = projectFile('test/fixtures/kubernetes/proposal');
/** Until a change is in force: of a busy machine. */
const IN_FORCE = { timeout: 120_000, interval: 100 };
const ssd = { nodeSelector: { disk: 'ssd' } };
const REFUSED = /denied the request.*nodeSelector disk: /;

const { started, police, here } = policedClusterOfFile();

let number = 0;
/** What kubectl says to a pod of that account; empty = it is created. `as`: the kubeconfig of who creates it. */
async function said(namespace: string, account: string, spec: object = ssd, as?: string): Promise<string> {
  number += 1;
  return here().create(pod(namespace, `pod-${number}`, { serviceAccountName: account, ...spec }), as);
}
const soon = (namespace: string, account: string, spec: object = ssd) =>
  expect.poll(() => said(namespace, account, spec), IN_FORCE);

/** A namespace with accounts. */
async function place(namespace: string, ...accounts: string[]): Promise<void> {
  const { cluster } = here();
  await cluster.apply([aNamespace(namespace)]);
  for (const name of accounts) {
    await expect.poll(() => here().create(serviceAccount(name, namespace)), IN_FORCE).toBe('');
    await soon(namespace, name, {}).toBe('');
  }
}

/** In a namespace if there is one, else in the whole cluster. */
function binding(role: string, subject: object, namespace?: string): object {
  const kind = namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding';
  const { name } = subject as { readonly name: string };
  const metadata = { name: `${role}-${name}`.replaceAll(':', '-'), ...(namespace && { namespace }) };
  const roleRef = { apiGroup: RBAC, kind: 'ClusterRole', name: role };
  return { apiVersion: `${RBAC}/v1`, kind, metadata, roleRef, subjects: [subject] };
}
const user = (name: string) => ({ apiGroup: RBAC, kind: 'User', name });
const group = (name: string) => ({ apiGroup: RBAC, kind: 'Group', name });
const account = (name: string, namespace: string) => ({ kind: 'ServiceAccount', name, namespace });

describe.skipIf(started === undefined)('in a real cluster', () => {
  beforeAll(async () => {
    if (started === undefined) {
      return;
    }
    await police(started);
    const [role = {}] = granted('first', 'nobody', 'disks');
    await started.apply([schedulingPolicy('disks', { allowed: { nodeSelectors: { disk: ['ssd'] } } }), role]);
  });

  it('the account of a pod counts, not who creates it', async () => {
    const { cluster } = here();
    await place('people', 'worker', 'plain');
    const people = ['anna', 'boris'].map((name) => cluster.user(name, 'team'));
    await cluster.apply([
      binding('edit', user('anna'), 'people'),
      binding('edit', group('team'), 'people'),
      // Of no use for what pods may do.
      binding('use-disks', user('anna'), 'people'),
      ...granted('people', 'worker', 'disks'),
    ]);
    await soon('people', 'worker').toBe('');
    for (const as of people) {
      expect(await said('people', 'worker', ssd, as)).toBe('');
      expect(await said('people', 'plain', ssd, as)).toMatch(REFUSED);
      expect(await said('people', 'plain', {}, as)).toBe('');
    }
    expect(await said('people', 'plain')).toMatch(REFUSED);
  });

  it.each([
    ['a group of a namespace', 'grouped', 'system:serviceaccounts:grouped', 'outside'],
    ['the group of all service accounts', 'every', 'system:serviceaccounts', undefined],
  ])('%s may use a policy', async (_, namespace, name, other) => {
    await place(namespace, 'one', 'two');
    await soon(namespace, 'one').toMatch(REFUSED);
    await here().cluster.apply([binding('use-disks', group(name))]);
    await soon(namespace, 'one').toBe('');
    await soon(namespace, 'two').toBe('');
    if (other !== undefined) {
      await place(other, 'one');
      expect(await said(other, 'one')).toMatch(REFUSED);
    }
    const unbound = ['delete', 'clusterrolebinding', `use-disks-${name.replaceAll(':', '-')}`];
    expect((await here().cluster.kubectl(unbound)).status).toBe(0);
    await soon(namespace, 'two').toMatch(REFUSED);
  });

  it('a binding in a namespace gives accounts of others nothing', async () => {
    const { cluster } = here();
    // The worker of the west may use it in the east, where none of its pods can be.
    await cluster.apply([aNamespace('east'), binding('use-disks', account('worker', 'west'), 'east')]);
    const asked = ['auth', 'can-i', 'use', `schedulingpolicies.${GROUP}/disks`, '-n', 'east'];
    const as = ['--as', 'system:serviceaccount:west:worker'];
    await expect
      .poll(async () => (await cluster.kubectl([...asked, ...as])).stdout.trim(), IN_FORCE)
      .toBe('yes');
    // Nothing was asked about these before.
    await place('east', 'worker');
    await place('west', 'worker');
    expect(await said('east', 'worker')).toMatch(REFUSED);
    expect(await said('west', 'worker')).toMatch(REFUSED);
    await cluster.apply([binding('use-disks', account('worker', 'west'))]);
    await soon('west', 'worker').toBe('');
    expect(await said('east', 'worker')).toMatch(REFUSED);
  });

  it('the roles of the proposal allow what it says', async () => {
    const { cluster } = here();
    const files = readdirSync(PROPOSAL).filter((name) => /^3[234]-/.test(name));
    const roles: Manifest[] = files.flatMap((name) =>
      parse(readFileSync(join(PROPOSAL, name), 'utf8').replaceAll("'extensions'", GROUP)),
    );
    expect(roles.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'ClusterRole sp:restricted',
      'ClusterRoleBinding sp:restricted',
      'RoleBinding sp:kube-system-privileged',
    ]);
    // Away with those of etc/kubernetes first: until then, nobody may use anything.
    await cluster.kubectl(['delete', 'clusterrole/sp:restricted', 'clusterrolebinding/sp:restricted']);
    const systems = ['-n', 'kube-system', 'delete', 'rolebinding', 'sp:kube-system-privileged'];
    await cluster.kubectl(systems);
    await place('roles');
    await soon('roles', 'default', {}).toMatch(/schedulerName: /);
    await soon('kube-system', 'default').toMatch(/schedulerName: /);
    await cluster.apply(roles);
    await soon('roles', 'default', {}).toBe('');
    await soon('kube-system', 'default').toBe('');
    expect(await said('kube-system', 'default', { tolerations: [{ operator: 'Exists' }] })).toBe('');
    expect(await said('roles', 'default')).toMatch(REFUSED);
    expect(await said('roles', 'default', { tolerations: [{ operator: 'Exists' }] })).toMatch(/tolerations/);
  });
});
