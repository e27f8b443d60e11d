/** What a policy changed, as the decision log and the page show it. */
import { describe, expect, it } from 'vitest';
import { type Changes, changesOf, MAX_CHANGES } from '../../../src/skypilot/policies/changes.ts';
import { SecretValues } from '../../../src/skypilot/secrets.ts';
import { chainOn, policyFiles, received } from '../../support/skypilot.ts';

function changed(before: object, after: object): Changes {
  const steps = [{ before: { task: before }, after: { task: after } }];
  return changesOf(steps, SecretValues.of(before))[0] as Changes;
}

/** `path: before → after`; nothing stands for what is not there. */
function shown(before: object, after: object): string[] {
  return changed(before, after).list.map((one) => `${one.path}: ${one.before ?? ''} → ${one.after ?? ''}`);
}

const own = (name: string, value: unknown) =>
  Object.defineProperty({}, name, { value, enumerable: true, configurable: true, writable: true }) as object;

describe('the changes of a policy', () => {
  it('are the paths of what was added, removed and replaced', () => {
    expect(
      shown(
        { name: 'fold', resources: { disk_size: 256, use_spot: false } },
        { resources: { disk_size: 512, use_spot: false, labels: { team: 'ml' } } },
      ),
    ).toEqual([
      'task.name: fold → ',
      'task.resources.disk_size: 256 → 512',
      'task.resources.labels.team:  → ml',
    ]);
  });

  it('tell a number from its text, and nothing from null and empty', () => {
    expect(
      shown(
        { a: 1, b: null, c: {}, d: '', e: true, f: 'yes', h: 'a\nb' },
        { a: '1', b: 'null', c: [], e: 'true', g: null, h: 'a: b' },
      ),
    ).toEqual([
      'task.a: 1 → "1"',
      'task.b: null → "null"',
      'task.c: {} → []',
      'task.d: "" → ',
      'task.e: true → "true"',
      'task.f: "yes" → ',
      'task.h: "a\\nb" → "a: b"',
      'task.g:  → null',
    ]);
  });

  it('are the items of a list that differ, not those that moved', () => {
    const items = ['a', 'b', 'c'].map((key) => ({ key }));
    expect(shown({ list: items }, { list: [{ key: 'x' }, ...items] })).toEqual(['task.list[0].key:  → x']);
    expect(shown({ list: items }, { list: [items[0], { key: 'z' }, items[2]] })).toEqual([
      'task.list[1].key: b → z',
    ]);
    expect(shown({ list: items }, { list: items.slice(0, 1) })).toEqual([
      'task.list[1].key: b → ',
      'task.list[2].key: c → ',
    ]);
  });

  it('show a value that became a mapping on both sides', () => {
    expect(
      shown({ resources: { accelerators: 'A100' } }, { resources: { accelerators: { A100: 1 } } }),
    ).toEqual(['task.resources.accelerators: A100 → ', 'task.resources.accelerators.A100:  → 1']);
  });

  it('quote names that could be read as another path, and cut long ones', () => {
    const { list } = changed(
      {},
      {
        labels: {
          'kubernetes.io/arch': 'arm',
          '<img src=x>': 1,
          'a\u001b[2Jb': 1,
          ...own('__proto__', { x: 1 }),
          ['n'.repeat(500)]: 1,
        },
      },
    );
    expect(list.map(({ path }) => path)).toEqual([
      'task.labels["kubernetes.io/arch"]',
      'task.labels["<img src=x>"]',
      'task.labels["a\\u001b[2Jb"]',
      'task.labels.__proto__.x',
      `task.labels["${'n'.repeat(64)}…"]`,
    ]);
    const deep = Array.from({ length: 60 }, (_, index) => `level-${index}`).reduceRight<unknown>(
      (inner, name) => ({ [name]: inner }),
      1,
    );
    const [{ path = '' } = {}] = changed({}, { deep }).list;
    expect(path.length).toBeLessThan(250);
    expect(path).toMatch(/^task\.deep\.level-0\..*….*level-59$/);
  });

  it('are cut to where two long texts differ', () => {
    const run = 'echo begin\n'.repeat(400);
    const [{ before, after } = {}] = changed({ run: `${run}sleep 1` }, { run: `${run}sleep 2${run}` }).list;
    expect(before).toMatch(/^….*sleep 1"$/);
    expect(after).toMatch(/^….*sleep 2echo.*…$/);
    expect(Math.max(before?.length ?? 0, after?.length ?? 0)).toBeLessThanOrEqual(125);
  });

  it('are bounded in number, and the others counted', () => {
    const labels = Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`l${index}`, index]));
    const { list, leftOut } = changed({}, { labels });
    expect(list).toHaveLength(MAX_CHANGES);
    expect(leftOut).toBe(2000 - MAX_CHANGES);
  });
});

describe('secrets in changes', () => {
  const TOKEN = 'ghp_0123456789abcdefghij0123456789abcdef';

  it('are hidden by the name of their place, in envs, secrets and containers', () => {
    const texts = shown(
      { envs: { HF_TOKEN: 'old-value-one' }, secrets: { PLAIN: 'old-value-two' } },
      {
        envs: { HF_TOKEN: 'new-value-one', SSH_KEY_B64: 'new-value-four' },
        secrets: { PLAIN: 'new-value-two', deep: { er: ['new-value-five'] } },
        config: { env: [{ name: 'DB_PASSWORD', value: 'new-value-three' }] },
        password: 'new-value-six',
      },
    );
    expect(texts).toEqual([
      'task.envs.HF_TOKEN: **** → ****',
      'task.envs.SSH_KEY_B64:  → ****',
      'task.secrets.PLAIN: **** → ****',
      'task.secrets.deep.er[0]:  → ****',
      'task.config.env[0].name:  → DB_PASSWORD',
      'task.config.env[0].value:  → ****',
      'task.password:  → ****',
    ]);
  });

  it('are hidden wherever the same value stands: in other values, in names, and before they were known', () => {
    const before = { envs: { HF_TOKEN: 'swordfish-1' } };
    const step = (after: object) => ({ before: { task: before }, after: { task: after } });
    const [first, second] = changesOf(
      [
        step({ ...before, run: 'curl swordfish-1 swordfish-2', labels: { 'swordfish-2': 'x' } }),
        step({ ...before, envs: { ...before.envs, MY_KEY: 'swordfish-2' } }),
      ],
      SecretValues.of(before),
    );
    expect(first?.list).toEqual([
      { path: 'task.run', before: null, after: 'curl **** ****' },
      { path: 'task.labels["****"]', before: null, after: 'x' },
    ]);
    expect(second?.list).toEqual([{ path: 'task.envs.MY_KEY', before: null, after: '****' }]);
  });

  it('are hidden by their form, in values and in names', () => {
    const text = JSON.stringify(
      changed(
        { run: 'x' },
        { run: `git clone https://u:${TOKEN}@host`, [TOKEN]: 1, n: { [`${TOKEN}x`]: {} } },
      ),
    );
    expect(text).not.toContain(TOKEN.slice(4, 20));
    expect(text).toContain('****');
  });

  it('are hidden at every place of a long text, also at its cuts', () => {
    const secret = 'correct-horse-battery-staple'.repeat(20);
    for (const at of [0, 1400, 1450, 1500, 1960, 2000, 2040, 3000]) {
      const before = { envs: { MY_TOKEN: secret }, run: `${'x'.repeat(at)}${secret}${'y'.repeat(5000)}` };
      for (const differs of [0, 1900, 2000, 3000, 5000]) {
        const run = `${before.run.slice(0, differs)}!${before.run.slice(differs)}`;
        // In the middle of the secret, its halves are no secret any more.
        if (differs <= at || differs >= at + secret.length) {
          expect(JSON.stringify(changed(before, { ...before, run }))).not.toContain('battery');
        }
      }
    }
    const long = 'k'.repeat(3000);
    const before = { envs: { MY_TOKEN: long }, run: `${long}${'y'.repeat(5000)}` };
    expect(shown(before, { ...before, run: `${before.run}!` })).toEqual(['task.run: **** → ****']);
  });
});

it('a review knows what each policy changed, also one that is only tried, and nothing of one that changed nothing', async () => {
  const { specifiers } = policyFiles({
    FirstPolicy: "task.resources ??= { labels: { team: 'ml' } };",
    TriedPolicy: 'return new MutatedUserRequest(task, { nvidia: 1 });',
    IdlePolicy: '',
    LastPolicy: 'delete task.resources.labels; return new MutatedUserRequest(task, { a: { b: 1 } });',
  });
  const { review } = await chainOn({ admin_policies: specifiers, audit_policies: ['TriedPolicy'] });
  const { outcomes } = await review(received());
  expect(outcomes.map(({ policy, changes }) => [policy, changes?.list])).toEqual([
    ['FirstPolicy', [{ path: 'task.resources.labels.team', before: null, after: 'ml' }]],
    ['TriedPolicy', [{ path: 'skypilot_config.nvidia', before: null, after: '1' }]],
    ['IdlePolicy', undefined],
    [
      'LastPolicy',
      [
        { path: 'task.resources.labels.team', before: 'ml', after: null },
        { path: 'skypilot_config.a.b', before: null, after: '1' },
      ],
    ],
  ]);
});
