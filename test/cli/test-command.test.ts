import { describe, expect, it } from 'vitest';
import { projectFile } from '../support/files.ts';
import { jsonLines } from '../support/json-lines.ts';
import { confWith, NOW, testIn } from '../support/lease-cases.ts';
import { capturedText } from '../support/requests.ts';
import { refused } from '../support/run-command.ts';

const STUDENTS = `${NOW}cases:
  - name: two days
    lease: {project: students, start: +1d, days: 2, hosts: 2}
    expect: allowed
  - name: three days
    lease: {project: students, days: 3}
    expect: {rejected: at most 2 days, filter: RulesFilter, rule: two-days}
  - lease: {project: students, days: 3}
    expect: allowed
`;

describe('test', () => {
  it('tells which cases are not as expected, and what came instead', async () => {
    const { code, stdout, stderr } = await testIn({
      'cases/students.yaml': STUDENTS,
      'gpus.case.yaml': `${NOW}lease: {properties: {gpu: "True"}}\nexpect: {rule: two-days}\n`,
    });
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const rows = stdout.split('\n').map((line) => line.split(/ {2,}/));
    expect([...rows.slice(0, 5), ...rows.slice(-3)]).toEqual([
      ['CASE', 'RESULT', 'WHY'],
      ['cases/students: two days', 'passed'],
      ['cases/students: three days', 'passed'],
      [
        'cases/students: 3',
        'failed',
        'expected it to be allowed, but RulesFilter (two-days) rejected it: Students have leases of at most 2 days.',
      ],
      [
        'gpus.case',
        'failed',
        'expected the rule two-days to reject it, but it was no-gpus: GPUs are not for lease.',
      ],
      [''],
      ['2 passed, 2 failed'],
      [''],
    ]);
  });

  it('runs the cases that --filter names, by a part of the name or an expression', async () => {
    const files = { 'cases/students.yaml': STUDENTS };
    expect((await testIn(files, '--filter', 'two')).stdout).toContain('\n1 passed\n');
    expect((await testIn(files, '-r', '/^cases.*(TWO|three)/i')).stdout).toContain('\n2 passed\n');
    expect(await testIn(files, '-r', 'four')).toMatchObject(refused('.: no case matches --filter four'));
    expect((await testIn(files, '-r', '/(/')).stderr).toBe(
      'error: --filter: expected a regular expression between the slashes\n',
    );
  });

  it('writes JSON, JUnit and TAP', async () => {
    const files = { 'cases/students.yaml': STUDENTS };
    const json = await testIn(files, '--format', 'json');
    const lines = jsonLines(json.stdout);
    expect(lines.map(({ status }) => status)).toEqual(['passed', 'passed', 'failed']);
    expect(lines[0]).toEqual({
      id: 'cases/students: two days',
      file: 'cases/students.yaml',
      name: 'two days',
      status: 'passed',
      reasons: [],
      diff: '',
      problems: [],
      milliseconds: expect.any(Number),
    });
    const { stdout } = await testIn(files, '--format', 'junit');
    expect(stdout).toContain('<testsuite name="blazar-enforcement test" tests="3" failures="1" errors="0"');
    const tap = await testIn({ 'cases/a#1.yaml': 'lease: {}\nexpect: rejected\n' }, '--format', 'tap');
    expect(tap).toMatchObject({
      code: 1,
      stdout: `TAP version 14
1..1
not ok 1 - cases/a\\#1
  ---
  message: "expected it to be rejected, but it was allowed"
  severity: failed
  at: "cases/a#1.yaml"
  duration_ms: ${/duration_ms: (\d+)/.exec(tap.stdout)?.[1]}
  ...
`,
    });
  });

  it('runs tasks and pods as it runs leases', async () => {
    const policies = projectFile('examples/scheduling-policies/pods');
    const { code, stdout, stderr } = await testIn(
      {
        'cases/lease.yaml': 'lease: {}\nexpect: allowed\n',
        'cases/task.yaml':
          'task: {resources: {accelerators: H100:8}}\npolicies: [UseSpotForGpuPolicy]\nexpect: {task_paths: {resources.use_spot: true}}\n',
        'cases/pods.yaml': `scheduling_policies: [${policies}/policies.yaml]
cases:
  - pod_file: ${policies}/web.yaml
    expect: {answer: changed, pod_paths: {'spec.nodeSelector."kubernetes.io/arch"': amd64}}
  - pod_file: ${policies}/train.yaml
    expect: unchanged
  - pod_file: ${policies}/train.yaml
    service_account: other
    expect: {rejected: accelerator, field: nodeSelector}
  - pod: {spec: {containers: [{name: a, image: a}], schedulerName: mine}}
    expect: {policy: everybody, field: schedulerName}
  - pod: {spec: {containers: [{name: a, image: a}], schedulerName: mine}}
    expect: allowed
  - pod: {kind: Service}
    expect: allowed
  - pod: {spec: {containers: [{name: a, image: a}], priorityClassName: batch}}
    expect: allowed
  - pod: {spec: {containers: [{name: a, image: a}], priorityClassName: batch}}
    expect: {policy: everybody}
`,
      },
      '--coverage',
    );
    expect(code).toBe(2);
    expect(stderr).toContain('cases/pods.yaml:14: pod: Service is no pod, and no kind whose pods are known');
    expect(stdout).toMatch(
      /^cases\/pods: 5 +failed +expected it to be allowed, but everybody rejected it: .*schedulerName/m,
    );
    expect(stdout).toMatch(
      /^cases\/pods: 7 +failed +expected it to be allowed, but it was rejected: .*priorityClassName/m,
    );
    expect(stdout).toMatch(
      /^cases\/pods: 8 +failed +expected the policy everybody to reject it, but it was rejected: .*priorityClassName/m,
    );
    expect(stdout).toContain('\n6 passed, 3 failed, 1 mistake\n');
    const rows = stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 4));
    expect(rows).toContainEqual(['scheduling policy', 'everybody', 'seen', 'seen']);
    expect(rows).toContainEqual(['admin policy', 'UseSpotForGpuPolicy', 'seen', 'never']);
  });

  it('says what it looks for where there is none', async () => {
    expect(await testIn({})).toMatchObject(
      refused(
        '.: there is no case in it: no .yaml file in a folder called cases, and none called *.case.yaml',
      ),
    );
    expect(await testIn({ 'cases/README.md': 'a' }, 'cases')).toMatchObject(
      refused('cases: there is no case in it: no file that ends in .yaml or .yml'),
    );
    expect((await testIn({}, 'nowhere')).stderr).toMatch(/^error: nowhere: .*no such file/i);
  });

  it('takes the configuration beside a case, one above it, or that of the flags', async () => {
    const aCase = `${NOW}lease: {days: 20}\nexpect: {filter: MaxLeaseDurationFilter}\n`;
    const limit = confWith(', MaxLeaseDurationFilter', 'max_lease_duration = 86400\n');
    const above = { 'blazar.conf': limit, 'a/cases/one.yaml': aCase };
    expect(await testIn(above)).toMatchObject({ code: 0 });
    expect(await testIn({ 'b/blazar.conf': limit, 'b/cases/one.yaml': aCase }, 'b/cases')).toMatchObject({
      code: 0,
    });
    expect(
      await testIn({ 'other.conf': limit, 'cases/one.yaml': aCase }, '--config-file', 'other.conf'),
    ).toMatchObject({ code: 0 });
    const own = ['--config', 'enforcement.max_lease_duration=-1'];
    expect(await testIn(above, ...own)).toMatchObject({ code: 1 });
    expect(await testIn(above, 'a')).toMatchObject({
      code: 2,
      stderr:
        'error: a/cases/one.yaml:1: there is no configuration: expected blazar.conf or blazar-enforcement.conf beside the case or above it, or --config-file\n',
    });
  });

  it('runs cases where the secrets of the service are not', async () => {
    const conf = confWith(
      '',
      '[service]\ntokens_file = /nowhere/tokens\ntls_cert_file = /nowhere/cert.pem\n',
    );
    const files = { 'blazar.conf': conf, 'cases/one.yaml': 'lease: {}\nexpect: allowed\n' };
    expect(await testIn(files)).toMatchObject({ code: 0, stderr: '' });
  });

  it('runs a captured body, and one that is written in the case', async () => {
    const body = capturedText('check-create-physical-host.json');
    const { code, stdout } = await testIn({
      'cases/bodies/create.json': body,
      'cases/path.yaml': 'request: bodies/create.json\nexpect: allowed\n',
      'cases/inline.yaml': `expect: allowed\nrequest: ${JSON.stringify(JSON.parse(body))}\n`,
      'cases/update.yaml': `expect: allowed\nrequest: ${JSON.stringify(JSON.parse(capturedText('check-update-extend.json')))}\n`,
    });
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('3 passed') });
  });
});

describe('a rule that is not as expected', () => {
  it('is shown with the value of every part of its expressions', async () => {
    const { stdout } = await testIn({ 'cases/students.yaml': STUDENTS }, '-r', ': 3');
    expect(stdout.split('\n').slice(3)).toEqual([
      'cases/students: 3',
      'rule two-days (rules.yaml:2): refused',
      '  match: context.project_id = "students"',
      '  match: context.project_id == "students" → true',
      '  allow: hours(lease) = 72',
      '  allow: hours(lease) <= 48.0 → false',
      'rule no-gpus (rules.yaml:6): allowed',
      expect.stringMatching(/^ {2}allow: property\(r, 'gpu'\) = ""$/),
      expect.stringMatching(/^ {2}allow: property\(r, 'gpu'\) != 'True' = true$/),
      expect.stringMatching(/^ {2}allow: reservations\.all\(.*\) → true$/),
      '',
      '0 passed, 1 failed',
      '',
    ]);
  });

  it('reads the leases in the ledger, which may violate it', async () => {
    const rules = `rules:\n  - name: two-leases\n    allow: leases() < 2\n    message: A project has at most two leases.\n`;
    const cases = (count: number, expected: string) =>
      `${NOW}ledger: {leases: [${Array(count).fill('{}').join()}]}\nlease: {}\nexpect: ${expected}\n`;
    const files = {
      'rules.yaml': rules,
      'cases/one.yaml': cases(1, 'allowed'),
      'cases/three.yaml': cases(3, '{rule: two-leases}'),
    };
    expect(await testIn(files)).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('--coverage', () => {
  it('tells what no case has seen allow, and what none has seen refuse', async () => {
    const { code, stdout } = await testIn({ 'cases/students.yaml': STUDENTS }, '-r', 'days', '--coverage');
    expect(code).toBe(0);
    expect(
      stdout
        .split('\n')
        .slice(6)
        .map((line) => line.split(/ {2,}/)),
    ).toEqual([
      ['WHAT', 'NAME', 'ALLOWS', 'REFUSES', 'FROM'],
      ['filter', 'RulesFilter', 'seen', 'seen', expect.stringMatching(/blazar\.conf$/)],
      ['rule', 'two-days', 'seen', 'seen', 'rules.yaml:2'],
      ['rule', 'no-gpus', 'seen', 'never', 'rules.yaml:6'],
      [''],
      ['coverage: 83.3 %'],
      [''],
    ]);
  });

  it('fails below --threshold', async () => {
    const files = { 'cases/students.yaml': STUDENTS };
    expect(await testIn(files, '-r', 'days', '--threshold', '83.3')).toMatchObject({ code: 0, stderr: '' });
    expect(await testIn(files, '-r', 'days', '--threshold', '84')).toMatchObject({
      code: 1,
      stderr: 'error: the coverage is 83.3 %, expected at least 84 %\n',
    });
    expect(await testIn(files, '--threshold', '101')).toMatchObject({ code: 2 });
    const json = await testIn(files, '-r', 'days', '--coverage', '--format', 'json');
    expect(JSON.parse(json.stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({ coverage: 83.3 });
  });
});
