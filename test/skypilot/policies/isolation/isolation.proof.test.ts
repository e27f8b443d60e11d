/** Policies in real threads that hang, grow, exit or throw. */
import { readdirSync } from 'node:fs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { shownLines, switched, taskOf, threads } from '../../../support/isolated-policies.ts';
import { FAILED } from '../../../support/skypilot.ts';

const SOON = { timeout: 120_000, interval: 5 };

/** Seconds: so long that no answer comes too late by chance. Whoever waits for a policy that hangs fails at the limit of the test. */
const PLENTY = 150;

describe('a policy in a thread', () => {
  it.each<[string, string, string | RegExp]>([
    ['ends the process', 'process.exit(0);', 'its thread exited with code 0'],
    ['forgets to wait', 'Promise.reject(new Error("stray"));', 'its thread exited: stray'],
    [
      'forgets to wait for a rejection',
      'void (async () => { throw new PolicyRejected("no"); })();',
      'its thread exited: no',
    ],
    ['throws from a callback', 'process.nextTick(() => { throw new Error("tick"); });', /: tick$/],
    [
      'takes all memory',
      'const all = []; for (;;) all.push({ a: [1, 2] });',
      'its thread exited: it took more than 256 MB of memory',
    ],
  ])('has failed when it %s, and the next request is answered', async (_, way, cause) => {
    const { review, logger } = await threads({ IdlePolicy: '', ...switched({ bad: way }), LastPolicy: '' });
    expect(await review(taskOf('bad'), PLENTY)).toMatchObject({
      allowed: false,
      failed: true,
      message: FAILED,
      policy: 'SwitchPolicy',
      answer: null,
    });
    expect(shownLines(logger)).toEqual([
      {
        level: 'error',
        fields: {
          request_id: 'req-1',
          policy: 'SwitchPolicy',
          error: typeof cause === 'string' ? cause : expect.stringMatching(cause),
        },
        message: 'policy failed',
      },
    ]);
    expect(await review(taskOf('good'), PLENTY)).toMatchObject({ allowed: true, task: { count: 1 } });
  });

  it.each([
    ['an endless loop', 'for (;;);'],
    ['an endless loop that waits', 'return (async () => { for (;;) await null; })();'],
    ['an expression that takes for ever', "/^(a+)+$/.test('a'.repeat(50) + 'b');"],
    ['a promise that is never settled', 'return new Promise(() => {});'],
  ])('is stopped at the deadline: %s', async (_, way) => {
    const { review, logger } = await threads(switched({ bad: way }));
    let beats = 0;
    const heart = setInterval(() => {
      beats += 1;
    }, 10);
    onTestFinished(() => clearInterval(heart));
    expect(await review(taskOf('bad'), 0.5)).toMatchObject({ failed: true, policy: 'SwitchPolicy' });
    expect(shownLines(logger)[0]).toMatchObject({
      fields: { policy: 'SwitchPolicy', error: 'no answer within 0.5 s' },
      message: 'policy failed',
    });
    // The service went on meanwhile.
    expect(beats).toBeGreaterThan(3);
    await vi.waitFor(
      () => expect(shownLines(logger).at(-1)?.message).toBe('policy did not answer: stopping its thread'),
      SOON,
    );
    expect(await review(taskOf('good'), PLENTY)).toMatchObject({ allowed: true, task: { count: 1 } });
  });

  it('that hangs at one request does not block others', async () => {
    const { chain, review, logger } = await threads(
      switched({
        hang: 'for (;;);',
        slow: 'return new Promise((go) => setTimeout(go, 300)).then(() => new MutatedUserRequest(task, config));',
      }),
    );
    const slow = review(taskOf('slow'));
    const hanging = review(taskOf('hang'), PLENTY);
    const others = await Promise.all(['a', 'b', 'c'].map((name) => review(taskOf(name), PLENTY)));
    expect(others.map(({ allowed }) => allowed)).toEqual([true, true, true]);
    expect(shownLines(logger)).toContainEqual({
      level: 'error',
      fields: { policy: 'SwitchPolicy' },
      message: 'policy blocks its thread: moving to another thread',
    });
    await slow;
    await chain.close();
    expect((await hanging).failed).toBe(true);
  });

  const WAIT = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);';
  /** As many as there are threads. */
  const some = (index: number) => index % 8 === 3;
  /** More than twice as many. */
  const first = (index: number) => index < 9;
  it.each<[string, string, number, (index: number) => boolean]>([
    ['in a loop for some', 'for (;;);', 32, some],
    ['in a wait that holds no processor for the first half', WAIT, 18, first],
    ['in a loop that logs, for some', "for (;;) this.services.logger.info('again');", 32, some],
    ['in a chain of promises for some', 'return (async () => { for (;;) await null; })();', 32, some],
    ['at a promise that never settles for some', 'return new Promise(() => {});', 32, some],
  ])('that hangs %s of many requests blocks no other', async (_, way, count, hangs) => {
    const { chain, review } = await threads(switched({ hang: way }));
    const reviews = Array.from({ length: count }, (__, index) =>
      review(taskOf(hangs(index) ? 'hang' : `task-${index}`), PLENTY),
    );
    const others = await Promise.all(reviews.filter((__, index) => !hangs(index)));
    expect(others.map(({ allowed, failed }) => [allowed, failed])).toEqual(others.map(() => [true, false]));
    expect(await review(taskOf('after'), PLENTY)).toMatchObject({ allowed: true });
    await chain.close();
    const hung = await Promise.all(reviews.filter((__, index) => hangs(index)));
    expect(hung.map(({ allowed, failed }) => [allowed, failed])).toEqual(hung.map(() => [false, true]));
  });

  it('starts few threads, however many policies hang at the same time', async () => {
    const names = Array.from({ length: 6 }, (_, index) => `Odd${index}Policy`);
    const { chain, review } = await threads(
      Object.fromEntries(names.map((name) => [name, `if (task.name === '${name}') { ${WAIT} }`])),
    );
    const started = () => readdirSync('/proc/self/task').length;
    const before = started();
    let most = 0;
    const look = setInterval(() => {
      most = Math.max(most, started() - before);
    }, 20);
    onTestFinished(() => clearInterval(look));
    const hanging = Array.from({ length: 4 }, () => names.map((name) => review(taskOf(name), PLENTY)));
    expect(await review(taskOf('other'), PLENTY)).toMatchObject({ allowed: true });
    await chain.close();
    const hung = await Promise.all(hanging.flat());
    expect(new Set(hung.map(({ failed }) => failed))).toEqual(new Set([true]));
    // Two tasks each: four threads of each policy would be 36 more.
    expect(most).toBeLessThan(20);
  });

  it('that keeps crashing is not restarted forever', async () => {
    // The clock stands still: however long the crashes take, no further start becomes due.
    vi.useFakeTimers({ toFake: ['performance'] });
    const { review, logger } = await threads(switched({ bad: 'process.exit(3);' }));
    for (let count = 0; count < 16; count += 1) {
      expect((await review(taskOf('bad'), PLENTY)).failed).toBe(true);
    }
    const causes = logger.lines.map(({ fields }) => fields.error);
    expect(causes).toContain('its threads keep hanging or crashing: not starting another one for now');
    expect((await review(taskOf('good'), PLENTY)).failed).toBe(true);
    vi.advanceTimersByTime(5000);
    expect((await review(taskOf('good'), PLENTY)).allowed).toBe(true);
  });

  it('that crashes while idle is logged', async () => {
    const { review, logger } = await threads(
      switched({ good: "setTimeout(() => { throw new Error('afterwards'); }, 20);" }),
    );
    expect((await review(taskOf('good'))).allowed).toBe(true);
    await vi.waitFor(
      () =>
        expect(shownLines(logger)).toEqual([
          {
            level: 'error',
            fields: { policy: 'SwitchPolicy', error: 'its thread exited: afterwards' },
            message: 'policy failed',
          },
        ]),
      SOON,
    );
    expect((await review(taskOf('other'))).allowed).toBe(true);
  });
});
