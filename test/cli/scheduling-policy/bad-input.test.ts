import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { temporaryFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { basicPolicies, check, EVERYBODY, grant, podFile, policy, policyFile, run } from './files.ts';

const POD = 'kind: Pod\nspec: {}\n';
const LARGEST = 3 * 1024 * 1024;

/** Checks a file, which is refused; what is said of it. */
async function refusal(content: string | Uint8Array): Promise<string> {
  const file = temporaryFile('pod.yaml', content);
  const { code, stdout, stderr } = await check(file);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^error: .+\n$/);
  return stderr.slice('error: '.length, -1).replace(`${file}: `, '');
}

describe('scheduling-policy check rejects invalid input:', () => {
  it.for<[string, string, string]>([
    ['another kind', 'kind: Service\nspec: {}', 'expected a pod or an object that creates pods'],
    ['a kind in other letters', 'kind: pod\nspec: {}', 'expected a pod or an object that creates pods'],
    ['no template', 'kind: Deployment\nspec: {}', 'spec.template: expected an object'],
    ['nothing', '', 'expected a pod or an object that creates pods'],
    ['only comments', '# kind: Pod\n---\n', 'expected a pod or an object that creates pods'],
    ['a text', 'Pod', 'expected an object with kind'],
    ['a list', '- kind: Pod', 'expected an object with kind'],
    ['no spec', 'kind: Pod\n', 'spec: '],
    ['a number for a label', 'kind: Pod\nspec: {nodeSelector: {disk: 1}}', 'spec.nodeSelector.disk: '],
    ['a text for tolerations', 'kind: Pod\nspec: {tolerations: x}', 'spec.tolerations: '],
    ['broken YAML', 'kind: Pod\nspec:\n  a: [1, 2\n', 'line '],
    ['a name that is ambiguous', 'kind: Pod\nspec: {a: 1, <<: [*x]}', ''],
    ['too deep a list', `kind: Pod\nspec: ${'['.repeat(5000)}`, ''],
  ])('%s', async ([, text, expected]) => {
    expect(await refusal(text)).toContain(expected);
  });

  it('bytes that are not UTF-8', async () => {
    expect(await refusal(Uint8Array.of(0x6b, 0xff, 0xfe))).toBe('could not be read: it is not UTF-8 text');
  });

  it('more than 3 MiB, from a file and from standard input', async () => {
    const longest = `${POD}#${' '.repeat(LARGEST - POD.length - 1)}`;
    const tooLong = `could not be read: it is longer than ${LARGEST} bytes`;
    const policies = basicPolicies();
    expect((await run('check', temporaryFile('p.yaml', longest), '--policies', policies)).code).toBe(0);
    expect(await refusal(`${longest} `)).toBe(tooLong);
    const args = ['scheduling-policy', 'check', '-', '--policies', policies];
    expect(await runProgramInProcess(args, { stdin: `${longest} ` })).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: standard input: ${tooLong}\n`,
    });
    expect(await runProgramInProcess(args, { stdin: Uint8Array.of(0xff) })).toMatchObject({
      code: 2,
      stderr: 'error: standard input: could not be read: it is not UTF-8 text\n',
    });
  });

  it('a folder and a missing file', async () => {
    const folder = temporaryFolder();
    const policies = basicPolicies();
    const tried = async (path: string) => {
      const { code, stdout, stderr } = await run('check', path, '--policies', policies);
      return { code, stdout, stderr: stderr.replace(folder, '') };
    };
    expect(await tried(folder)).toEqual({
      ...{ code: 2, stdout: '' },
      stderr: 'error: : could not be read: it is a folder\n',
    });
    expect((await tried(`${folder}/none`)).stderr).toBe(
      'error: /none: could not be read: there is no such file\n',
    );
  });
});

describe('errors in policies', () => {
  const WRONG = policy('wrong', '{allowed: {schedulerName: x}}');

  it.for(['check', 'merge'] as const)('keep %s from answering', async (command) => {
    const policies = policyFile(WRONG, grant('gone', EVERYBODY));
    const args = command === 'check' ? [podFile('{}')] : [];
    const { code, stdout, stderr } = await run(command, ...args, '--policies', policies);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr.split('\n')).toEqual([
      `error: ${policies}:4: spec.allowed.schedulerName: unknown field; the nearest right name is "schedulerNames"`,
      expect.stringMatching(/^warning: .*there is no SchedulingPolicy "gone"/),
      '',
    ]);
  });

  it.for([
    'check pod.yaml',
    'check --policies x.yaml',
    'check a.yaml b.yaml --policies x.yaml',
    'check pod.yaml --policies x.yaml --merge-strategy union',
    'check pod.yaml --policies x.yaml --format table',
    'check pod.yaml --policies x.yaml --user lin',
    'merge',
    'merge x.yaml --policies x.yaml',
    'merge --policies x.yaml --merge-strategy Deep',
    'merge --policies x.yaml --format diff',
    'merge --policies /nowhere.yaml',
    'validate',
    'validate /nowhere.yaml',
  ])('and in the command end with 2: "%s"', async (line) => {
    const [command = '', ...args] = line.split(' ');
    const { code, stdout, stderr } = await run(command as 'check', ...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^error: .+\n/);
  });
});
