import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { projectFile, temporaryFile } from '../../support/files.ts';
import { policy, policyFile, run } from './files.ts';

const EXAMPLES = projectFile('examples/scheduling-policies/pods/policies.yaml');
const NOTHING_ADDED =
  'policy everybody: default.nodeSelector.kubernetes.io/arch = "amd64" is not added: pods without this label are refused';

interface Exported {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: { readonly failurePolicy?: string; readonly validationActions?: string[] };
}

const read = (text: string) => parseAllDocuments(text).map((one) => one.toJS() as Exported);

describe('scheduling-policy export', () => {
  it('writes rules for pods, and refuses with its place what Kubernetes may understand differently', async () => {
    const rules = (name: string, allow: string) =>
      temporaryFile(name, `rules:\n  - name: one\n    on: pod\n    allow: ${allow}\n    message: No.\n`);
    const { code, stdout } = await run('export', '--rules', rules('same.yaml', 'pod.claims == 0'));
    expect({ code, actions: actions(stdout) }).toEqual({ code: 0, actions: [['Deny']] });
    const file = rules('other.yaml', 'pod.claims == 0 && gpus(pod) <= 2.0');
    const refused = await run('export', '--rules', file);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(`${file}:4:31: `);
    expect(refused.stderr).toContain('"gpus(pod)" may mean something else in Kubernetes');
    expect(await run('export', 'gpu', '--rules', file)).toMatchObject({ code: 2, stdout: '' });
  });

  it('writes policies and bindings for pods, DaemonSets and bindings, and says what it leaves out', async () => {
    const { code, stdout, stderr } = await run('export', '--policies', EXAMPLES);
    expect({ code, stderr }).toEqual({ code: 0, stderr: `warning: ${NOTHING_ADDED}\n` });
    expect(stdout).toContain(`# Not expressed:\n# - ${NOTHING_ADDED}\n`);
    expect(read(stdout).map(({ kind, metadata: { name } }) => `${kind} ${name}`)).toEqual(
      ['pods', 'daemonsets', 'bindings'].flatMap((one) => [
        `ValidatingAdmissionPolicy scheduling-policies-${one}`,
        `ValidatingAdmissionPolicyBinding scheduling-policies-${one}`,
      ]),
    );
  });

  it('says that a default whose selector Kubernetes completes is refused, where nothing else allows it', async () => {
    const term = '{topologyKey: host, labelSelector: {}, matchLabelKeys: [hash]}';
    const added = `default: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [${term}]}}}`;
    const said = async (spec: string) =>
      (await run('export', '--policies', policyFile(policy('a', `{${spec}}`)))).stderr;
    const refused = 'pods with it are refused, because Kubernetes completes its selector';
    expect(await said(added)).toContain(`pods without such an affinity stay without; ${refused}\n`);
    expect(await said(`${added}, allowed: {affinities: {podAffinities: {}}}`)).not.toContain(refused);
    expect(await said(`${added}, required: {affinities: {podAffinities: {}}}`)).not.toContain(refused);
  });

  it('exits with 1 with --strict if something is left out, and with 0 if all is said', async () => {
    expect(await run('export', '--policies', EXAMPLES, '--strict')).toMatchObject({ code: 1 });
    const result = await run('export', 'gpu', '--policies', EXAMPLES, '--strict');
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toContain('# Everything is expressed.\n');
    expect(result.stdout).not.toContain('everybody');
  });

  it('leaves out policies in audit mode, and only warns if all are', async () => {
    const conf = (audit: string) =>
      temporaryFile(
        `${audit.length}.conf`,
        `[kubernetes]\nscheduling_policies = ${EXAMPLES}\naudit = ${audit}\n`,
      );
    const one = await run('export', '--config-file', conf('everybody'));
    expect(one.stderr).toBe(
      'warning: policy everybody is in audit mode and is left out: accounts that may use no other policy are refused\n',
    );
    expect(one.stdout).not.toContain("name('everybody')");
    const all = await run('export', '--config-file', conf('*'));
    expect(actions(all.stdout)).toEqual([
      ['Warn', 'Audit'],
      ['Warn', 'Audit'],
      ['Warn', 'Audit'],
    ]);
    expect(actions((await run('export', '--policies', EXAMPLES)).stdout)).toEqual([
      ['Deny'],
      ['Deny'],
      ['Deny'],
    ]);
  });

  it('takes settings of the cluster from --config-file', async () => {
    const text = `[kubernetes]\nscheduling_policies = ${EXAMPLES}\nsystem_tolerations = own:NoSchedule\nschedulers = mine\n`;
    const { stdout } = await run('export', '--config-file', temporaryFile('own.conf', text));
    expect(stdout).toContain("t.key == 'own'");
    expect(stdout).toContain("request.userInfo.username in ['mine']");
    expect(stdout).not.toContain('t.tolerationSeconds == 300');
  });

  it('writes hostile names as comments of one line', async () => {
    const name = '"x\\nspec: {failurePolicy: Ignore}\\u202e"';
    const file = policyFile(policy(name, '{default: {schedulerName: "a\\nb"}}'));
    const { code, stdout, stderr } = await run('export', '--policies', file);
    expect({ code, warnings: stderr.split('\n').length }).toEqual({ code: 0, warnings: 2 });
    expect(stdout).toContain('#   use1: x spec: {failurePolicy: Ignore}\\u202e\n');
    const objects = read(stdout);
    expect(objects).toHaveLength(6);
    expect(objects[0]?.spec.failurePolicy).toBe('Fail');
  });

  it.each([
    [
      ['evrybody', '--policies', EXAMPLES],
      'there is no scheduling policy "evrybody"; the nearest right name is "everybody"',
    ],
    [['--policies', '/nowhere'], '/nowhere: could not be read'],
    [[], 'expected --policies, --cluster, or --config-file'],
    [['--policies', EXAMPLES, '--name', 'No Name'], '--name: expected lower-case letters'],
    [['--policies', EXAMPLES, '--cluster'], 'expected either --cluster or --policies, got both'],
  ])('refuses %j', async (args, message) => {
    const result = await run('export', ...args).catch((thrown: unknown) => ({
      code: 2,
      stdout: '',
      stderr: String(thrown),
    }));
    expect(result).toMatchObject({ stdout: '', stderr: expect.stringContaining(message) });
    expect(result.code).not.toBe(0);
  });
});

function actions(text: string): unknown[] {
  return read(text).flatMap(({ spec: { validationActions } }) =>
    validationActions ? [validationActions] : [],
  );
}
