import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ConfigurationError } from '../../../src/base/errors.ts';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import type { Review } from '../../../src/skypilot/policies/policy-chain.ts';
import { shownLines } from '../../support/isolated-policies.ts';
import {
  ALLOWED_AS_IT_CAME,
  chainOf,
  chainOn,
  FAILED,
  inside,
  probe,
  type RunningChain,
  received,
  wireBody,
} from '../../support/skypilot.ts';
import { policyFile } from './temporary-policy.ts';

const SET_LABEL = "task.labels = { ...task.labels, team: 'ml' };";
const SET_TIMEOUT = "config.setNested(['kubernetes', 'provision_timeout'], 900);";

function expectUntouched(review: Review): void {
  expect({ task: review.task, config: review.skypilotConfig.toDict() }).toEqual({
    task: { name: 'tiny', run: 'hostname' },
    config: {},
  });
}

it('a chain without policies allows everything as it is', async () => {
  const { chain, review } = await chainOn({});
  expect(chain.isEmpty).toBe(true);
  const { task, skypilot_config } = inside(wireBody('launch-server'));
  const answer = await review(received({ task, skypilot_config }));
  expect(answer).toMatchObject(ALLOWED_AS_IT_CAME);
  expect(inside(answer.answer ?? '')).toEqual({ task, skypilot_config });
});

it('a policy that fails at each request leaves thirty lines a minute', async () => {
  const { review, chain, logger } = await chainOf({ BrokenPolicy: "throw new Error('away');" });
  for (let count = 0; count < 40; count += 1) {
    await review(received());
  }
  await chain.close();
  expect(logger.lines.filter(({ message }) => message === 'policy failed')).toHaveLength(30);
  expect(logger.lines.at(-1)).toEqual({
    level: 'error',
    fields: { policy: 'BrokenPolicy', suppressed: 10 },
    message: 'more than are logged of this policy',
  });
});

describe('the policies', () => {
  it('are called in order, each with the result of the previous one', async () => {
    const { review, chain } = await chainOf({
      FirstPolicy: "if (!task.seen) { task.seen = ['first']; config.setNested(['seen'], ['first']); }",
      SecondPolicy:
        "if (task.seen.length < 2) { task.seen.push('second'); config.setNested(['seen'], [...config.getNested(['seen']), 'second']); }",
    });
    expect(chain.isEmpty).toBe(false);
    const answer = await review(received());
    expect(answer).toMatchObject({
      allowed: true,
      changed: true,
      message: null,
      policy: null,
      failed: false,
    });
    expect(answer.task.seen).toEqual(['first', 'second']);
    expect(answer.skypilotConfig.toDict()).toEqual({ seen: ['first', 'second'] });
    expect(answer.outcomes.map(({ policy, changed }) => ({ policy, changed }))).toEqual([
      { policy: 'FirstPolicy', changed: true },
      { policy: 'SecondPolicy', changed: true },
    ]);
    expect(inside(answer.answer ?? '')).toEqual({
      task: expect.stringContaining('second'),
      skypilot_config: 'seen:\n  - first\n  - second\n',
    });
  });

  it('see the whole request', async () => {
    const seen = probe<unknown[]>([]);
    const { review } = await chainOf({
      SeeingPolicy: 'probe.push({ ...request, skypilotConfig: config.toDict() }, Object.keys(call));',
    });
    await review(received({ skypilot_config: 'a: 1\n', request_name: 'exec' }));
    expect(seen[0]).toEqual({
      task: { name: 'tiny', run: 'hostname' },
      skypilotConfig: { a: 1 },
      requestName: 'exec',
      requestOptions: { clusterName: 'one', idleMinutesToAutostop: null, down: false, dryrun: false },
      atClientSide: false,
      user: { id: '0a1b2c3d', name: 'lin', userType: null, preferredWorkspace: null },
      clientApiVersion: 57,
      clientVersion: '0.13.0',
    });
  });

  it('may return a promise, a plain object, and a plain configuration', async () => {
    const { review } = await chainOf({
      LaterPolicy: 'return Promise.resolve({ task: { a: 1 }, skypilotConfig: config });',
      PlainPolicy: 'return new MutatedUserRequest(task, { b: 2 });',
    });
    const answer = await review(received());
    expect({ task: answer.task, config: answer.skypilotConfig.toDict() }).toEqual({
      task: { a: 1 },
      config: { b: 2 },
    });
  });

  it('are not called after a rejection', async () => {
    const asked = probe<string[]>([]);
    const { review, logger } = await chainOf({
      ChangingPolicy: `${SET_LABEL} ${SET_TIMEOUT}`,
      RejectingPolicy: "task.name = 'x'; throw new PolicyRejected('no launches\\non Sundays');",
      LastPolicy: "probe.push('last');",
    });
    const answer = await review(received());
    expect(answer).toMatchObject({
      allowed: false,
      changed: false,
      failed: false,
      message: 'no launches\non Sundays',
      policy: 'RejectingPolicy',
      answer: null,
      outcomes: [
        { policy: 'ChangingPolicy', allowed: true, changed: true, message: null },
        { policy: 'RejectingPolicy', allowed: false, changed: false, failed: false },
      ],
    });
    expectUntouched(answer);
    expect(asked).toEqual([]);
    expect(logger.lines).toEqual([]);
  });

  it('may reject with the class of another copy of the package', async () => {
    const { review } = await chainOf({
      OtherCopyPolicy:
        "throw Object.assign(new Error('no'), { [Symbol.for('blazar-enforcement.policy-rejected')]: true });",
    });
    expect(await review(received())).toMatchObject({ allowed: false, failed: false, message: 'no' });
  });
});

describe('a policy that fails', () => {
  it.for([
    ['throws an error', "throw new Error('the cause');", 'the cause'],
    ['throws what has no text', 'throw Object.create(null);', 'the error has no text'],
    ['returns nothing', 'return;', /MutatedUserRequest/],
    ['returns the task alone', 'return task;', /task of the answer/],
    ['returns no configuration', 'return new MutatedUserRequest(task);', /skypilotConfig of the answer/],
    ['returns a circle', 'task.self = task;', /circular/],
    ['returns a function', 'task.run = () => 1;', /function/],
    ['returns a date', 'task.when = new Date();', /instance of a class/],
    ['returns too much', 'task.list = Array.from({ length: 300_000 }, () => 1);', /50000 values/],
    [
      'returns too deep a task',
      'let t = task; for (let i = 0; i < 200; i += 1) t = t.x = {};',
      /at most 100 levels/,
    ],
    [
      'throws in a getter',
      "Object.defineProperty(task, 'x', { enumerable: true, get() { throw new Error('in') } });",
      'in',
    ],
    [
      'lays a list over a text',
      "config.setNested(['kubernetes', 'pod_config', 'a'], 'x'); config.setNested(['kubernetes', 'pod_config', 'a'], []);",
      /pod_config\.a/,
    ],
  ] as const)('has failed when it %s', async ([, text, cause]) => {
    const { review, logger } = await chainOf({ BrokenPolicy: text });
    const answer = await review(received());
    expect(answer).toMatchObject({
      allowed: false,
      changed: false,
      failed: true,
      message: FAILED,
      policy: 'BrokenPolicy',
      answer: null,
      outcomes: [{ policy: 'BrokenPolicy', allowed: false, failed: true, changed: false, message: FAILED }],
    });
    expectUntouched(answer);
    expect(shownLines(logger)[0]).toEqual({
      level: 'error',
      fields: {
        request_id: 'req-1',
        policy: 'BrokenPolicy',
        error: typeof cause === 'string' ? cause : expect.stringMatching(cause),
      },
      message: 'policy failed',
    });
  });

  it.for([
    ['a promise that never settles', 'return new Promise(() => {});'],
    [
      'what waits, and then rejects',
      "return new Promise((_, no) => setTimeout(no, 400, new PolicyRejected('late')));",
    ],
    ['an answer that comes too late', 'const end = Date.now() + 150; while (Date.now() < end); '],
  ] as const)('has failed at the deadline: %s', async ([, text]) => {
    const { review, logger } = await chainOf({ SlowPolicy: text, NextPolicy: SET_LABEL });
    const answer = await review(received(), 0.1);
    expect(answer).toMatchObject({ allowed: false, failed: true, message: FAILED, policy: 'SlowPolicy' });
    expect(logger.lines[0]?.fields.error).toBe('no answer within 0.1 s');
  });

  it('has failed if its result cannot be written', async () => {
    const { review, logger } = await chainOf({ IdlePolicy: '', LabelPolicy: SET_LABEL, LastPolicy: '' });
    const write = vi.spyOn(YamlDocument.prototype, 'with').mockImplementation(() => {
      throw new RangeError('Invalid string length');
    });
    onTestFinished(() => write.mockRestore());
    const answer = await review(received());
    expect(answer).toMatchObject({
      allowed: false,
      failed: true,
      changed: false,
      message: FAILED,
      answer: null,
    });
    expect(answer.policy).toBe('LabelPolicy');
    expect(answer.outcomes.map(({ policy, failed }) => ({ policy, failed }))).toEqual([
      { policy: 'IdlePolicy', failed: false },
      { policy: 'LabelPolicy', failed: true },
      { policy: 'LastPolicy', failed: false },
    ]);
    expectUntouched(answer);
    expect(logger.lines[0]?.fields).toMatchObject({ policy: 'LabelPolicy', error: 'Invalid string length' });
  });

  it('gets a signal at the deadline', async () => {
    const seen = probe<string[]>([]);
    const { review } = await chainOf({
      ListeningPolicy:
        "return new Promise(() => call.signal.addEventListener('abort', () => probe.push('over')));",
    });
    await review(received(), 0.05);
    expect(seen).toEqual(['over']);
  });

  it('does not affect other requests', async () => {
    const { review } = await chainOf({
      OddPolicy: "if (task.name === 'odd') { throw new Error('x'); }",
      LabelPolicy: SET_LABEL,
    });
    const names = ['odd', 'even', 'odd', 'even'];
    const answers = await Promise.all(names.map((name) => review(received({ task: `name: ${name}\n` }))));
    expect(answers.map(({ allowed }) => allowed)).toEqual([false, true, false, true]);
  });
});

describe('nothing leaks', () => {
  const request = () =>
    received({ task: 'envs: {A: "1"}\nlist: [{x: 1}]\n', skypilot_config: 'aws: {labels: {a: "1"}}\n' });
  const AS_IT_CAME = {
    task: { envs: { A: '1' }, list: [{ x: 1 }] },
    config: { aws: { labels: { a: '1' } } },
  };
  const stateOf = ({ task, skypilotConfig }: Review) => ({ task, config: skypilotConfig.toDict() });
  const SPOIL = `task.envs.A = 'spoiled'; task.list[0].x = 'spoiled'; task.list.push('spoiled'); task.spoiled = true;
    config.assign(['aws', 'labels', 'a'], 'spoiled'); config.assign(['spoiled'], true);`;

  async function twice({ review }: RunningChain): Promise<Review[]> {
    const one = request();
    return [await review(one), await review(one), await review(request())];
  }

  it('of changes before a policy rejects or fails', async () => {
    for (const end of ["throw new PolicyRejected('no');", "throw new Error('x');", 'return 7;']) {
      for (const answer of await twice(await chainOf({ SpoilingPolicy: SPOIL + end }))) {
        expect(stateOf(answer)).toEqual(AS_IT_CAME);
      }
    }
  });

  it('of changes in place that a policy does not return', async () => {
    const { review } = await chainOf({
      SpoilingPolicy: `const before = [structuredClone(task), config.toDict()]; ${SPOIL} return new MutatedUserRequest(...before);`,
      SeeingPolicy: 'probe.push([task, config.toDict()]);',
    });
    const seen = probe<unknown[]>([]);
    const answer = await review(request());
    expect(seen).toEqual([[AS_IT_CAME.task, AS_IT_CAME.config]]);
    expect(stateOf(answer)).toEqual(AS_IT_CAME);
    expect(answer.changed).toBe(false);
  });

  it('of changes after a policy has returned', async () => {
    const { review } = await chainOf({
      LatePolicy: `const answer = new MutatedUserRequest(task, config);
        const spoil = () => { ${SPOIL} };
        queueMicrotask(() => queueMicrotask(spoil)); process.nextTick(spoil); setImmediate(spoil); setTimeout(spoil, 5);
        return answer;`,
      WaitingPolicy:
        'return new Promise((go) => setTimeout(go, 30)).then(() => new MutatedUserRequest(task, config));',
    });
    const answers = await Promise.all([review(request()), review(request())]);
    await new Promise((later) => setTimeout(later, 30));
    for (const answer of answers) {
      expect(stateOf(answer)).toEqual(AS_IT_CAME);
      expect(inside(answer.answer ?? '')).toEqual({
        task: request().task.toString(),
        skypilot_config: request().skypilotConfig.toString(),
      });
    }
  });

  it('of state that a policy keeps between requests', async () => {
    const { review } = await chainOf({
      KeepingPolicy: `this.kept ??= [];
        for (const [task, config] of this.kept) { ${SPOIL} }
        this.kept.push([task, config], [request.user, request.requestOptions]);
        this.kept.pop();`,
      SharingPolicy:
        'this.first ??= task; this.first.envs.A = "spoiled"; return new MutatedUserRequest(structuredClone(task), config);',
    });
    const first = await review(request());
    const [second, third] = await Promise.all([review(request()), review(request())]);
    expect(stateOf(second)).toEqual(AS_IT_CAME);
    expect(stateOf(third)).toEqual(AS_IT_CAME);
    expect(first.task.envs).toEqual({ A: 'spoiled' });
  });

  it('of the user and the options', async () => {
    const one = request();
    const { review } = await chainOf({
      SpoilingPolicy: "request.user.name = 'root'; request.requestOptions.clusterName = 'other';",
      SeeingPolicy: 'probe.push(request.user.name, request.requestOptions.clusterName);',
    });
    const seen = probe<unknown[]>([]);
    await review(one);
    expect(seen).toEqual(['lin', 'one']);
    expect(one).toMatchObject({ user: { name: 'lin' }, requestOptions: { clusterName: 'one' } });
  });

  it('between concurrent requests', async () => {
    const { review } = await chainOf({
      SlowPolicy: `task.labels = { owner: task.name };
        return new Promise((go) => setTimeout(go, Math.random() * 10)).then(() => {
          config.setNested(['owner'], task.name);
          return new MutatedUserRequest(task, config);
        });`,
      OtherPolicy: "config.setNested(['labels', task.labels.owner], 'x');",
    });
    const names = Array.from({ length: 40 }, (_, index) => `t${index}`);
    const answers = await Promise.all(names.map((name) => review(received({ task: `name: ${name}\n` }))));
    expect(answers.map(stateOf)).toEqual(
      names.map((name) => ({
        task: { name, labels: { owner: name } },
        config: { owner: name, labels: { [name]: 'x' } },
      })),
    );
  });
});

describe('the options of a policy', () => {
  const file = () =>
    policyFile('LimitPolicy', 'task.limit = this.options.limit;', {
      imports: "import { z } from 'zod';",
      extra: "static options = z.object({ limit: z.int().max(10).default(5).meta({ description: 'x' }) });",
    });

  it('are in the section, with their defaults', async () => {
    const { review } = await chainOn({ admin_policies: [file()], limit: 3 });
    expect((await review(received())).task.limit).toBe(3);
    const other = await chainOn({ admin_policies: [file()] });
    expect((await other.review(received())).task.limit).toBe(5);
  });

  it('are checked before anything starts', async () => {
    await expect(chainOn({ admin_policies: [file()], limit: 11 })).rejects.toThrow(/\[skypilot\] limit/);
    await expect(chainOn({ admin_policies: [file()], limt: 3 })).rejects.toThrow(/\[skypilot\] limt/);
  });
});

describe('a chain', () => {
  it('is not created if a policy cannot be set up, and closes the others', async () => {
    const closed = probe<string[]>([]);
    const admin_policies = [
      policyFile('FirstPolicy', '', { extra: "close() { probe.push('first'); }" }),
      policyFile('SecondPolicy', '', { extra: "x = (() => { throw new Error('no registry'); })();" }),
    ];
    const made = chainOn({ admin_policies });
    await expect(made).rejects.toThrow(ConfigurationError);
    await expect(made).rejects.toThrow(
      '[skypilot] admin_policies: SecondPolicy could not be set up: no registry',
    );
    expect(closed).toEqual(['first']);
  });

  it('closes every policy, even if one of them fails', async () => {
    const closed = probe<string[]>([]);
    const admin_policies = [
      policyFile('One', '', { extra: "async close() { throw new Error('stuck'); }" }),
      policyFile('Two', '', { extra: "async close() { probe.push('two'); }" }),
    ];
    const { chain, logger } = await chainOn({ admin_policies });
    await chain.close();
    expect(closed).toEqual(['two']);
    expect(logger.lines).toEqual([
      { level: 'error', fields: { policy: 'One', error: 'stuck' }, message: 'policy could not be closed' },
    ]);
  });
});
