import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { temporaryFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { printed, refused, refusedWith } from '../../support/run-command.ts';
import { policedDouble, RBAC, refuse, useOf } from './cluster.ts';
import { basicPolicies, podFile } from './files.ts';

const fine = () => podFile('{nodeSelector: {disk: ssd}}');
const tape = () => podFile('{nodeSelector: {disk: tape}}');

describe('scheduling-policy check --cluster', () => {
  it('judges by the policies and rights of the cluster', async () => {
    const { run } = await policedDouble();
    expect(printed(await run('check', fine(), '--cluster'))).toBe(
      'allowed for system:serviceaccount:default:default\n',
    );
    expect(await run('check', tape(), '--cluster')).toEqual({
      code: 1,
      stdout: `rejected for system:serviceaccount:default:default
FIELD              REASON                    POLICIES
nodeSelector disk  expected ssd, got "tape"  disks
`,
      stderr: '',
    });
  });

  it('asks the cluster by itself if the service does, with its options and its kubeconfig', async () => {
    const { api, policy } = await policedDouble();
    policy('aaa', { required: { schedulerNames: ['other'] } });
    api.review = () => true;
    const file = temporaryFile(
      'service.conf',
      `[kubernetes]\nsource = cluster\nmerge_strategy = first\naudit = aaa\nkubeconfig = ${api.kubeconfig()}\n`,
    );
    const args = ['scheduling-policy', 'check', tape(), '--config-file', file];
    const { code, stderr } = await runProgramInProcess(args);
    expect(code).toBe(1);
    expect(stderr).toBe('');
    // What the policies in audit mode would refuse is a warning.
    expect(
      await runProgramInProcess(['scheduling-policy', 'check', fine(), '--config-file', file]),
    ).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(
        'a scheduling policy in audit mode would reject this pod: schedulerName',
      ),
    });
  });

  it('uses --policies instead of the cluster of a configuration', async () => {
    const file = temporaryFile('service.conf', '[kubernetes]\nsource = cluster\nkubeconfig = /nonexistent\n');
    const args = ['scheduling-policy', 'check', fine(), '--config-file', file, '--policies', basicPolicies()];
    expect(await runProgramInProcess(args)).toMatchObject({ code: 0, stderr: '' });
  });

  it('asks for few policies of many: those that roles and bindings name', async () => {
    const { api, run, policy, allow } = await policedDouble();
    for (let number = 0; number < 100; number += 1) {
      policy(`other-${number}`, { allowed: {} });
    }
    api.store.put(`${RBAC}/clusterroles`, { metadata: { name: 'use' }, rules: [useOf('disks', 'other-7')] });
    api.store.put(`${RBAC}/clusterrolebindings`, {
      metadata: { name: 'use' },
      roleRef: { kind: 'ClusterRole', name: 'use' },
      subjects: [{ kind: 'Group', name: 'system:authenticated' }],
    });
    allow((_, name) => name === 'disks');
    const reviews = () => api.requests.filter(({ path }) => path.endsWith('subjectaccessreviews')).length;
    const { stdout } = await run('check', fine(), '--cluster', '--format', 'json');
    expect(JSON.parse(stdout).objects[0].policies).toEqual(['disks']);
    expect(reviews()).toBe(3);
    refuse(api, 'clusterroles', 403);
    const unlisted = await run('check', fine(), '--cluster', '--format', 'json');
    expect(JSON.parse(unlisted.stdout).objects[0].policies).toEqual(['disks']);
    expect(unlisted.stderr).toContain(
      'warning: roles and bindings cannot be listed, so every policy is asked for',
    );
    expect(reviews()).toBe(3 + 102);
  });
});

it('scheduling-policy merge --cluster shows what applies to an account', async () => {
  const { run } = await policedDouble();
  expect(
    printed(await run('merge', '--cluster', '--namespace', 'shop')),
  ).toBe(`PART                        VALUE                  POLICY
allowed.schedulerNames      ["default-scheduler"]  disks
allowed.nodeSelectors.disk  ["ssd"]                disks
`);
});

describe('a cluster that gives no answer', () => {
  const COMMANDS = [
    ['scan'],
    ['who-can', 'disks'],
    ['merge', '--cluster', '--namespace', 'shop'],
    ['export', '--cluster'],
  ];

  it.for(COMMANDS)('ends %j with one line and an exit code', async (command) => {
    const { api, run } = await policedDouble();
    api.fault = () => 'closed';
    expect(await run(...command)).toEqual(
      refused(/^error: the cluster gives no answer: https:\/\/127\.0\.0\.1:\d+: [^\n]+\n$/, 3),
    );
    api.fault = () => 'html';
    expect(await run(...command)).toMatchObject({ code: 3, stdout: '' });
    api.fault = () => undefined;
    api.unknown.add('schedulingpolicies');
    expect(await run(...command)).toEqual(
      refusedWith('does not know scheduling policies: apply etc/kubernetes/custom-resource-definition.yaml'),
    );
    api.tokens.clear();
    expect(await run(...command)).toEqual(refused(/^error: (?!.*token").*does not accept these credentials/));
  });
});

describe('the kubeconfig of a command', () => {
  const scan = (env: Record<string, string>, ...flags: string[]) =>
    runProgramInProcess(['scheduling-policy', 'scan', ...flags], {
      env: { HOME: temporaryFolder(), ...env },
    });

  it('comes from $KUBECONFIG, in which files that do not exist count as little as for kubectl', async () => {
    const { api } = await policedDouble();
    const file = api.kubeconfig();
    expect(await scan({ KUBECONFIG: file })).toMatchObject({ code: 0 });
    expect(await scan({ KUBECONFIG: `/nonexistent:${file}` })).toMatchObject({ code: 0 });
  });

  it('is one file: several are not merged', async () => {
    const { api } = await policedDouble();
    expect(await scan({ KUBECONFIG: `${api.kubeconfig()}:${api.kubeconfig()}` })).toEqual(
      refusedWith('$KUBECONFIG: expected one file, got 2, which are not merged'),
    );
  });

  it.for([
    [{}, [], 'there is no cluster to ask: expected --kubeconfig, $KUBECONFIG, '],
    [{ KUBECONFIG: '/nonexistent' }, [], '/nonexistent: could not be read'],
    [
      { KUBECONFIG: '/nonexistent:/neither' },
      [],
      '$KUBECONFIG: none of its files exists: /nonexistent, /neither',
    ],
    [{}, ['--kubeconfig', ''], 'The value is empty'],
    [
      { KUBERNETES_SERVICE_HOST: '10.0.0.1' },
      ['--context', 'a'],
      '--context: a service account has no contexts',
    ],
  ] as const)('is missing: %j %j', async ([env, flags, words]) => {
    expect(await scan(env, ...flags)).toEqual(refusedWith(words));
  });

  it.for([
    [['check', 'x.yaml', '--cluster', '--policies', 'x'], 'could not be read'],
    [['merge'], 'expected --policies or --cluster'],
    [['merge', '--cluster', '--policies', 'x'], 'expected either --cluster or --policies, got both'],
    [
      ['merge', '--policies', 'x', '--context', 'a'],
      'expected --kubeconfig and --context only with --cluster',
    ],
  ] as const)('and other flags must fit: %j', async ([args, words]) => {
    expect(await runProgramInProcess(['scheduling-policy', ...args])).toEqual(refusedWith(words));
  });
});
