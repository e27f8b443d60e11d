import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderOf } from '../../support/filter-folder.ts';
import { rows } from '../../support/rows.ts';
import { limitPolicy, runCases } from '../../support/skypilot-cases.ts';

describe('skypilot test', () => {
  it('finds a policy beside the file that names it, and tells the place of a name that leads nowhere', async () => {
    const policy = readFileSync(limitPolicy().split('#')[0] ?? '', 'utf8');
    const folder = folderOf({
      'blazar.conf': '[skypilot]\nadmin_policies = ./own.js#LimitPolicy\n',
      'own.js': policy,
      'cases/a.yaml': 'task: {num_nodes: 3}\nexpect: {rejected: too many}\n',
      'lost/blazar.conf': '[skypilot]\nadmin_policies = ./own.js#LimitPolicy, ../own.js#NonePolicy\n',
      'lost/a.yaml': 'task: {}\nexpect: allowed\n',
    });
    const passing = await runCases(join(folder, 'cases'));
    expect(passing).toMatchObject({ code: 0, stderr: '' });
    expect(passing.stdout).toMatch(/\n1 passed\n$/);
    const { code, stderr } = await runCases(join(folder, 'lost'));
    expect(code).toBe(2);
    expect(stderr).toContain(
      'lost/blazar.conf:2: [skypilot] admin_policies: the policy "./own.js#LimitPolicy"',
    );
    expect(stderr).toContain('NonePolicy" cannot be used: the file exports no class');
  });

  it('runs the cases that --filter names', async () => {
    const folder = folderOf({
      'blazar.conf': `[skypilot]\nadmin_policies = ${limitPolicy()}\n`,
      'a.yaml': 'name: The first\ntask: {}\nexpect: allowed\n',
      'b.yaml': 'no case',
    });
    expect((await runCases(folder, '--filter', 'first')).stdout).toMatch(
      /^CASE[^\n]+\na +passed\n\n1 passed\n$/,
    );
    expect(await runCases(folder, '--filter', 'c')).toMatchObject({ code: 2, stdout: '' });
  });
});

describe('a mistake in a case', () => {
  it.for(rows`
    an unknown key → task: {}\nexpect: allowed\npolices: [a]\n → :3: the key "polices" is unknown; the nearest right name is "policies"
    one of the request → task: {}\nexpect: allowed\nrequest:\n  usr: a\n → :4: request: the key "usr" is unknown; the nearest right name is "user"
    one of the configuration → task: {}\nskypilot_config:\n  kubernets: {}\nexpect: allowed\n → :3: kubernets:
    no task → expect: allowed\n → :1: expected task or task_file
    a rejection with a result → task: {}\nexpect: {rejected: a,\n task: {}}\n → :3: expect.task: a rejected request has no result
    a broken expression → task: {}\nexpect: {rejected: "/(/"}\n → :2: expect.rejected: expected a regular expression
    a time that is none → task: {}\nnow: tomorrow\nexpect: allowed\n → :2: now: expected a time such as
    too many expectations → task: {}\nexpect: [allowed, allowed]\n → :2: expected one expectation for each of 1 tasks
    what a client does not send → task: {}\nrequest: {client_side: true, user: a}\nexpect: allowed\n → :2: a client sends neither
    a missing task file → task_file: nowhere.yaml\nexpect: allowed\n → :1: task_file:
    no policies → task: {}\nexpect: allowed\n → :1: no policy is named: name some in policies
    a policy that is not there → task: {}\nexpect: allowed\npolicies: [./no.js#NoPolicy]\n → :3: [skypilot] admin_policies:
    YAML that is cut off → task: {run: "x → :1: expected YAML:
  `)('ends with 2, with its file and line: %s', async ([, text, message]) => {
    const { code, stdout, stderr } = await runCases(folderOf({ 'one.yaml': text }));
    expect(stderr).toContain(`one.yaml${message}`);
    expect(stderr).toMatch(/^error: [^\n]+\n(?:error: [^\n]+\n)*$/);
    expect(code).toBe(2);
    expect(stdout).toMatch(/^one +mistake /m);
  });

  it('is a file of more than a megabyte', async () => {
    const { stderr } = await runCases(folderOf({ 'one.yaml': `task: {run: ${'x'.repeat(1_100_000)}}\n` }));
    expect(stderr).toContain('one.yaml:1: could not be read: it is longer');
  });
});
