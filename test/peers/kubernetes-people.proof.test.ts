/** Who may do what in a real cluster: people, accounts, groups and namespaces, the roles of the proposal, and what is shown to whom. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Manifest, parse } from '../etc/kubernetes/manifests.ts';
import { projectFile } from '../support/files.ts';
import { GROUP, granted, pod, policedClusterOfFile, schedulingPolicy } from './policed-cluster.ts';

const PROPOSAL = projectFile('test/fixtures/kubernetes/proposal');
/** Until a change is in force: of a busy machine. */
const IN_FORCE = { timeout: 120_000, interval: 100 };
const RBAC = 'rbac.authorization.k8s.io';
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
  await cluster.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }]);
  for (const name of accounts) {
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } };
    await expect.poll(() => here().create(account), IN_FORCE).toBe('');
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
    await place('east', 'worker');
    await place('west', 'worker');
    const { cluster } = here();
    // The worker of the west may use it in the east, where none of its pods can be.
    await cluster.apply([binding('use-disks', account('worker', 'west'), 'east')]);
    const asked = ['auth', 'can-i', 'use', `schedulingpolicies.${GROUP}/disks`, '-n', 'east'];
    const as = ['--as', 'system:serviceaccount:west:worker'];
    await expect
      .poll(async () => (await cluster.kubectl([...asked, ...as])).stdout.trim(), IN_FORCE)
      .toBe('yes');
    // Until all is in force for certain.
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    expect(await said('east', 'worker')).toMatch(REFUSED);
    expect(await said('west', 'worker')).toMatch(REFUSED);
    await cluster.apply([binding('use-disks', account('worker', 'west'))]);
    await soon('west', 'worker').toBe('');
    expect(await said('east', 'worker')).toMatch(REFUSED);
  });

  it('a policy that is tried only warns, and follows its changes', async () => {
    const { cluster, configure } = here();
    await place('tried', 'worker');
    await cluster.apply([schedulingPolicy('tried', { allowed: { nodeSelectors: { disk: ['hdd'] } } })]);
    await cluster.apply(granted('tried', 'worker', 'tried'));
    await soon('tried', 'worker', { nodeSelector: { disk: 'hdd' } }).toBe('');
    await configure({ audit: 'tried, restricted' });
    const warnings = async () => {
      number += 1;
      const stdin = JSON.stringify(pod('tried', `pod-${number}`, { serviceAccountName: 'worker', ...ssd }));
      return (await cluster.kubectl(['create', '-f', '-'], { stdin })).stderr;
    };
    await expect.poll(warnings, IN_FORCE).toMatch(/^Warning: .*expected hdd, got "ssd"/);
    const condition = async () =>
      (await cluster.kubectl(['get', 'schedpol', 'tried', '-o', `jsonpath={${REASON}}`])).stdout;
    await expect.poll(condition, IN_FORCE).toBe('Audited');
    const patch = JSON.stringify({ spec: { allowed: { nodeSelectors: { disk: ['hdd', 'ssd'] } } } });
    await cluster.kubectl(['patch', 'schedpol', 'tried', '--type=merge', '-p', patch]);
    await expect.poll(warnings, IN_FORCE).toBe('');
    const back = JSON.stringify({ spec: { allowed: { nodeSelectors: { disk: ['hdd'] } } } });
    await cluster.kubectl(['patch', 'schedpol', 'tried', '--type=merge', '-p', back]);
    await expect.poll(warnings, IN_FORCE).toMatch(/^Warning: /);
    await configure({ audit: '' });
    await soon('tried', 'worker').toMatch(REFUSED);
    await expect.poll(condition, IN_FORCE).toBe('Enforced');
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

  it('kubectl shows who waits for pods why there are none', async () => {
    const { cluster } = here();
    await place('shown', 'worker');
    const template = {
      metadata: { labels: { a: 'b' } },
      spec: { serviceAccountName: 'worker', ...ssd, containers: [{ name: 'c', image: 'x' }] },
    };
    const deployment = {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'shown' } },
      spec: { selector: { matchLabels: { a: 'b' } }, template },
    };
    const stdin = JSON.stringify(deployment);
    const applied = await cluster.kubectl(['apply', '--validate=false', '-f', '-'], { stdin });
    expect(applied.stderr).toMatch(/^Warning: this Deployment's pods would be refused: nodeSelector disk: /m);
    expect(applied.status).toBe(0);
    const events = async () =>
      (await cluster.kubectl(['-n', 'shown', 'get', 'events', '-o', `jsonpath=${EVENTS}`])).stdout;
    await expect
      .poll(events, { timeout: 120_000, interval: 200 })
      .toMatch(/^ReplicaSet web-\w+ .*nodeSelector disk/m);
    await cluster.apply(granted('shown', 'worker', 'disks'));
    await soon('shown', 'worker').toBe('');
    const again = await cluster.kubectl(['apply', '--validate=false', '-f', '-'], {
      stdin: stdin.replace('"image":"x"', '"image":"y"'),
    });
    expect(again.stderr).not.toContain('Warning');
    const pods = async () =>
      (await cluster.kubectl(['-n', 'shown', 'get', 'pods', '-l', 'a=b', '-o', 'name'])).stdout;
    await expect.poll(pods, { timeout: 120_000, interval: 200 }).toMatch(/^pod\/web-/);
    const accepted = ['wait', '--for=condition=Accepted', '--timeout=120s', 'schedpol/disks'];
    expect((await cluster.kubectl(accepted)).stdout).toContain('condition met');
  });
});

const REASON = '.status.conditions[?(@.type=="Enforced")].reason';
const EVENTS =
  '{range .items[*]}{.involvedObject.kind} {.involvedObject.name} {.reportingComponent} {.message}{"\\n"}{end}';
