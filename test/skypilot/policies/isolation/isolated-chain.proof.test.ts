/** Policies in threads of their own; see also `isolation.proof.test.ts`. */
import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { shownLines, switched, taskOf, threads } from '../../../support/isolated-policies.ts';
import { listen } from '../../../support/listening.ts';
import { chainOf, chainOn, policyFiles } from '../../../support/skypilot.ts';

describe('a policy in a thread', () => {
  it('gives the same results as one in process', async () => {
    const ways = {
      changed: "task.labels = { a: [1n, -0, NaN, null, '\u2028'] }; config.setNested(['a', 'b'], ['c']);",
      proto: `task.envs = JSON.parse('{"__proto__": {"a": 1}}');`,
      later: 'return Promise.resolve({ task, skypilotConfig: config });',
      asked: 'task.seen = JSON.stringify({ ...request, skypilotConfig: config.toDict() });',
      rejected: "throw new PolicyRejected('no launches\\non Sundays');",
      'rejected later': "return Promise.reject(new PolicyRejected('not now'));",
      thrown: "throw new Error('the cause');",
      text: "throw 'the cause';",
      'no text': 'throw Object.create(null);',
      nothing: 'return;',
      number: 'return 7;',
      circle: 'task.self = task;',
      function: 'task.run = () => 1;',
      instance: 'task.config = config;',
      getter: "Object.defineProperty(task, 'x', { enumerable: true, get() { throw new Error('in') } });",
      many: 'task.list = Array.from({ length: 300_000 }, () => 1);',
      long: "task.run = 'x'.repeat(40_000_000);",
      deep: 'let t = task; for (let i = 0; i < 200; i += 1) t = t.x = {};',
      shared: 'task.buffer = new SharedArrayBuffer(8);',
    };
    const policies = switched(ways);
    const isolated = await threads(policies);
    const here = await chainOf(policies);
    for (const name of [...Object.keys(ways), 'last']) {
      const one = await isolated.review(taskOf(name));
      const other = await here.review(taskOf(name));
      const of = ({ outcomes, skypilotConfig, ...review }: typeof one) => ({
        ...review,
        config: skypilotConfig.toDict(),
        outcomes: outcomes.map(({ milliseconds: _, ...outcome }) => outcome),
      });
      expect({ name, review: of(one) }).toEqual({ name, review: of(other) });
    }
    expect(isolated.logger.lines.filter(({ level }) => level === 'error').length).toBeGreaterThan(10);
    expect(shownLines(isolated.logger)).toEqual(shownLines(here.logger));
    // What it keeps in memory is there as long as its thread is.
    expect((await isolated.review(taskOf('last'))).task.count).toBe(Object.keys(ways).length + 2);
  });

  it('is what a policy of a file has by default, and an included one has not', async () => {
    const { specifiers } = policyFiles({
      OwnPolicy:
        "return import('node:worker_threads').then(({ isMainThread }) => ({ task: { ...task, isMainThread }, skypilotConfig: config }));",
    });
    const { review } = await chainOn({
      admin_policies: [...specifiers, 'AddLabelsPolicy'],
      isolation: undefined,
    });
    const { task, skypilotConfig, outcomes } = await review(taskOf('good'), 60);
    expect(task.isMainThread).toBe(false);
    expect(skypilotConfig.getNested(['kubernetes', 'custom_metadata'])).toEqual({
      labels: { app: 'skypilot' },
    });
    expect(outcomes.map(({ policy, changed }) => [policy, changed])).toEqual([
      ['OwnPolicy', true],
      ['AddLabelsPolicy', true],
    ]);
  });

  it('that stops at its signal keeps its thread and state', async () => {
    const { review, logger } = await threads(
      switched({
        bad: "return new Promise((_, no) => call.signal.addEventListener('abort', () => no(new Error('late'))));",
      }),
    );
    expect(await review(taskOf('bad'), 0.3)).toMatchObject({ failed: true });
    await new Promise((later) => setTimeout(later, 400));
    expect((await review(taskOf('good'))).task.count).toBe(2);
    expect(shownLines(logger).map(({ message }) => message)).toEqual(['policy failed']);
  });

  it('has a logger, a clock and an HTTP client', async () => {
    const { port } = await listen(createServer((_, answer) => answer.end('{"a":1}')));
    const url = `http://127.0.0.1:${port}/`;
    const calls: unknown[] = [];
    const { review, logger } = await threads(
      {
        AskingPolicy: `const { logger, clock, http } = this.services;
        const client = http.createClient({ timeout: 15, connectRetries: 0, breakerFailures: 1, breakerCooldown: 1 });
        return client.get('${url}', { signal: call.signal }).then(({ status, body }) => {
          logger.warn({ status, big: 1n, self: undefined }, 'asked');
          logger.error(new Error('an error'));
          logger.info('a text');
          const round = {}; round.self = round;
          logger.warn(round);
          for (let i = 0; i < 100_000; i += 1) logger.warn('flood');
          task.year = clock.now().getFullYear();
          return client.close().then(() => new MutatedUserRequest({ ...task, body }, config));
        });`,
      },
      { httpObserver: { called: (...call: unknown[]) => void calls.push(call), breakerChanged: () => {} } },
    );
    const { task: answered } = await review(taskOf('good'), 20);
    expect(answered).toMatchObject({ body: '{"a":1}', year: new Date().getFullYear() });
    const policy = 'AskingPolicy';
    expect(logger.lines.slice(0, 5)).toEqual([
      { level: 'warn', fields: { policy, status: 200, big: '1' }, message: 'asked' },
      { level: 'error', fields: { policy, error: 'an error' }, message: '' },
      { level: 'info', fields: { policy }, message: 'a text' },
      { level: 'warn', fields: { policy, fields: 'cannot be written as JSON' }, message: '' },
      { level: 'warn', fields: { policy }, message: 'flood' },
    ]);
    expect(logger.lines.length).toBeLessThan(1000);
    expect(calls).toEqual([[url.slice(0, -1), 200, expect.any(Number)]]);
  });
});
