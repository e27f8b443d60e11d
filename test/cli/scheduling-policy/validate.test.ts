import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { temporaryFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { basicPolicies, EVERYBODY, grant, policy, policyFile, run } from './files.ts';

describe('scheduling-policy validate', () => {
  it('counts policies, roles and bindings', async () => {
    expect(await runProgramInProcess(['scheduling-policy', 'validate', basicPolicies()])).toEqual({
      code: 0,
      stdout: 'no mistakes in 2 scheduling policies, 2 roles, 2 bindings\n',
      stderr: '',
    });
    const one = temporaryFile('one.yaml', policy('one', '{}'));
    expect(await run('validate', one)).toMatchObject({
      stdout: 'no mistakes in 1 scheduling policy, 0 roles, 0 bindings\n',
    });
    const more = temporaryFile('more.yaml', grant('one', EVERYBODY));
    expect(await run('validate', one, more)).toEqual({
      ...{ code: 0, stderr: '' },
      stdout: 'no mistakes in 1 scheduling policy, 1 role, 1 binding\n',
    });
  });

  it('reports all errors and warnings of all files with their lines', async () => {
    const folder = join(temporaryFolder(), 'policies');
    mkdirSync(folder);
    const texts = {
      'a.yaml': `${policy('a', '{required: {schedulerNames: []}, allowed: {nodeSelector: {}}}')}---\n${policy('b', '{}')}`,
      'b.yml': policy('b', '{}'),
      'broken.yaml': 'kind: SchedulingPolicy\nspec: [',
      'c.json': '{"kind": "Role"}',
      'roles.yaml': grant('gone', EVERYBODY),
      'notes.txt': 'not read',
    };
    for (const [name, text] of Object.entries(texts)) {
      writeFileSync(join(folder, name), text);
    }
    const missing = join(folder, 'missing.yaml');
    const { code, stdout, stderr } = await runProgramInProcess([
      'scheduling-policy',
      'validate',
      folder,
      missing,
    ]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    const lines = stderr.trimEnd().replaceAll(`${folder}/`, '').split('\n');
    expect(lines).toEqual([
      'error: missing.yaml: could not be read: there is no such file',
      'error: broken.yaml:2: bad indent',
      expect.stringMatching(
        /^error: a\.yaml:4: spec\.required\.schedulerNames: expected .*got an empty list$/,
      ),
      'error: a.yaml:4: spec.allowed.nodeSelector: unknown field; the nearest right name is "nodeSelectors"',
      expect.stringMatching(
        /^error: b\.yml:3: metadata\.name: duplicate name: .* is defined at \S*a\.yaml:6$/,
      ),
      'error: c.json:1: apiVersion: expected rbac.authorization.k8s.io/v1',
      'error: c.json:1: metadata.name: expected a name',
      expect.stringMatching(/^warning: roles\.yaml:4: .*there is no SchedulingPolicy "gone"/),
    ]);
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

  it('rejects an empty folder and an empty file', async () => {
    const folder = temporaryFolder();
    const empty = temporaryFile('empty.yaml', '# nothing\n');
    const { code, stderr } = await run('validate', folder, empty);
    expect(code).toBe(2);
    expect(stderr).toBe(
      `error: ${folder}: no *.yaml, *.yml or *.json file in this folder\nerror: ${empty}: no document in this file\n`,
    );
  });
});
