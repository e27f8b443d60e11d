import { expect, it } from 'vitest';
import { UNCHECKED } from '../support/decisions.ts';
import { temporaryFile } from '../support/files.ts';
import { type Asked, askTwice, chainOf, configured } from './helpers.ts';

const RULES = `rules:
- {name: leases-only, allow: "false", message: Not for tasks.}
- name: no-h100
  on: task
  exempt: {users: [boss]}
  allow: '!resources.exists(one, may_be(one, "H100"))'
  message: No H100 for you.
- name: kubernetes
  on: task
  allow: resources.all(one, has(one.cloud) && one.cloud == "kubernetes")
  message: {expression: '"Only on Kubernetes, " + request.name + "."'}
- {name: tried, on: task, mode: audit, allow: "false", message: Never.}
`;

const chain = () => chainOf(['RulesPolicy'], { rules_path: temporaryFile('rules.yaml', RULES) });
const OK = { infra: 'k8s/my-context', accelerators: 'L4:1' };

it.for<[string, Record<string, unknown>, string | null]>([
  ['what the rules allow', OK, null],
  ['another case', { ...OK, accelerators: 'h100:8' }, 'No H100 for you.'],
  ['a memory', { ...OK, accelerators: '80GB+' }, 'No H100 for you.'],
  ['one alternative', { any_of: [OK, { cloud: 'AWS' }] }, 'Only on Kubernetes, launch.'],
  ['any cloud', {}, 'Only on Kubernetes, launch.'],
  ['an older spelling', { cloud: 'Kubernetes', region: 'x' }, null],
  ['both', { accelerators: 'H100' }, 'No H100 for you. Only on Kubernetes, launch.'],
])('judges %s', async ([, resources, message]) => {
  const { ask } = await chain();
  const judged = message === null ? askTwice : (one: typeof ask, asked: Asked) => one(asked);
  const review = await judged(ask, { name: 'launch', task: JSON.stringify({ resources }) });
  expect(review).toMatchObject({ allowed: message === null, failed: false, changed: false, message });
});

it.for<[Record<string, unknown>, string | null]>([
  [{ cpus: '8+', memory: '1.5TB+' }, null],
  [{ cpus: 8, memory: '4x' }, null],
  [{ cpus: '9+', memory: 16 }, 'Too large.'],
  [{ cpus: 8, memory: '2pi' }, 'Too large.'],
  [{ cpus: '8k' }, 'resources.cpus: expected a number such as 8 or 8+.'],
  [{ cpus: '8GB' }, 'resources.cpus: expected a number such as 8 or 8+.'],
  [{ memory: '8k' }, 'resources.memory: expected a number such as 8 or 8+.'],
])('reads CPUs and memory as SkyPilot does: %j', async ([resources, message]) => {
  const rules_path = temporaryFile(
    'rules.yaml',
    'rules:\n- {name: a, on: task, allow: "resources.all(one, one.?cpus.orValue(0.0) <= 8.0 && one.?memory.orValue(0.0) <= 2048.0)", message: Too large.}\n',
  );
  const { ask } = await chainOf(['RulesPolicy'], { rules_path });
  const review = await ask({ name: 'launch', task: JSON.stringify({ resources }) });
  expect(review).toMatchObject({ allowed: message === null, failed: false, message });
});

it('refuses with a generic sentence if a rule breaks', async () => {
  const broken = temporaryFile(
    'rules.yaml',
    'rules:\n- {name: a, on: task, allow: task.name != "x", message: No.}\n',
  );
  const { ask } = await chainOf(['RulesPolicy'], { rules_path: broken });
  const review = await ask({ name: 'launch', task: '{resources: {}}' });
  expect(review).toMatchObject(UNCHECKED);
  expect(review.message).not.toMatch(/task\.name|rules\.yaml/);
});

it('refuses a file with mistakes', async () => {
  const wrong = temporaryFile(
    'rules.yaml',
    'rules:\n- {name: a, on: task, allow: tsk.name == "x", message: No.}\n',
  );
  const { problems } = await configured(['RulesPolicy'], { rules_path: wrong });
  expect(problems.map(({ message }) => message).join('\n')).toContain(
    'rule a: allow, at task: nothing is called "tsk"; the nearest right name is "task"',
  );
});

it.each(['none', 'worker'])('names the rules in the decision, with isolation = %s', async (isolation) => {
  const rules_path = temporaryFile(
    'rules.yaml',
    `${RULES}- {name: cluster, on: task, allow: task.name != "x", message: No.}\n`,
  );
  const { ask } = await chainOf(['RulesPolicy'], { rules_path, isolation });
  const said = async (resources: object) => {
    const review = await ask({ name: 'launch', task: JSON.stringify({ resources }) });
    return { review, rules: review.outcomes[0]?.rules };
  };
  const tried = { rule: 'tried', outcome: 'rejected', audit: true };
  const broken = await said({ ...OK, accelerators: 'H100' });
  expect(broken.review).toMatchObject(UNCHECKED);
  expect(broken.rules).toMatchObject([
    { rule: 'no-h100', outcome: 'rejected', audit: false },
    tried,
    { rule: 'cluster', outcome: 'failed', audit: false, message: null },
  ]);
});

it('tells what rules in audit mode would have refused', async () => {
  const { ask } = await chain();
  const review = await ask({ name: 'launch', task: JSON.stringify({ resources: OK }) });
  expect(review).toMatchObject({
    allowed: true,
    warnings: ['The rule tried (tried, not enforced) would have rejected: Never.'],
    outcomes: [{ rules: [{ rule: 'tried', outcome: 'rejected', audit: true }] }],
  });
  const refused = await ask({ name: 'launch', task: '{resources: {}}' });
  expect(refused.outcomes[0]?.rules?.map(({ rule }) => rule)).toEqual(['kubernetes', 'tried']);
});
