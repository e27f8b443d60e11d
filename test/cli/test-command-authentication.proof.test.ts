/** `test` runs rules for pods and tasks as the doors of the service do, and sees which of them no case has seen. */
import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { folderOf } from '../support/filter-folder.ts';

const RULES = `rules:
- {name: leases, allow: "true", message: Never.}
- name: cores
  on: pod
  exempt: {users: [builder]}
  match: pod.namespace == "students"
  allow: 'requested(pod, "cpu") <= 4.0 || "teachers" in user.groups'
  message: Students have pods of at most 4 cores.
- name: weekdays
  on: pod
  allow: request.operation == "update" || now.getDayOfWeek("UTC") in [1, 2, 3, 4, 5]
  message: No new pods at weekends.
- {name: tried, on: pod, mode: audit, allow: pod.service_account != "robot", message: No robots.}
- {name: spot, on: task, allow: 'resources.all(one, one.use_spot)', message: Only spot instances.}
- {name: unseen, on: task, allow: task.num_nodes < 100, message: Too many nodes.}
`;
const CONF = `[enforcement]
enabled_filters =
[kubernetes]
rules_path = rules.yaml
[skypilot]
admin_policies = RulesPolicy
rules_path = rules.yaml
`;
const SPEC = (cpu: string) =>
  `{spec: {containers: [{name: c, image: i, resources: {requests: {cpu: ${cpu}}}}]}}`;
const PODS = `now: 2026-11-23T09:00:00Z
namespace: students
user: ada
cases:
- {name: small, pod: ${SPEC('4')}, expect: allowed}
- {name: large, pod: ${SPEC("'5'")}, expect: {rejected: at most 4 cores, rule: cores}}
- {name: both, now: 2026-11-22T09:00:00Z, pod: ${SPEC('5')}, expect: {rule: [cores, weekdays]}}
- {name: exempt, user: builder, pod: ${SPEC('5')}, expect: allowed}
- {name: teacher, user: {name: bob, groups: [teachers]}, pod: ${SPEC('5')}, expect: allowed}
- {name: elsewhere, namespace: climate, pod: ${SPEC('5')}, expect: allowed}
- {name: robot, service_account: robot, pod: ${SPEC('1')}, expect: {warning: 'rule tried: No robots.'}}
- {name: resized, now: 2026-11-22T09:00:00Z, current: ${SPEC('1')}, pod: ${SPEC('5')}, expect: {rule: cores}}
`;
const TASKS = `cases:
- {name: spot, task: {resources: {use_spot: true}, run: x}, expect: allowed}
- {name: other, task: {resources: {use_spot: false}, run: x}, expect: {rejected: Only spot, rule: spot}}
`;

async function run(files: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const folder = folderOf({ 'blazar.conf': CONF, 'rules.yaml': RULES, ...files });
  return runProgramInProcess(['test', ...args], { cwd: folder });
}

const rows = (text: string) => text.split('\n').map((line) => line.split(/ {2,}/));

describe('test', () => {
  it('judges pods and tasks by rules, and counts which rules were seen', async () => {
    const { code, stdout, stderr } = await run(
      { 'cases/pods.yaml': PODS, 'cases/tasks.yaml': TASKS },
      '--coverage',
    );
    expect({ code, stderr, stdout }).toMatchObject({ code: 0, stderr: '' });
    expect(stdout).toContain('\n10 passed\n');
    expect(rows(stdout).filter(([kind]) => kind === 'rule')).toEqual([
      ['rule', 'cores', 'seen', 'seen', 'rules.yaml:3'],
      ['rule', 'weekdays', 'seen', 'seen', 'rules.yaml:9'],
      ['rule', 'tried', 'seen', 'seen', 'rules.yaml:13'],
      ['rule', 'spot', 'seen', 'seen', 'rules.yaml:14'],
      ['rule', 'unseen', 'seen', 'never', 'rules.yaml:15'],
    ]);
  });

  it('counts rules for tasks that no case is about', async () => {
    const { stdout } = await run({ 'cases/pods.yaml': PODS }, '--coverage');
    expect(rows(stdout)).toContainEqual(['rule', 'spot', 'never', 'never', 'rules.yaml:14']);
  });

  it('says which rule refused instead, and that a rule broke', async () => {
    const wrong = `now: 2026-11-23T09:00:00Z
cases:
- {name: another, namespace: students, user: ada, pod: ${SPEC('5')}, expect: {rule: weekdays}}
- {name: nobody, namespace: students, pod: ${SPEC('5')}, expect: allowed}
`;
    const task = '{name: t, task: {resources: {}, run: x}, expect: {rule: unseen}}\n';
    const broken = RULES.replace('"teachers" in user.groups', 'user.name == "x"');
    const { code, stdout } = await run({
      'rules.yaml': broken,
      'cases/pods.yaml': wrong,
      'cases/tasks.yaml': task,
    });
    expect(code).toBe(3);
    expect(rows(stdout).slice(1, 4)).toEqual([
      [
        'cases/pods: another',
        'failed',
        'expected the rule weekdays to reject it, but it was cores: Students have pods of at most 4 cores.',
      ],
      [
        'cases/pods: nobody',
        'broken',
        expect.stringMatching(/rule cores: allow failed: user\.name is missing/),
      ],
      [
        'cases/tasks',
        'failed',
        'expected the rule unseen to reject it, but it was spot: Only spot instances.',
      ],
    ]);
  });

  it('refuses what a case cannot mean', async () => {
    const { code, stderr } = await run({
      'cases/a.yaml': `{pod: ${SPEC('1')}, user: 7, expect: allowed}\n`,
      'cases/b.yaml': `{pod: ${SPEC('1')}, expect: {answer: allowed, rule: cores}}\n`,
      'cases/c.yaml': `{pod: ${SPEC('1')}, current: {spec: 7}, expect: allowed}\n`,
      'cases/d.yaml': `{pod_file: x.yaml, current: {spec: {}}, expect: allowed}\n`,
    });
    expect(code).toBe(2);
    expect(stderr).toMatch(/a\.yaml:1: .*user: expected a name, or a mapping with name and groups/);
    expect(stderr).toMatch(/b\.yaml:1: .*contradicts a rejection/);
    expect(stderr).toMatch(/c\.yaml:1: .*current: spec: expected an object/);
    expect(stderr).toMatch(/d\.yaml:1: .*expected pod beside current/);
  });
});
