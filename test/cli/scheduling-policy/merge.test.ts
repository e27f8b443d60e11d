import { describe, expect, it } from 'vitest';
import { rows } from '../../support/check-command.ts';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { printed, refused } from '../../support/run-command.ts';
import { basicPolicies, EVERYBODY, grant, policiesOfAll, policy, policyFile, run } from './files.ts';

const merged = async (policies: string, ...flags: string[]) => {
  const stdout = printed(await run('merge', '--policies', policies, ...flags));
  return rows(stdout);
};

describe('scheduling-policy merge', () => {
  it('shows what applies to a service account, part by part, with its policies', async () => {
    const args = ['scheduling-policy', 'merge', '--policies', basicPolicies()];
    const who = ['--namespace', 'ci', '--service-account', 'builder'];
    expect(
      printed(await runProgramInProcess([...args, ...who])),
    ).toBe(`PART                        VALUE                                                  POLICY
allowed.schedulerNames      ["default-scheduler"]                                  basic
allowed.nodeSelectors.disk  ["hdd"]                                                basic
allowed.tolerations         [{"keys":["ci"],"operators":["Exists"],"effects":[]}]  ci
default.nodeSelector.disk   "ssd"                                                  basic
`);
  });

  it('uses the default service account and the default namespace', async () => {
    const policies = policyFile(
      policy('n', '{allowed: {schedulerNames: [n]}}'),
      grant('n', '{kind: ServiceAccount, name: default, namespace: ci}', 'ci'),
      policy('s', '{allowed: {schedulerNames: [s]}}'),
      grant('s', '{kind: ServiceAccount, name: builder, namespace: default}', 'default'),
    );
    expect(await merged(policies, '--namespace', 'ci')).toContainEqual([
      'allowed.schedulerNames',
      '["n"]',
      'n',
    ]);
    expect(await merged(policies, '--service-account', 'builder')).toContainEqual([
      'allowed.schedulerNames',
      '["s"]',
      's',
    ]);
  });

  it('shows what applies to a user with groups, by default system:authenticated', async () => {
    const policies = policyFile(
      policy('all', '{allowed: {schedulerNames: [all]}}'),
      grant('all', EVERYBODY),
      policy('lab', '{allowed: {schedulerNames: [lab]}}'),
      grant('lab', '{kind: Group, name: "project:lab"}'),
      policy('lin', '{allowed: {schedulerNames: [lin]}}'),
      grant('lin', '{kind: User, name: lin}'),
    );
    const whose = async (...flags: string[]) =>
      (await merged(policies, ...flags)).slice(1).map((row) => row[2]);
    expect(await whose('--user', 'lin')).toEqual(['all', 'lin']);
    expect(await whose('--user', 'ann')).toEqual(['all']);
    expect(await whose('--user', 'lin', '--group', 'project:lab')).toEqual(['lab', 'lin']);
    expect(await whose('--user', 'ann', '--group', 'project:lab', '--group', 'system:authenticated')).toEqual(
      ['all', 'lab'],
    );
  });

  it('without an account, shows who may use which policies', async () => {
    const more = policyFile(
      policy('zero', '{}'),
      grant('zero', '{kind: User, name: lin}, {kind: Group, name: "project:lab"}'),
    );
    const stdout = printed(await run('merge', '--policies', basicPolicies(), '--policies', more));
    expect(stdout).toBe(`SUBJECT                                NAMESPACE  POLICIES
Group project:lab                      all        zero
Group system:authenticated             all        basic
User lin                               all        zero
User system:serviceaccount:ci:builder  ci         ci
`);
  });

  it('prints both as JSON', async () => {
    const policies = basicPolicies();
    const json = async (...flags: string[]) => {
      const stdout = printed(await run('merge', '--policies', policies, '--format', 'json', ...flags));
      return JSON.parse(stdout) as unknown;
    };
    expect(await json()).toEqual([
      { subject: 'Group system:authenticated', namespace: null, policies: ['basic'] },
      { subject: 'User system:serviceaccount:ci:builder', namespace: 'ci', policies: ['ci'] },
    ]);
    expect(
      await json('--namespace', 'ci', '--service-account', 'builder', '--merge-strategy', 'first'),
    ).toEqual({
      account: {
        user: 'system:serviceaccount:ci:builder',
        groups: ['system:serviceaccounts', 'system:serviceaccounts:ci', 'system:authenticated'],
        namespace: 'ci',
      },
      policies: ['basic', 'ci'],
      merge_strategy: 'first',
      parts: [
        { part: 'allowed.schedulerNames', value: ['default-scheduler'], policy: 'basic' },
        { part: 'allowed.nodeSelectors.disk', value: ['hdd'], policy: 'basic' },
        { part: 'default.nodeSelector.disk', value: 'ssd', policy: 'basic' },
      ],
      conflicts: [],
    });
    expect(await json('--user', 'lin')).toMatchObject({
      account: { user: 'lin', groups: ['system:authenticated'], namespace: null },
      merge_strategy: 'deep',
    });
  });

  it('shows each policy of an intersection, and warns about conflicts', async () => {
    const policies = policiesOfAll({
      a: '{required: {nodeSelectors: {disk: [ssd]}}}',
      b: '{required: {nodeSelectors: {disk: [hdd]}}}',
    });
    const flags = ['--policies', policies, '--user', 'lin', '--merge-strategy', 'intersection'];
    const conflict =
      'nodeSelector disk: conflicting requirements: a requires ssd and b requires hdd (scheduling policies a and b)';
    const { code, stdout, stderr } = await run('merge', ...flags);
    expect({ code, stderr }).toEqual({ code: 0, stderr: `warning: ${conflict}\n` });
    expect(rows(stdout).slice(1)).toEqual([
      ['required.nodeSelectors.disk', '["ssd"]', 'a'],
      ['required.nodeSelectors.disk', '["hdd"]', 'b'],
    ]);
    const json = await run('merge', ...flags, '--format', 'json');
    expect(JSON.parse(json.stdout)).toMatchObject({ merge_strategy: 'intersection', conflicts: [conflict] });
    expect((await run('merge', ...flags.slice(0, 4))).stderr).toBe('');
  });

  it('shows that nothing applies', async () => {
    const policies = policyFile(policy('unused', '{allowed: {schedulerNames: []}}'));
    expect(await merged(policies, '--user', 'lin')).toEqual([['PART', 'VALUE', 'POLICY']]);
    expect(await merged(policies)).toEqual([['SUBJECT', 'NAMESPACE', 'POLICIES']]);
  });

  it.for<[string[], string]>([
    [['--user', 'lin', '--service-account', 'x'], 'expected either --user or --service-account, got both'],
    [['--group', 'x'], 'expected --user with --group'],
    [['--group', 'x', '--namespace', 'ci'], 'expected --user with --group'],
  ])('refuses %j', async ([flags, message]) => {
    expect(await run('merge', '--policies', basicPolicies(), ...flags)).toEqual(refused(message));
  });
});
