import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { temporaryFile } from '../../support/files.ts';
import { printed, refused } from '../../support/run-command.ts';
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
    ['no template', 'kind: Deployment\nspec: {}', 'spec.template: expected an object'],
    ['nothing', '', 'expected a pod or an object that creates pods'],
    ['a list', '- kind: Pod', 'expected an object with kind'],
    ['no spec', 'kind: Pod\n', 'spec: '],
    ['a list without items', 'kind: List\n', 'items'],
    ['an item that is none', 'kind: List\nitems: [7]\n', ''],
    ['a hostile kind', 'kind: __proto__\nspec: {}\n', 'expected a pod or'],
    ['a field twice', 'kind: Pod\nspec: {nodeSelector: {disk: hdd}, nodeSelector: {}}\n', ''],
    [
      'one that is wrong among others',
      'kind: Pod\nspec: {}\n---\nkind: Pod\nspec: {nodeSelector: 7}\n',
      'nodeSelector',
    ],
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
    expect(await runProgramInProcess(args, { stdin: `${longest} ` })).toEqual(
      refused(`standard input: ${tooLong}`),
    );
    expect(await runProgramInProcess(args, { stdin: Uint8Array.of(0xff) })).toEqual(
      refused('standard input: could not be read: it is not UTF-8 text'),
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
    'check --policies x.yaml',
    'check a.yaml b.yaml --policies x.yaml',
    'merge x.yaml --policies x.yaml',
    'merge --policies /nowhere.yaml',
    'validate',
    'validate /nowhere.yaml',
  ])('and in the command end with 2: "%s"', async (line) => {
    const [command = '', ...args] = line.split(' ');
    expect(await run(command as 'check', ...args)).toEqual(refused(/^error: .+\n/));
  });
});

describe('an account that cannot exist', () => {
  it.each([
    ['--service-account', 'shop/web', 'Its namespace is --namespace.'],
    ['--service-account', 'system:serviceaccount:shop:web', 'Its namespace is --namespace.'],
    ['--namespace', 'Shop', 'Expected the name of a namespace'],
  ])('is refused: %s %s', async (flag, value, expected) => {
    for (const args of [['check', podFile('{}')], ['merge']]) {
      const line = ['scheduling-policy', ...args, '--policies', basicPolicies(), flag, value];
      const { code, stderr } = await runProgramInProcess(line);
      expect(code).toBe(2);
      expect(stderr).toContain(expected);
    }
  });
});

/** Erases the screen, names the window, rings the bell, and ends the line in three ways; C0 and C1. */
const HOSTILE = '\u001b[2J\u001b]0;owned\u0007\u009b31mred\r\nallowed for root\u2028y\u0085z';
const CONTROLS = /(?!\n)[\p{Cc}\u2028\u2029]/u;
/** As JSON and YAML write it: what YAML has no place for stands escaped. */
const quoted = (text: string) =>
  JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
const QUOTED = quoted(HOSTILE);

const hostilePolicies = () =>
  policyFile(
    policy(
      QUOTED,
      `{required: {nodeSelectors: {${QUOTED}: [${QUOTED}]}}, allowed: {schedulerNames: []}, default: {nodeSelector: {${QUOTED}: ${QUOTED}}}}`,
    ),
    grant(QUOTED, `{kind: Group, name: system:authenticated}, {kind: User, name: ${QUOTED}}`),
  );
const hostilePod = (spec: string) =>
  temporaryFile(
    'pod.yaml',
    `{"kind": "Pod", "metadata": {"name": ${QUOTED}, "labels": {${QUOTED}: ${QUOTED}}}, "spec": ${spec}}`,
  );

describe('hostile text of scheduling policies and pods', () => {
  it.for(['{}', `{"nodeSelector": {${QUOTED}: ${QUOTED}, ${quoted(`${HOSTILE}2`)}: "x"}}`])(
    'stays on its line, in what check prints of a pod with the spec %#',
    async (spec) => {
      for (const flags of [[], ['--format', 'json']]) {
        const { code, stdout, stderr } = await run(
          'check',
          hostilePod(spec),
          '--policies',
          hostilePolicies(),
          ...flags,
        );
        expect(code).toBeLessThan(2);
        expect(stdout + stderr).not.toMatch(CONTROLS);
        expect(stdout.match(/^allowed for root/m)).toBeNull();
      }
    },
  );

  it.for(['\u009b31m', '\u2028', '\u0085', '\u001b[2J', '\u007f'])(
    'is refused where it stands raw in a pod, and not repeated: %j',
    async (raw) => {
      const file = temporaryFile('pod.yaml', `kind: Pod\nspec: {}\nmetadata: {name: "x${raw}y"}\n`);
      expect(await run('check', file, '--policies', hostilePolicies())).toEqual(
        refused(`${file}: line 3: a control character or an unusual line break, which must be escaped`),
      );
    },
  );

  it('stays in its cell in the output of merge', async () => {
    const policies = hostilePolicies();
    for (const flags of [
      [],
      ['--format', 'json'],
      ['--user', HOSTILE],
      ['--user', HOSTILE, '--format', 'json'],
    ]) {
      const { code, stdout, stderr } = await run('merge', '--policies', policies, ...flags);
      expect(code).toBe(0);
      expect(stdout + stderr).not.toMatch(CONTROLS);
      expect(stdout).not.toMatch(/^allowed for root/m);
    }
  });

  it('stays on its line in messages about namespaces, files and errors', async () => {
    const pod = temporaryFile('pod.yaml', `kind: Pod\nmetadata: {namespace: ${QUOTED}}\nspec: {}\n`);
    const wrong = policyFile(policy(QUOTED, `{${QUOTED}: ${QUOTED}, allowed: {schedulerNames: ${QUOTED}}}`));
    const policies = hostilePolicies();
    const check = ['check', pod, '--policies', policies];
    for (const args of [
      [...check, '--namespace', HOSTILE.slice(1)],
      [...check, '--service-account', HOSTILE],
      ['check', `/nowhere/${HOSTILE}`, '--policies', policies],
      [...check, '--merge-strategy', HOSTILE],
      ['check', pod, '--policies', `/nowhere/${HOSTILE}`],
      ['validate', wrong],
    ]) {
      const { code, stdout, stderr } = await runProgramInProcess(['scheduling-policy', ...args]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).not.toMatch(CONTROLS);
      for (const line of stderr.trimEnd().split('\n')) {
        expect(line).toMatch(/^error: /);
      }
    }
  });

  it('in a file name stays in the header of the diff', async () => {
    const file = temporaryFile(`${HOSTILE.replaceAll('/', '')}.yaml`, 'kind: Pod\nspec: {}\n');
    const stdout = printed(await run('check', file, '--policies', hostilePolicies()));
    expect(stdout).not.toMatch(CONTROLS);
    expect(stdout.split('\n').filter((line) => line.startsWith('allowed'))).toHaveLength(1);
  });
});

describe('scheduling-policy validate', () => {
  it('counts policies, roles and bindings', async () => {
    expect(printed(await runProgramInProcess(['scheduling-policy', 'validate', basicPolicies()]))).toBe(
      'no mistakes in 2 scheduling policies, 2 roles, 2 bindings\n',
    );
    const one = temporaryFile('one.yaml', policy('one', '{}'));
    expect(await run('validate', one)).toMatchObject({
      stdout: 'no mistakes in 1 scheduling policy, 0 roles, 0 bindings\n',
    });
    const more = temporaryFile('more.yaml', grant('one', EVERYBODY));
    expect(printed(await run('validate', one, more))).toBe(
      'no mistakes in 1 scheduling policy, 1 role, 1 binding\n',
    );
  });

  it('ends with 0 if there are only warnings', async () => {
    const file = policyFile(grant('gone', EVERYBODY));
    const { code, stdout, stderr } = await run('validate', file);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: 'no mistakes in 0 scheduling policies, 1 role, 1 binding\n',
    });
    expect(stderr).toMatch(/^warning: .+\n$/);
  });
});
