import { describe, expect, it } from 'vitest';
import { temporaryFile } from '../../support/files.ts';
import { printed, refused, refusedWith } from '../../support/run-command.ts';
import { policedDouble, refuse } from './cluster.ts';

const TAPE = { nodeSelector: { disk: 'tape' } };
const ofReplicaSet = {
  labels: { 'pod-template-hash': '5d4f8c7b9' },
  ownerReferences: [{ kind: 'ReplicaSet', name: 'web-5d4f8c7b9', controller: true }],
};

describe('scheduling-policy scan', () => {
  it('shows which pods would be refused, by owner, with the reasons', async () => {
    const { run, pod } = await policedDouble();
    pod('shop', 'fine', { nodeSelector: { disk: 'ssd' } });
    for (const name of ['web-a', 'web-b', 'web-c']) {
      pod('shop', name, TAPE, ofReplicaSet);
    }
    pod('ci', 'lone', { ...TAPE, priorityClassName: 'high' });
    expect(await run('scan')).toEqual({
      code: 1,
      stdout: `NAMESPACE  OWNER           PODS  REASON
ci         Pod lone        1     priorityClassName: expected nothing, got "high" (no scheduling policy of the account mentions it)
                                 nodeSelector disk: expected ssd, got "tape" (scheduling policy disks)
shop       Deployment web  3     nodeSelector disk: expected ssd, got "tape" (scheduling policy disks)

4 of 5 pods would be refused; not scanned: kube-system and blazar-enforcement
`,
      stderr: '',
    });
  });

  it('says of a cluster in which nothing would be refused what was scanned', async () => {
    const { run, pod } = await policedDouble();
    pod('shop', 'fine');
    expect(printed(await run('scan'))).toBe(
      '0 of 1 pod would be refused; not scanned: kube-system and blazar-enforcement\n',
    );
  });

  it('prints JSON, with the number of reviews', async () => {
    const { run, pod } = await policedDouble();
    pod('shop', 'web-a', TAPE, ofReplicaSet);
    const { stdout } = await run('scan', '--format', 'json');
    expect(JSON.parse(stdout)).toMatchObject({
      allowed: false,
      scanned: { pods: 1, templates: null, namespaces: 1, accounts: 1 },
      would_be_refused: { pods: 1, templates: null },
      not_scanned: { exempt: 0, mirror: 0 },
      reviews: 1,
      refusals: [
        { owner: { kind: 'Deployment', name: 'web' }, names: ['web-a'], reasons: [{ policies: ['disks'] }] },
      ],
      unlisted: 0,
    });
  });

  it('prints JUnit, with a test case for each owner', async () => {
    const { run, pod } = await policedDouble();
    pod('shop', 'fine');
    pod('shop', 'web-a', TAPE, ofReplicaSet);
    const { code, stdout } = await run('scan', '--format', 'junit');
    expect(code).toBe(1);
    expect(stdout).toContain('tests="2" failures="1"');
    expect(stdout).toContain('<testcase classname="shop" name="pods of Pod fine"/>');
    expect(stdout).toContain('<failure message="1 of 1 pods would be refused">');
  });

  it('reads pods in pages, and asks for the policies of each account once', async () => {
    const { api, run, pod } = await policedDouble();
    for (let number = 0; number < 600; number += 1) {
      pod('shop', `pod-${number}`, { serviceAccountName: `account-${number % 3}` });
    }
    const { stdout } = await run('scan', '--format', 'json');
    expect(JSON.parse(stdout)).toMatchObject({ scanned: { pods: 600, accounts: 3 }, reviews: 3 });
    const lists = api.requests.filter(({ path }) => path === '/api/v1/pods');
    expect(lists.map(({ query }) => query.get('limit'))).toEqual(['250', '250', '250']);
  });

  it('passes over exempt namespaces, mirror pods and pods that have ended', async () => {
    const { api, run, pod } = await policedDouble();
    pod('kube-system', 'dns', TAPE);
    const ownerReferences = [{ kind: 'Node', name: 'n1', controller: true }];
    const mirror = { annotations: { 'kubernetes.io/config.mirror': 'x' }, ownerReferences };
    pod('shop', 'static-n1', { ...TAPE, nodeName: 'n1' }, mirror);
    pod('shop', 'ended', TAPE);
    const ended = api.store.get('/api/v1/namespaces/shop/pods', 'ended');
    api.store.put('/api/v1/namespaces/shop/pods', {
      metadata: { name: 'ended' },
      ...ended,
      status: { phase: 'Succeeded' },
    });
    expect((await run('scan')).stdout).toBe(
      '0 of 0 pods would be refused; not scanned: kube-system and blazar-enforcement, 1 mirror pods\n',
    );
    expect((await run('scan', '--exempt-namespace', 'shop')).stdout).toContain('1 of 1 pod would be refused');
  });

  it('judges a pod that only claims to be a mirror pod', async () => {
    const { run, pod } = await policedDouble();
    pod('shop', 'claims', TAPE, { annotations: { 'kubernetes.io/config.mirror': 'x' } });
    expect((await run('scan')).code).toBe(1);
  });

  it('judges templates with --workloads, but not those that another object controls, or that are done', async () => {
    const { api, run } = await policedDouble();
    const at = (group: string, resource: string, name: string, parts: object, metadata: object = {}) =>
      api.store.put(`/apis/${group}/v1/namespaces/shop/${resource}`, {
        metadata: { name, namespace: 'shop', ...metadata },
        ...parts,
      });
    const spec = { template: { spec: TAPE } };
    at('apps', 'deployments', 'idle', { spec: { replicas: 0, ...spec } });
    at(
      'apps',
      'replicasets',
      'idle-5d4f8c7b9',
      { spec },
      { ownerReferences: [{ kind: 'Deployment', name: 'idle', controller: true }] },
    );
    at('batch', 'jobs', 'done', { spec, status: { conditions: [{ type: 'Complete', status: 'True' }] } });
    at('batch', 'cronjobs', 'nightly', { spec: { jobTemplate: { spec } } });
    at('apps', 'statefulsets', 'odd', { spec: { template: 7 } });
    const { code, stdout } = await run('scan', '--workloads');
    expect(code).toBe(1);
    expect(stdout).toMatch(/^shop +CronJob nightly +template +nodeSelector disk: /m);
    expect(stdout).toMatch(/^shop +Deployment idle +template +nodeSelector disk: /m);
    expect(stdout).toMatch(/^shop +StatefulSet odd +template +: it cannot be read: /m);
    expect(stdout).toContain('0 of 0 pods would be refused, 3 of 3 templates would be refused');
  });

  it('refuses accounts that may use an invalid policy, and says so', async () => {
    const { run, pod, policy, allow } = await policedDouble();
    policy('wrong', { odd: 1 });
    allow((user, name) => name === 'disks' || (name === 'wrong' && user.endsWith(':web')));
    pod('shop', 'of-default');
    pod('shop', 'of-web', { serviceAccountName: 'web' });
    const { code, stdout, stderr } = await run('scan');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^warning: scheduling policy wrong is invalid: spec\.odd: unknown field.*\n$/);
    expect(stdout).toMatch(/^shop +Pod of-web +1 +metadata\.name: the policy is invalid: spec\.odd/m);
    expect(stdout).toContain('1 of 2 pods would be refused');
  });

  it('takes the PriorityClass that the cluster gives to everybody for allowed', async () => {
    const { api, run, pod } = await policedDouble();
    api.store.put('/apis/scheduling.k8s.io/v1/priorityclasses', {
      metadata: { name: 'usual' },
      globalDefault: true,
      value: 7,
    });
    pod('shop', 'web', { priorityClassName: 'usual' });
    expect(await run('scan')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('judged as by a service with default_priority_class = usual'),
    });
    const file = temporaryFile('service.conf', '[kubernetes]\nsource = cluster\n');
    expect(await run('scan', '--config-file', file)).toMatchObject({
      code: 1,
      stderr:
        'warning: default_priority_class is not set, but the cluster has the PriorityClass usual with globalDefault: true\n',
    });
  });

  it('goes on without PriorityClasses that it may not list, and says so', async () => {
    const { api, run, pod } = await policedDouble();
    refuse(api, 'priorityclasses', 403);
    pod('shop', 'fine');
    expect(await run('scan')).toMatchObject({
      code: 0,
      stderr: 'warning: the default PriorityClass of the cluster is not known: an answer with 403\n',
    });
  });

  it('says that a namespace does not exist, with the nearest that does', async () => {
    const { api, run, pod } = await policedDouble();
    pod('shop', 'fine');
    api.store.put('/api/v1/namespaces', { metadata: { name: 'shop' } });
    expect(await run('scan', '--namespace', 'shpo')).toEqual(
      refused('there is no namespace "shpo" in the cluster; the nearest right name is "shop"'),
    );
  });

  it('asks for a new start where the list has expired', async () => {
    const { api, run, pod } = await policedDouble();
    for (let number = 0; number < 300; number += 1) {
      pod('shop', `pod-${number}`);
    }
    api.fault = ({ query }) => (query.has('continue') ? { status: 410 } : undefined);
    expect(await run('scan')).toEqual(refusedWith('the list has expired: try again', 3));
  });

  it('shows nothing that controls a terminal, whatever pods hold', async () => {
    const { run, pod } = await policedDouble();
    pod('shop', 'web', { schedulerName: '\u001b[2J\u202e\nx', nodeSelector: { ']]>': '<a>&' } });
    for (const format of ['table', 'json', 'junit']) {
      const { stdout, code } = await run('scan', '--format', format);
      expect(code).toBe(1);
      expect(stdout.includes('\u001b') || stdout.includes('\u202e')).toBe(false);
    }
  });

  it('says that a server answers with something else than pods', async () => {
    const { api, run } = await policedDouble();
    api.store.put('/api/v1/pods', { metadata: { name: 'nowhere' } });
    expect(await run('scan')).toEqual(
      refused(/^error: the cluster gives no answer: \S+ sends objects that cannot be read\n$/, 3),
    );
  });

  it('does not shorten its answer where a review fails in the middle', async () => {
    const { api, run, pod } = await policedDouble();
    pod('shop', 'fine');
    pod('shop', 'web', { serviceAccountName: 'web' });
    api.fault = ({ path, body }) =>
      path.endsWith('subjectaccessreviews') && body.includes(':web"') ? { status: 500 } : undefined;
    expect(await run('scan')).toEqual(
      refused(/^error: https:\/\/127\.0\.0\.1:\d+ answered 500 Faulty: an answer with 500\n$/, 3),
    );
  });

  it.for([
    [['--namespace', 'a', '--all-namespaces'], 'expected either --namespace or --all-namespaces, got both'],
    [['--namespace', 'kube-system'], '--namespace kube-system: webhooks do not look at this namespace'],
    [['--selector', ''], 'The value is empty'],
    [['--namespace', '..'], 'Expected the name of a namespace'],
  ] as const)('refuses %j', async ([flags, words]) => {
    const { run } = await policedDouble();
    expect(await run('scan', ...flags)).toEqual(refusedWith(words));
  });
});
