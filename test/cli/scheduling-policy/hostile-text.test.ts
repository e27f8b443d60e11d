import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { temporaryFile } from '../../support/files.ts';
import { grant, policy, policyFile, run } from './files.ts';

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
      for (const flags of [[], ['--service-account', HOSTILE], ['--format', 'json']]) {
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
      expect(await run('check', file, '--policies', hostilePolicies())).toEqual({
        code: 2,
        stdout: '',
        stderr: `error: ${file}: line 3: a control character or an unusual line break, which must be escaped\n`,
      });
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
    const { code, stdout } = await run('check', file, '--policies', hostilePolicies());
    expect(code).toBe(0);
    expect(stdout).not.toMatch(CONTROLS);
    expect(stdout.split('\n').filter((line) => line.startsWith('allowed'))).toHaveLength(1);
  });
});
