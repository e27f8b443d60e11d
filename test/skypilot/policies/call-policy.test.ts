import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { causeText, isMeantForUsers, stackText } from '../../../src/skypilot/policies/call-policy.ts';
import type { WhenDone } from '../../support/filter-folder.ts';
import { threads } from '../../support/isolated-policies.ts';
import { chainOf, FAILED, type RunningChain, received } from '../../support/skypilot.ts';

const REJECTIONS: readonly [name: string, throwing: string, message: string][] = [
  ['a rejection', "throw new PolicyRejected('at most 8 GPUs');", 'at most 8 GPUs'],
  [
    'an exposed error',
    "throw Object.assign(new Error('at most 8 GPUs'), { expose: true });",
    'at most 8 GPUs',
  ],
  [
    'an exposed error of another class, later',
    "return Promise.reject(Object.assign(new TypeError('not now'), { status: 422, expose: true }));",
    'not now',
  ],
  [
    'no control characters',
    "throw new PolicyRejected('a\\r\\n\\tb\\x1b[2J\\u202e');",
    'a\n\tb\\u001b[2J\\u202e',
  ],
  [
    'of no reason',
    "throw new PolicyRejected(' \\n');",
    'ThrowingPolicy rejected the request and gave no reason.',
  ],
  [
    'of a reason that is no text',
    "throw Object.assign(new PolicyRejected('x'), { message: 7 });",
    'ThrowingPolicy rejected the request and gave no reason.',
  ],
  ['at most 8000 characters', "throw new PolicyRejected('x'.repeat(10_000_000));", `${'x'.repeat(8000)}…`],
];

const FAILURES: readonly [name: string, throwing: string][] = [
  ['that is not exposed', "throw Object.assign(new Error('intern'), { expose: false });"],
  ['that is exposed with another value', "throw Object.assign(new Error('intern'), { expose: 'true' });"],
  ['that is no error', "throw { message: 'intern', expose: true };"],
  [
    'that is hostile to whoever looks',
    "throw Object.defineProperty(new Error('intern'), 'expose', { get() { throw new Error('x'); } });",
  ],
];

const CAUSES = `throw new Error('no registry', {
  cause: new TypeError('fetch failed: ' + task.secrets.TOKEN, { cause: new AggregateError([new Error('one'), new Error('two')]) }),
});`;

const LONG = ['PolicyRejected', 'Error'].map(
  (name) => [name, `throw new ${name}((task.name ?? '') + task.secrets.TOKEN.repeat(4000));`] as const,
);

/** Throws what the task runs. One policy for all: a thread each would take ten times as long. */
const ThrowingPolicy = [...REJECTIONS, ...FAILURES, ['causes', CAUSES] as const, ...LONG]
  .map(([name, throwing]) => `if (task.run === '${name}') { ${throwing} }`)
  .join('\n');

const places: [string, (whenDone: WhenDone) => Promise<RunningChain>][] = [
  ['in process', (whenDone) => chainOf({ ThrowingPolicy }, whenDone)],
  ['in a thread', (whenDone) => threads({ ThrowingPolicy }, {}, whenDone)],
];

describe.each(places)('%s, a user reads', (_, start) => {
  const cleanings: Parameters<WhenDone>[0][] = [];
  let running: RunningChain;

  beforeAll(async () => {
    running = await start((clean) => cleanings.unshift(clean));
  });

  afterAll(async () => {
    for (const clean of cleanings) {
      await clean();
    }
  });

  /** The answer, and what is logged with it. */
  async function answerTo(run: string, more = '') {
    const { logger, review } = running;
    const { length } = logger.lines;
    const answer = await review(received({ task: `run: ${run}\n${more}` }));
    return { answer, lines: logger.lines.slice(length) };
  }

  it.each(REJECTIONS)('%s', async (name, __, message) => {
    const { answer, lines } = await answerTo(name);
    expect(answer).toMatchObject({ allowed: false, failed: false, message });
    expect(lines).toEqual([]);
  });

  it.each(FAILURES)('nothing of an error %s', async (name) => {
    const { answer, lines } = await answerTo(name);
    expect(answer).toMatchObject({ allowed: false, failed: true, message: FAILED });
    expect(lines).toHaveLength(1);
  });

  it('nothing of a failure, and its causes and stacks are in the log without secrets', async () => {
    const { answer, lines } = await answerTo('causes', 'secrets: {TOKEN: open-sesame}\n');
    expect(answer).toMatchObject({ failed: true, message: FAILED });
    expect(lines).toMatchObject([
      {
        level: 'error',
        fields: {
          policy: 'ThrowingPolicy',
          error: 'no registry: fetch failed: ****: one; two',
          stack: expect.stringMatching(
            /^Error: no registry\n +at .*ThrowingPolicy\.js[\s\S]*\ncaused by TypeError: fetch failed: \*{4}\n +at [\s\S]*\ncaused by AggregateError/,
          ),
        },
      },
    ]);
  });

  it.each(LONG)('no part of a secret where the text of a long %s is cut', async (name) => {
    const short = await answerTo(name, 'secrets: {TOKEN: open-sesame}\n');
    const long = await answerTo(name, `name: ${'x'.repeat(7998)}\nsecrets: {TOKEN: open-sesame}\n`);
    const { message } = short.answer;
    expect(JSON.stringify([message, long.answer.message, short.lines, long.lines])).not.toMatch(/sesam|\*o/);
    expect(message?.length).toBeLessThanOrEqual(8001);
  });
});

describe('the texts of an error', () => {
  it('end, even if its causes do not', () => {
    const round = new Error('round');
    round.cause = round;
    expect(causeText(round)).toBe('round');
    const deep = Array.from({ length: 100 }).reduce<Error>(
      (cause) => new Error('again', { cause }),
      new Error(),
    );
    expect(causeText(deep).length).toBeLessThan(100);
    expect(stackText(deep)?.length).toBeLessThanOrEqual(17_000);
    expect(causeText(new Error('x'.repeat(1_000_000))).length).toBe(17_000);
  });

  it('exist for everything that can be thrown', () => {
    const hostile = new Proxy(new Error('x'), {
      get() {
        throw new Error('trap');
      },
    });
    expect(causeText(hostile)).toBe('the error has no text');
    expect(stackText(hostile)).toBe(undefined);
    expect(isMeantForUsers(hostile)).toBe(false);
    expect([undefined, null, 7, 'text', Object.create(null)].map(causeText)).toEqual([
      'undefined',
      'null',
      '7',
      'text',
      'the error has no text',
    ]);
  });
});
