/**
 * Stories of the proposal in a real cluster, by kubectl: apply, bind, create pods, patch, unbind. And who may do what there: people, accounts,
 * groups and namespaces, the roles of the proposal, and what is shown to whom.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Manifest, parse } from '../etc/kubernetes/manifests.ts';
import { projectFile } from '../support/files.ts';
import {
  namespace as aNamespace,
  GROUP,
  priorityClass,
  RBAC,
  schedulingPolicy,
  serviceAccount,
} from './cluster-objects.ts';
import { granted, pod, policedClusterOfFile } from './policed-cluster.ts';
import { REFUSED, STORIES } from './proposal-stories.ts';

const PROPOSAL = projectFile('test/fixtures/kubernetes/proposal');
const FILES = readdirSync(PROPOSAL).sort();
/** Until a change is in force: of a busy machine. */
const IN_FORCE = { timeout: 120_000, interval: 100 };

const ssd = { nodeSelector: { disk: 'ssd' } };
const NO_DISKS = /denied the request.*nodeSelector disk: /;

const { started, police, here } = policedClusterOfFile();

/** The policies of an example, in the group that a cluster can have. */
function policiesOf(example: string): Manifest[] {
  const file = FILES.find((name) => name.startsWith(example)) ?? '';
  return parse(readFileSync(join(PROPOSAL, file), 'utf8')).map((document: Manifest, index) =>
    schedulingPolicy(`example-${example}-${document.metadata?.name ?? index}`, document.spec),
  );
}

const kubectl = (...args: string[]) => here().cluster.kubectl(args);
const applied = async (object: object) =>
  (await here().cluster.kubectl(['apply', '--validate=false', '-f', '-'], { stdin: JSON.stringify(object) }))
    .stderr;

let number = 0;
/** A namespace of its own, and an account in it that may not be used by anything else. */
async function place(): Promise<string> {
  number += 1;
  const namespace = `story-${number}`;
  await here().cluster.apply([aNamespace(namespace)]);
  await expect.poll(() => here().create(serviceAccount('worker', namespace)), IN_FORCE).toBe('');
  return namespace;
}

let pods = 0;
/** What the cluster says to a new pod of that account. */
async function tell(namespace: string, spec: object): Promise<{ said: string; pod: Manifest }> {
  pods += 1;
  const name = `pod-${pods}`;
  const asked = pod(namespace, name, { serviceAccountName: 'worker', ...spec });
  const { error, object } = await here().cluster.create(asked);
  return { said: error, pod: object };
}

/** What kubectl says to a pod of that account; empty = it is created. `as`: the kubeconfig of who creates it. */
async function said(namespace: string, account: string, spec: object = ssd, as?: string): Promise<string> {
  pods += 1;
  return here().create(pod(namespace, `pod-${pods}`, { serviceAccountName: account, ...spec }), as);
}
const soon = (namespace: string, account: string, spec: object = ssd) =>
  expect.poll(() => said(namespace, account, spec), IN_FORCE);

/** A namespace with accounts. */
async function accountsIn(namespace: string, ...accounts: string[]): Promise<void> {
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
    const classes = { 'high-priority': 1000, bronze: 1, silver: 2, gold: 3 };
    await started.apply(Object.entries(classes).map(([name, value]) => priorityClass(name, value)));
  });

  it.each(STORIES)(
    'the example $example means what the proposal says',
    { timeout: 1_200_000 },
    async (story) => {
      const { example, strategy = 'deep', pods: told } = story;
      const policies = policiesOf(example);
      await here().configure({ merge_strategy: strategy });
      const namespace = await place();
      for (const policy of policies) {
        expect(await applied(policy)).toBe('');
      }
      await here().cluster.apply(
        granted(namespace, 'worker', ...policies.map(({ metadata }) => metadata.name)),
      );
      for (const one of told) {
        if ('refused' in one) {
          // A change is in force within ten seconds; until then a pod may be judged by what was before.
          await expect
            .poll(async () => (await tell(namespace, one.spec)).said, IN_FORCE)
            .toMatch(one.refused);
        } else {
          const becoming = async () => {
            const { said, pod: created } = await tell(namespace, one.spec);
            return said === '' ? contained(created.spec, one.becomes) : said;
          };
          await expect.poll(becoming, IN_FORCE).toEqual(one.becomes);
        }
      }
    },
  );

  it.each(Object.entries(REFUSED))('the example %s is refused when it is applied', async (example, words) => {
    const [policy] = policiesOf(example);
    expect(await applied(policy)).toMatch(words);
    expect((await kubectl('get', 'schedpol', policy.metadata.name)).status).toBe(1);
  });

  it('a patch, an unbinding and a deletion are in force', async () => {
    await here().configure({});
    const namespace = await place();
    const said = (spec: object) => expect.poll(async () => (await tell(namespace, spec)).said, IN_FORCE);
    await said(ssd).toMatch(/nodeSelector disk: /);
    await here().cluster.apply([
      schedulingPolicy('disks', { allowed: { nodeSelectors: { disk: ['hdd'] } } }),
    ]);
    await here().cluster.apply(granted(namespace, 'worker', 'disks'));
    await said({ nodeSelector: { disk: 'hdd' } }).toBe('');
    expect((await tell(namespace, ssd)).said).toMatch(/expected hdd, got "ssd" \(scheduling policy disks\)/);
    const patch = JSON.stringify({ spec: { allowed: { nodeSelectors: { disk: ['hdd', 'ssd'] } } } });
    expect((await kubectl('patch', 'schedpol', 'disks', '--type=merge', '-p', patch)).status).toBe(0);
    await said(ssd).toBe('');
    expect((await kubectl('-n', namespace, 'delete', 'rolebinding', 'use-disks')).status).toBe(0);
    await said(ssd).toMatch(/nodeSelector disk: /);
    await here().cluster.apply(granted(namespace, 'worker', 'disks'));
    await said(ssd).toBe('');
    expect((await kubectl('delete', 'schedpol', 'disks')).status).toBe(0);
    await said(ssd).toMatch(/nodeSelector disk: /);
  });

  describe('who may use a policy', () => {
    beforeAll(async () => {
      const [role = {}] = granted('first', 'nobody', 'disks');
      const disks = schedulingPolicy('disks', { allowed: { nodeSelectors: { disk: ['ssd'] } } });
      await here().cluster.apply([disks, role]);
    });

    it('the account of a pod counts, not who creates it', async () => {
      const { cluster } = here();
      await accountsIn('people', 'worker', 'plain');
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
        expect(await said('people', 'plain', ssd, as)).toMatch(NO_DISKS);
        expect(await said('people', 'plain', {}, as)).toBe('');
      }
      expect(await said('people', 'plain')).toMatch(NO_DISKS);
    });

    it.each([
      ['a group of a namespace', 'grouped', 'system:serviceaccounts:grouped', 'outside'],
      ['the group of all service accounts', 'every', 'system:serviceaccounts', undefined],
    ])('%s may use a policy', async (_, namespace, name, other) => {
      await accountsIn(namespace, 'one', 'two');
      await soon(namespace, 'one').toMatch(NO_DISKS);
      await here().cluster.apply([binding('use-disks', group(name))]);
      await soon(namespace, 'one').toBe('');
      await soon(namespace, 'two').toBe('');
      if (other !== undefined) {
        await accountsIn(other, 'one');
        expect(await said(other, 'one')).toMatch(NO_DISKS);
      }
      const unbound = ['delete', 'clusterrolebinding', `use-disks-${name.replaceAll(':', '-')}`];
      expect((await here().cluster.kubectl(unbound)).status).toBe(0);
      await soon(namespace, 'two').toMatch(NO_DISKS);
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
      await accountsIn('east', 'worker');
      await accountsIn('west', 'worker');
      expect(await said('east', 'worker')).toMatch(NO_DISKS);
      expect(await said('west', 'worker')).toMatch(NO_DISKS);
      await cluster.apply([binding('use-disks', account('worker', 'west'))]);
      await soon('west', 'worker').toBe('');
      expect(await said('east', 'worker')).toMatch(NO_DISKS);
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
      await accountsIn('roles');
      await soon('roles', 'default', {}).toMatch(/schedulerName: /);
      await soon('kube-system', 'default').toMatch(/schedulerName: /);
      await cluster.apply(roles);
      await soon('roles', 'default', {}).toBe('');
      await soon('kube-system', 'default').toBe('');
      expect(await said('kube-system', 'default', { tolerations: [{ operator: 'Exists' }] })).toBe('');
      expect(await said('roles', 'default')).toMatch(NO_DISKS);
      expect(await said('roles', 'default', { tolerations: [{ operator: 'Exists' }] })).toMatch(
        /tolerations/,
      );
    });
  });
});

/** Of a pod, the parts that are expected of it. */
function contained(spec: Manifest, expected: object): object {
  return Object.fromEntries(
    Object.keys(expected).map((field) => [
      field,
      // Without those that the API server adds to every pod.
      field === 'tolerations'
        ? spec.tolerations.filter((one: Manifest) => one.tolerationSeconds === undefined)
        : spec[field],
    ]),
  );
}
