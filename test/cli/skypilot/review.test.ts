import { describe, expect, it } from 'vitest';
import { skypilotReviewCommand } from '../../../src/cli/skypilot/review.ts';
import { runInProcess, runProgramInProcess } from '../../support/command-in-process.ts';
import { confFile, temporaryFile } from '../../support/files.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { printed, refused, refusedWith } from '../../support/run-command.ts';
import { body, FAILED, policyFiles } from '../../support/skypilot.ts';

/** Policies by name: the bodies of their `validateAndMutate`. */
const POLICIES = {
  TeamPolicy: `task.resources = { ...task.resources, labels: { team: 'physics' } };
    config.assign(['kubernetes', 'provision_timeout'], 600);`,
  NothingPolicy: '',
  GrowPolicy: 'task.num_nodes = (task.num_nodes ?? 1) + 1;',
  ShyPolicy: "if (task.name === 'seen') { throw new PolicyRejected('seen it'); } task.name = 'seen';",
  FragilePolicy: "if (task.name === 'seen') { throw new Error('s3cret cause'); } task.name = 'seen';",
  RejectPolicy: "throw new PolicyRejected('at most \\u001b[31m8 GPUs\\nper task');",
  BrokenPolicy: "throw new Error('s3cret cause');",
  RotatePolicy: "task.secrets = { HF_TOKEN: 's3cret-new' };",
  LastPolicy: "config.assign(['gcp', 'vpc_name'], 'v'); task.zone = 'z';",
  ClientPolicy: `const { requestName, requestOptions, atClientSide, user } = request;
    task.seen = { requestName, clusterName: requestOptions?.clusterName ?? null, atClientSide, user: user?.name ?? null };`,
  SeenPolicy: `const { requestName, requestOptions, atClientSide, user, clientApiVersion, clientVersion } = request;
    task.seen = { requestName, requestOptions, atClientSide, user, clientApiVersion, clientVersion,
      workspace: config.getNested(['active_workspace']), autostop: task.resources.autostop };`,
} as const;

/** A configuration with these policies, and the flags that name it. */
function policies(...names: (keyof typeof POLICIES)[]): string[] {
  const { specifiers } = policyFiles(Object.fromEntries(names.map((name) => [name, POLICIES[name]])));
  return [
    '--config-file',
    confFile(`[skypilot]\nadmin_policies = ${specifiers.join(', ')}\ndeadline = 20\nisolation = none\n`),
  ];
}

const bodyFile = (members?: object) => temporaryFile('launch.body', body(members));
const taskFile = (text: string) => temporaryFile('task.yaml', text);

const review = (...args: string[]) =>
  runInProcess(skypilotReviewCommand(), [...args, '--log-level', 'silent']);

async function reviewJson(...args: string[]) {
  const { code, stdout, stderr } = await review(...args, '--format', 'json');
  return { code, stderr, answer: JSON.parse(stdout) as Record<string, never> };
}

const TASK = `name: train
resources:
  infra: kubernetes
  accelerators: {A100: 1}
run: |
  python train.py
`;

const TASK_DIFF = `--- task
+++ task (changed by policies)
@@ -2,5 +2,7 @@
 resources:
   infra: kubernetes
   accelerators: { A100: 1 }
+  labels:
+    team: physics
 run: |
   python train.py
`;

const CONFIG_DIFF = `--- skypilot_config
+++ skypilot_config (changed by policies)
@@ -1,2 +1,3 @@
 kubernetes:
   namespace: lab
+  provision_timeout: 600
`;

describe('skypilot review', () => {
  it('shows the result of each policy, and their changes as a diff', async () => {
    const file = bodyFile({ task: TASK, skypilot_config: 'kubernetes:\n  namespace: lab\n' });
    const { code, stdout, stderr } = await runProgramInProcess([
      'skypilot',
      'review',
      file,
      ...policies('NothingPolicy', 'TeamPolicy'),
    ]);
    expect(stdout).toBe(
      `POLICY         ANSWER   MESSAGE\nNothingPolicy  allowed\nTeamPolicy     changed\n\n${TASK_DIFF}\n${CONFIG_DIFF}`,
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  it('prints no diff if nothing changes, however the task is formatted', async () => {
    const task = 'run:   "x"   # a comment\nenvs: {A: yes, B: 012, C: 1:30, D: 2026-11-21, E: ~}\n';
    expect(printed(await review(bodyFile({ task }), ...policies('NothingPolicy')))).toBe(
      'POLICY         ANSWER   MESSAGE\nNothingPolicy  allowed\n',
    );
  });

  it('reads a body from standard input, and prints JSON lines', async () => {
    const args = [
      'skypilot',
      'review',
      '-',
      '--format',
      'json',
      '--check-idempotence',
      ...policies('TeamPolicy'),
    ];
    const { code, stdout, stderr } = await runProgramInProcess(args, {
      stdin: body({ task: TASK, skypilot_config: 'kubernetes:\n  namespace: lab\n' }),
    });
    expect(JSON.parse(stdout)).toEqual({
      file: '-',
      allowed: true,
      message: null,
      policy: null,
      failed: false,
      changed: true,
      exempt: false,
      idempotent: true,
      outcomes: [
        {
          policy: 'TeamPolicy',
          audit: false,
          allowed: true,
          message: null,
          failed: false,
          changed: true,
          changes: expect.objectContaining({ leftOut: 0 }),
          milliseconds: expect.any(Number),
        },
      ],
      warnings: [],
      diff: { task: TASK_DIFF, skypilot_config: CONFIG_DIFF },
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  it('needs no file of the server if the command line names policies', async () => {
    const { specifiers } = policyFiles({ NothingPolicy: '' });
    const { code } = await review(
      ...[taskFile('run: x\n'), '--config', `skypilot.admin_policies=${specifiers.join(',')}`],
    );
    expect(code).toBe(0);
  });
});

describe('a task', () => {
  const seen = (diff: string) => diff.split('\n').filter((line) => line.startsWith('+ '));

  it('is a launch without a cluster name and configuration by default', async () => {
    const { answer } = await reviewJson(taskFile(TASK), ...policies('ClientPolicy', 'TeamPolicy'));
    const { task, skypilot_config } = answer.diff as unknown as Record<string, string>;
    expect(seen(task ?? '')).toEqual(
      expect.arrayContaining([
        '+  requestName: launch',
        '+  clusterName: null',
        '+  atClientSide: false',
        '+  user: user',
      ]),
    );
    expect(skypilot_config).toContain(
      '@@ -1,1 +1,3 @@\n active_workspace: default\n+kubernetes:\n+  provision_timeout: 600\n',
    );
  });

  it('is sent with everything that the flags say', async () => {
    const flags = ['--cluster-name', 'c1', '--idle-minutes', '30', '--down', '--dry-run', '--user', '0a:lin'];
    const more = ['--workspace', 'ml', '--client-version', '0.13.0', '--client-api-version', '56'];
    const { answer } = await reviewJson(taskFile(TASK), ...flags, ...more, ...policies('SeenPolicy'));
    const { task } = answer.diff as unknown as Record<string, string>;
    expect(seen(task ?? '')).toEqual([
      ...['+  requestName: launch', '+  requestOptions:', '+    clusterName: c1'],
      ...['+    idleMinutesToAutostop: 30', '+    down: true', '+    dryrun: true'],
      ...['+  atClientSide: false', '+  user:', '+    id: "0a"', '+    name: lin', '+    userType: null'],
      ...['+    preferredWorkspace: null', '+  clientApiVersion: 56', '+  clientVersion: "0.13.0"'],
      ...['+  workspace: ml', '+  autostop:', '+    idle_minutes: 30', '+    down: true'],
    ]);
  });
});

describe('what is refused', () => {
  it('ends with 1 when a policy rejects it, and changes nothing', async () => {
    const args = [bodyFile(), ...policies('TeamPolicy', 'RejectPolicy', 'NothingPolicy')];
    expect(await runProgramInProcess(['skypilot', 'review', ...args])).toEqual({
      code: 1,
      stdout:
        'POLICY        ANSWER    MESSAGE\nTeamPolicy    changed\nRejectPolicy  rejected  at most \\u001b[31m8 GPUs per task\n',
      stderr: '',
    });
    expect(await reviewJson(...args)).toMatchObject({
      code: 1,
      answer: {
        allowed: false,
        failed: false,
        changed: false,
        policy: 'RejectPolicy',
        message: 'at most \\u001b[31m8 GPUs\nper task',
        idempotent: null,
        diff: { task: '', skypilot_config: '' },
      },
    });
  });

  it('ends with 3 when a policy fails, without the cause', async () => {
    const args = [bodyFile(), ...policies('BrokenPolicy'), '--check-idempotence'];
    const { code, stdout, stderr } = await review(...args);
    expect(stdout).toBe(`POLICY        ANSWER  MESSAGE\nBrokenPolicy  failed  ${FAILED}\n`);
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
  });
});

describe('a pipeline', () => {
  const PIPELINE = 'name: chain\n---\nname: first\nrun: x\n---\nrun: y\n';

  it('is reviewed task by task, as a managed job', async () => {
    const args = [taskFile(PIPELINE), ...policies('ClientPolicy', 'LastPolicy')];
    const { code, stdout } = await review(...args);
    expect(code).toBe(0);
    const headings = stdout.split('\n').filter((line) => /^task \d/.test(line));
    expect(headings).toEqual(['task 1 of 2: first', 'task 2 of 2']);
    expect(stdout.match(/requestName: jobs\.launch/g)).toHaveLength(2);
    expect(stdout.match(/^ {3}(?:run: [xy])$/gm)).toEqual(['   run: x', '   run: y']);

    const json = await review(...args, '--format', 'json');
    expect(jsonLines(json.stdout)).toMatchObject([
      { pipeline: { task: 1, of: 2, name: 'first' }, allowed: true, changed: true },
      { pipeline: { task: 2, of: 2, name: null }, allowed: true, changed: true },
    ]);
  });

  it('is rejected with any of its tasks, and the others are reviewed too', async () => {
    const tasks = 'name: seen\n---\nname: ok\nrun: x\n---\nname: seen\nrun: y\n---\nname: later\nrun: z\n';
    const { code, stdout } = await review(taskFile(tasks), ...policies('ShyPolicy'));
    expect(code).toBe(1);
    expect(stdout).toMatch(/task 1 of 3: ok\n.*\nShyPolicy +changed/);
    expect(stdout).toMatch(/task 2 of 3: seen\n.*\nShyPolicy +rejected +seen it/);
    expect(stdout).toMatch(/task 3 of 3: later\n.*\nShyPolicy +changed/);
  });
});

describe('--check-idempotence', () => {
  const check = (...names: (keyof typeof POLICIES)[]) => [
    bodyFile(),
    ...policies(...names),
    '--check-idempotence',
  ];

  it.for<[keyof typeof POLICIES, string]>([
    ['GrowPolicy', 'not idempotent: the result is changed again by GrowPolicy'],
    ['ShyPolicy', 'not idempotent: ShyPolicy rejects the result: seen it'],
    ['FragilePolicy', 'FragilePolicy failed when called with its own result'],
  ])('ends with 3 when the answer is not left alone: %s', async ([name, message]) => {
    const args = check('TeamPolicy', name);
    const { code, stdout, stderr } = await review(...args);
    expect({ code, stderr }).toEqual({ code: 3, stderr: `error: ${message}\n` });
    // The answer itself is shown all the same.
    expect(stdout).toContain('+    team: physics');
    expect(await reviewJson(...args)).toMatchObject({
      code: 3,
      answer: { allowed: true, failed: false, idempotent: false },
    });
  });

  it('is not checked without the flag, or after a rejection', async () => {
    const { code, answer } = await reviewJson(bodyFile(), ...policies('GrowPolicy'));
    expect({ code, idempotent: answer.idempotent }).toEqual({ code: 0, idempotent: null });
    expect(await reviewJson(...check('RejectPolicy'))).toMatchObject({
      code: 1,
      answer: { idempotent: null },
    });
  });
});

describe('secrets', () => {
  // Each stands next to something that is changed, where a diff shows what is around it.
  const task = `name: t
secrets:
  HF_TOKEN: s3cret-old
envs: {WANDB_API_KEY: s3cret, DB_PASSWORD: 12345678}
run: |
  export HF_TOKEN=s3cret
_user_specified_yaml: |
  secrets: {HF_TOKEN: s3cret}
`;
  const skypilot_config = `admin_policy: https://policy.example/p?token=s3cret
db: postgresql://sky:s3cret@db.example/sky
kubernetes: {pod_config: {spec: {containers: [{env: [{name: HF_TOKEN, value: s3cret}]}]}}}
`;

  it.for(['diff', 'json'])('are never in what is printed: --format %s', async (format) => {
    const file = bodyFile({ task, skypilot_config });
    const { code, stdout, stderr } = await review(
      ...[file, ...policies('RotatePolicy', 'LastPolicy'), '--format', format],
    );
    expect(stdout).toContain('+zone: z');
    expect(stdout).toContain('****');
    expect(stdout + stderr).not.toMatch(/s3cret|12345678/);
    expect(code).toBe(0);
  });

  it('are reported as changed if nothing else is', async () => {
    const { stdout } = await review(
      taskFile('secrets: {HF_TOKEN: s3cret-old}\n'),
      ...policies('RotatePolicy'),
    );
    expect(stdout).toMatch(
      /\n--- task\n\+\+\+ task \(changed by policies\)\n\(the changed values are hidden\)\n$/,
    );
  });
});

describe('a mistake', () => {
  const ONE_LINE = /^error: [^\n]+\n$/;

  it.for<[string, string, string]>([
    ['no YAML', 'run: [s3cret\n', 'task: expected YAML, and line'],
    ['nothing', ' \n', 'expected a request or a task, got nothing'],
    ['a body without a configuration', '{"task": "run: s3cret"}', 'skypilot_config: expected a string'],
  ])('in the request ends with 2 and one sentence: %s', async ([, content, message]) => {
    const file = temporaryFile('request', content);
    const result = await review(file, ...policies('NothingPolicy'));
    expect(result).toEqual(refused(ONE_LINE));
    expect(result.stderr).toContain(`error: ${file}: ${message}`);
    expect(result.stderr).not.toContain('s3cret');
  });

  it('in the configuration file names that file', async () => {
    const task = taskFile('run: x\n');
    const config = temporaryFile('config.yaml', 'a: [s3cret');
    const { stderr } = await review(task, '--skypilot-config', config, ...policies('NothingPolicy'));
    expect(stderr).toMatch(`error: ${config}: skypilot_config: expected YAML`);
    expect(await review(task, '--skypilot-config', '/nowhere.yaml', ...policies('NothingPolicy'))).toEqual(
      refused('/nowhere.yaml: could not be read: there is no such file'),
    );
  });

  it('is a file longer than body_limit', async () => {
    const file = taskFile(`run: ${'x'.repeat(2000)}\n`);
    const limit = ['--config', 'service.body_limit=1024'];
    expect(await review(file, ...limit, ...policies('NothingPolicy'))).toEqual(
      refused(`${file}: could not be read: it is longer than 1024 bytes`),
    );
  });

  it('is - given twice', async () => {
    expect(await review('-', '--skypilot-config', '-', ...policies('NothingPolicy'))).toEqual(
      refused('standard input (-) can be read once'),
    );
  });

  it.for(['--skypilot-config=x', '--down'])('is %s beside a body', async (flag) => {
    expect(await review(bodyFile(), flag, ...policies('NothingPolicy'))).toEqual(
      refusedWith(`${flag.replace(/=.*/, '')} apply to a task, but this is a request body\n`),
    );
  });

  it.for<[string[], string]>([
    [['--client-side', '--user', 'a:b'], 'a client sends neither its user nor its versions; the server does'],
    [['--request-name', 'jobs.launch', '--idle-minutes', '3'], 'jobs.launch has no options, such as idle'],
    [['--idle-minutes', '1.5'], 'expected a whole number from -1 to 999999999'],
    [['--user', ':lin'], 'expected an id, or id:name'],
  ])('is a flag that SkyPilot could not send: %s', async ([flags, message]) => {
    const result = await review(taskFile('run: x\n'), ...flags, ...policies('NothingPolicy'));
    expect(result).toEqual(refused(ONE_LINE));
    expect(result.stderr).toContain(message);
  });

  it('is a configuration without policies, or with an invalid one', async () => {
    expect(
      await runProgramInProcess(['skypilot', 'review', bodyFile(), '--config-file', confFile('')]),
    ).toEqual(refused('[skypilot] admin_policies names no policy; name a configuration with --config-file'));
    const conf = confFile('[skypilot]\nadmin_policies = ./nowhere.js#NoPolicy\n');
    expect(await review(bodyFile(), '--config-file', conf)).toEqual(
      refusedWith(`${conf}:2: [skypilot] admin_policies: the policy "./nowhere.js#NoPolicy" cannot`),
    );
  });
});

function validationFlags(config_validation: string): string[] {
  const { specifiers } = policyFiles({ FirstPolicy: '' });
  const conf = `[skypilot]\nadmin_policies = ${specifiers.join()}\nisolation = none\nconfig_validation = ${config_validation}\n`;
  return ['--config-file', confFile(conf), '--log-level', 'silent'];
}

const MISTAKEN = 'name: a\nresources:\n  autostp: 5\n';

async function reviewAs(config_validation: string, text = MISTAKEN) {
  const task = temporaryFile('task.yaml', text);
  const flags = [task, ...validationFlags(config_validation), '--format', 'json'];
  const { code, stdout, stderr } = await runInProcess(skypilotReviewCommand(), flags);
  const { message, warnings } = JSON.parse(stdout.split('\n')[0] ?? '');
  return { code, text: JSON.stringify([message, warnings]), task, stderr };
}

describe('config_validation', () => {
  it('names file and line', async () => {
    const { code, text, task } = await reviewAs('warning');
    expect(code).toBe(0);
    expect(text).toContain(`${task}:3: resources.autostp: unknown key`);
  });
  it('is shown among the policies if it rejects', async () => {
    const task = temporaryFile('task.yaml', MISTAKEN);
    const { code, stdout } = await runInProcess(skypilotReviewCommand(), [task, ...validationFlags('error')]);
    expect(code).toBe(1);
    expect(stdout).toContain(`config_validation  rejected  The request is not valid for SkyPilot`);
    expect(stdout).toContain(`${task}:3: resources.autostp: unknown key`);
  });
  it('names the line of a job whose name another job of the group has, after the header', async () => {
    const { stderr, task } = await reviewAs(
      'error',
      'name: group\nexecution: parallel\nmistake: 1\n---\nname: a\nrun: x\n---\nname: a\nrun: y\n',
    );
    expect(stderr).toContain(`error: ${task}:8: name: expected another name for each job of a group\n`);
    // SkyPilot ignores it, so that no option makes it an error.
    expect(stderr).toContain(`warning: ${task}:3: mistake: ignored in a header`);
  });
});
