/** What is too much for one, and must not keep the others waiting. */
import { describe, expect, it, vi } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { metric } from '../../support/metric.ts';
import { inside, wireBody } from '../../support/skypilot.ts';
import { runSkypilot } from '../../support/skypilot-service.ts';
import { withResolvers } from '../../support/with-resolvers.ts';

const ALIASES = [
  'a: &a [x]',
  ...[...'bcdefghij'].map((name, index) => {
    const before = 'abcdefghij'[index];
    return `${name}: &${name} [${Array(9).fill(`*${before}`).join(', ')}]`;
  }),
].join('\n');

/** Far beyond every bound, and all within `body_limit`. */
const BOMBS: readonly (readonly [string, string])[] = [
  ['aliases of aliases', ALIASES],
  ['a million items', `a:\n${'- 1\n'.repeat(1_000_000)}`],
  ['nested mappings', `a: ${'{b: '.repeat(50_000)}`],
  ['101 levels', `a: ${'['.repeat(101)}${']'.repeat(101)}`],
];

describe('YAML that is too much', () => {
  it('is rejected in time, while other requests are answered', async () => {
    const { ask } = await runSkypilot({ IdlePolicy: '' }, { skypilot: { deadline: 29 } });
    for (const [index, [what, yaml]] of BOMBS.entries()) {
      const member = index % 2 === 0 ? 'task' : 'skypilot_config';
      const started = performance.now();
      const [bomb, other] = await Promise.all([ask({ [member]: yaml }), ask(wireBody('launch-server'))]);
      expect({ what, status: bomb.status, json: bomb.json }).toEqual({
        what,
        status: 422,
        json: { message: expect.stringMatching(new RegExp(`^${member}: expected YAML(, and| of at most) `)) },
      });
      expect(other.status).toBe(200);
      expect(performance.now() - started).toBeLessThan(200_000);
    }
  });

  it.each([
    ['task', 4200],
    ['skypilot_config', 4200],
    ['user', 200],
  ])('is rejected for more tokens than are parsed: %s', async (member, lines) => {
    const { ask } = await runSkypilot({ IdlePolicy: '' });
    const text = Array.from({ length: lines }, (_, index) => `key-${index}: value\n`).join('');
    expect(await ask({ [member]: text })).toMatchObject({
      status: 422,
      json: {
        message: expect.stringMatching(
          new RegExp(`^${member}: .* more than ${member === 'user' ? 1000 : 25000} tokens$`),
        ),
      },
    });
  });

  it('is not rejected for 2,000 lines of pod_config, which a policy may change', async () => {
    const { ask } = await runSkypilot({ LabelPolicy: "config.assign(['aws', 'labels'], { a: 'b' });" });
    const variables = Array.from(
      { length: 1000 },
      (_, index) => `          - name: VARIABLE_${index}\n            value: 'value ${index}'\n`,
    );
    const container = '        - name: ray-node\n          env:\n';
    const config = `kubernetes:\n  pod_config:\n    spec:\n      containers:\n${container}${variables.join('')}`;
    const { status, text } = await ask({ skypilot_config: config });
    expect(status).toBe(200);
    expect(YamlDocument.parse(String(inside(text).skypilot_config)).value).toEqual({
      ...(YamlDocument.parse(config).value as object),
      aws: { labels: { a: 'b' } },
    });
  });

  it('is not rejected for a long text', async () => {
    const { ask } = await runSkypilot({ LabelPolicy: "task.labels = { a: 'b' };" });
    const run = `echo ${'x'.repeat(500_000)}\n`.repeat(2);
    const { status, text } = await ask({ task: `run: ${JSON.stringify(run)}\nnum_nodes: 1\n` });
    expect(status).toBe(200);
    expect(String(inside(text).task).length).toBeGreaterThan(1_000_000);
  });
});

describe('more reviews than the limit', () => {
  it('get 503, and are not recorded', async () => {
    const underWay = withResolvers();
    const review = withResolvers();
    vi.stubGlobal('gate', () => {
      underWay.resolve();
      return review.promise;
    });
    const { ask, request } = await runSkypilot(
      { GatePolicy: 'return gate().then(() => new MutatedUserRequest(task, config));' },
      { service: { max_concurrent: 1, max_queued: 0 } },
    );
    const first = ask();
    await underWay.promise;
    const refused = await ask();
    expect(refused).toMatchObject({ status: 503, json: { message: expect.stringContaining('try again') } });
    expect(refused.headers.get('Retry-After')).toBe('1');
    review.resolve();
    expect((await first).status).toBe(200);
    const { text } = await request('/metrics');
    expect(metric(text, 'blazar_enforcement_overload_refusals_total')).toBe(1);
    expect(metric(text, 'blazar_enforcement_decisions_total')).toBe(1);
  });
});
