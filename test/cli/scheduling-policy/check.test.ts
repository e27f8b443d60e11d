import { describe, expect, it } from 'vitest';
import { unifiedDiff } from '../../../src/cli/common/output.ts';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { temporaryFile } from '../../support/files.ts';
import { printed, refused, refusedWith } from '../../support/run-command.ts';
import { basicPolicies, check, EVERYBODY, grant, podFile, policiesOfAll, policyFile, run } from './files.ts';

const WEB = `# Whoever wrote this
apiVersion: v1
kind: Pod
metadata:
  name: web   # as it is called
  namespace: shop
spec:
  containers:
    - {name: web, image: nginx}
`;
const TOLERANT = '{tolerations: [{key: ci, operator: Exists}]}';
const RAW = '{nodeSelector: {disk: tape}, schedulerName: own, tolerations: [{key: ci, operator: Exists}]}';

describe('scheduling-policy check', () => {
  it('allows a pod, and shows what is added to it', async () => {
    const file = temporaryFile('web.yaml', WEB);
    const args = ['scheduling-policy', 'check', file, '--policies', basicPolicies()];
    expect(printed(await runProgramInProcess(args))).toBe(`allowed for system:serviceaccount:shop:default

--- ${file}
+++ (changed by policies)
@@ -7,3 +7,5 @@
 spec:
   containers:
     - { name: web, image: nginx }
+  nodeSelector:
+    disk: ssd
`);
  });

  it('rejects a pod with all reasons and their policies, and shows no diff', async () => {
    const args = ['scheduling-policy', 'check', podFile(RAW), '--policies', basicPolicies()];
    expect(await runProgramInProcess(args)).toEqual({
      code: 1,
      stdout: `rejected for system:serviceaccount:default:default
FIELD              REASON                                                   POLICIES
schedulerName      expected default-scheduler, got "own"                    basic
nodeSelector disk  expected hdd or ssd, got "tape"                          basic
tolerations[0]     expected nothing, got "ci" with any value, every effect
`,
      stderr: '',
    });
  });

  it('judges by the rules of the configuration too, except those that need who sends the pod', async () => {
    const rules = (allow: string) =>
      temporaryFile(
        'rules.yaml',
        `rules: [{name: own-images, on: pod, allow: '${allow}', message: Only ours.}]\n`,
      );
    const images = 'pod.containers.all(one, one.image.startsWith("ours/"))';
    const configuration = (allow: string, more = '') =>
      temporaryFile('service.conf', `[enforcement]\n[kubernetes]\nrules_path = ${rules(allow)}\n${more}`);
    const file = temporaryFile('web.yaml', WEB);
    const said = {
      code: 1,
      stdout: `rejected for system:serviceaccount:shop:default
FIELD            REASON      POLICIES
rule own-images  Only ours.
`,
      stderr: '',
    };
    expect(await run('check', file, '--config-file', configuration(images))).toEqual(said);
    expect(await check(file, '--config-file', configuration(images))).toEqual(said);
    const byUser = configuration('user.name == "root"', `scheduling_policies = ${basicPolicies()}\n`);
    expect(await run('check', file, '--config-file', byUser)).toMatchObject({ code: 0, stderr: '' });
    const broken = configuration('pod.labels.team == "a"');
    expect(await run('check', file, '--config-file', broken)).toEqual(
      refusedWith('rule own-images: allow failed', 3),
    );
  });

  it('prints JSON', async () => {
    const file = temporaryFile('web.yaml', WEB);
    const policies = basicPolicies();
    const stdout = printed(await run('check', file, '--policies', policies, '--format', 'json'));
    expect(stdout).toMatch(/^\{.*\}\n$/);
    const { objects, ...all } = JSON.parse(stdout);
    expect(all).toEqual({ file, allowed: true });
    expect(objects).toHaveLength(1);
    expect(objects[0]).toEqual({
      kind: 'Pod',
      name: 'web',
      namespace: 'shop',
      user: 'system:serviceaccount:shop:default',
      policies: ['basic'],
      allowed: true,
      reasons: [],
      warnings: [],
      diff: expect.stringMatching(
        /^--- \S+web\.yaml\n\+\+\+ \(changed by policies\)\n@@ .*\n\+ {4}disk: ssd\n$/s,
      ),
    });
    const refused = await run('check', podFile(RAW), '--policies', policies, '--format', 'json');
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout).objects[0]).toMatchObject({
      allowed: false,
      diff: '',
      reasons: [
        {},
        {
          field: 'nodeSelector disk',
          expectation: 'expected hdd or ssd, got "tape"',
          policies: ['basic'],
          message: 'nodeSelector disk: expected hdd or ssd, got "tape" (scheduling policy basic)',
        },
        { policies: [], message: expect.stringContaining('no scheduling policy of the account mentions it') },
      ],
    });
  });

  it('reads standard input, and JSON', async () => {
    const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: {}, spec: {} }, null, 2);
    const args = ['scheduling-policy', 'check', '-', '--policies', basicPolicies()];
    const stdout = printed(await runProgramInProcess(args, { stdin }));
    expect(stdout).toContain('\n--- standard input\n+++ (changed by policies)\n');
    expect((await runProgramInProcess(args, { stdin: WEB.replace('Pod', 'Service') })).stderr).toMatch(
      /^error: standard input: expected a pod or an object that creates pods: one of Pod, .*, List\n$/,
    );
  });
});

it('the diff has the header of diff -u, whatever the names', async () => {
  for (const name of ['a', 'b']) {
    expect(await unifiedDiff(['a', name], 'x\n', 'y\n')).toBe(
      `--- a\n+++ ${name}\n@@ -1,1 +1,1 @@\n-x\n+y\n`,
    );
  }
});

describe('scheduling-policy check uses the account of the pod:', () => {
  const verdict = async (file: string, ...flags: string[]) => {
    const { code, stdout, stderr } = await check(file, ...flags);
    expect(stderr).toBe('');
    return [code, stdout.split('\n')[0]];
  };
  const tolerant = (metadata: string, account = '') => podFile(`{${account}${TOLERANT.slice(1)}`, metadata);
  const allowed = [0, 'allowed for system:serviceaccount:ci:builder'];
  const rejected = (account: string) => [1, `rejected for system:serviceaccount:${account}`];

  it('its service account, in its namespace', async () => {
    expect(await verdict(tolerant('{namespace: ci}', 'serviceAccountName: builder, '))).toEqual(allowed);
  });

  it('not a RoleBinding of another namespace or for another account', async () => {
    expect(await verdict(tolerant('{namespace: shop}', 'serviceAccountName: builder, '))).toEqual(
      rejected('shop:builder'),
    );
    expect(await verdict(tolerant('{namespace: ci}'))).toEqual(rejected('ci:default'));
  });

  it('or the one of the flags, if the pod names none', async () => {
    const flags = ['--namespace', 'ci', '--service-account', 'builder'];
    expect(await verdict(tolerant('{name: x}'), ...flags)).toEqual(allowed);
    expect(await verdict(tolerant("{namespace: ''}"), ...flags)).toEqual(allowed);
    expect(await verdict(tolerant('{namespace: ci}', 'serviceAccountName: other, '), ...flags)).toEqual(
      allowed,
    );
    expect(await verdict(tolerant('{name: x}'))).toEqual(rejected('default:default'));
  });

  it('and rejects a pod in another namespace than the flag', async () => {
    const file = tolerant('{namespace: shop}');
    expect(await check(file, '--namespace', 'ci')).toEqual(
      refused(`${file}: --namespace is ci, but the pod is in shop`),
    );
  });

  it.for(['--namespace', '--service-account'])('and refuses %s without a name', async (flag) => {
    expect(await check(podFile('{}'), `${flag}=`)).toEqual(refusedWith(flag));
  });
});

describe('scheduling-policy check decides like the webhook', () => {
  it('with the given merge strategy, by default deep', async () => {
    const policies = policiesOfAll({
      a: '{required: {nodeSelectors: {disk: [ssd]}}, allowed: {schedulerNames: []}}',
      b: '{required: {nodeSelectors: {disk: [hdd], zone: []}}, allowed: {schedulerNames: []}}',
    });
    const judge = (...flags: string[]) =>
      run('check', podFile('{nodeSelector: {disk: ssd}}'), '--policies', policies, ...flags);
    expect((await judge()).code).toBe(1);
    expect((await judge('--merge-strategy', 'first')).code).toBe(0);
  });

  it('warns about missing names and continues', async () => {
    const policies = policyFile(grant('gone', EVERYBODY));
    expect(await run('check', podFile('{}'), '--policies', policies)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(`^warning: ${policies}:4: .*there is no SchedulingPolicy "gone"\n$`),
      ),
    });
  });
});
