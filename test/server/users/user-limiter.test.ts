import { describe, expect, it } from 'vitest';
import { OverloadedError } from '../../../src/base/concurrency-limiter.ts';
import { NoAnswerError } from '../../../src/base/deadline.ts';
import type { Generation } from '../../../src/server/configuration/generation.ts';
import { ANONYMOUS, type Caller, tokenCaller } from '../../../src/server/users/caller.ts';
import { UserLimiter } from '../../../src/server/users/user-limiter.ts';
import { withResolvers } from '../../support/with-resolvers.ts';

const generation = { options: { deadline: 60 } } as Pick<Generation, 'options'>;
const member = (userId: string): Caller => ({
  kind: 'member',
  provenBy: 'keystone',
  identity: userId,
  who: userId,
  name: userId,
  userId,
  memberships: [{ projectId: 'climate', isManager: false }],
});

describe('the limits of users', () => {
  it('leaves room for others, however much one member asks at the same time', async () => {
    const line = new UserLimiter();
    const { promise: slow, resolve: answer } = withResolvers();
    const ask = (caller: Caller) => line.run(generation, caller, () => slow);
    const mine = Array.from({ length: 16 }, () => ask(member('meg')));
    await expect(ask(member('meg'))).rejects.toMatchObject({
      status: 429,
      message: 'too many requests of this user at the same time',
      headers: { 'Retry-After': '5' },
    });
    const quick = (caller: Caller) => line.run(generation, caller, async () => 'answered');
    expect(await quick(member('max'))).toBe('answered');
    expect(await quick(tokenCaller('operator', 'operator token'))).toBe('answered');
    answer();
    await Promise.all(mine);
    expect(await quick(member('meg'))).toBe('answered');
  });

  it('makes two estimates of a member at the same time, while others and other requests pass', async () => {
    const line = new UserLimiter();
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    const estimate = (userId: string) =>
      line.run(
        generation,
        member(userId),
        () => {
          begun.push(userId);
          return new Promise<void>((resolve) => {
            ends.push(resolve);
          });
        },
        { isEstimate: true },
      );
    const mine = [estimate('meg'), estimate('meg'), estimate('meg')];
    const other = estimate('max');
    await line.run(generation, member('meg'), async () => begun.push('a page of meg'));
    expect(begun.toSorted()).toEqual(['a page of meg', 'max', 'meg', 'meg']);
    ends[0]?.();
    await mine[0];
    await expect.poll(() => begun.filter((one) => one === 'meg')).toHaveLength(3);
    for (const end of ends) {
      end();
    }
    await Promise.all([...mine, other]);
  });

  it('makes eight estimates at the same time, and answers everything else beside them', async () => {
    const line = new UserLimiter();
    let begun = 0;
    const { promise: ended, resolve: end } = withResolvers();
    const readers = ['1', '2'].map((key) => tokenCaller('reader', 'reader token', key));
    const estimates = readers.flatMap((reader) =>
      Array.from({ length: 16 }, () =>
        line.run(
          generation,
          reader,
          () => {
            begun += 1;
            return ended;
          },
          { isEstimate: true },
        ),
      ),
    );
    expect(await line.run(generation, member('meg'), async () => 'answered')).toBe('answered');
    expect(begun).toBe(8);
    end();
    await Promise.all(estimates);
    expect(begun).toBe(32);
  });

  it('answers 503 where the time was over before there was an answer', async () => {
    const late = new UserLimiter().run(generation, member('meg'), () =>
      Promise.reject(new NoAnswerError('late')),
    );
    await expect(late).rejects.toBeInstanceOf(OverloadedError);
  });

  it('lets many requests with one token of the configuration wait, but only for each other', async () => {
    const line = new UserLimiter();
    const one = tokenCaller('reader', 'reader token', '1');
    const other = tokenCaller('reader', 'reader token', '2');
    const { promise: slow, resolve: answer } = withResolvers();
    let underWay = 0;
    const ask = () =>
      line.run(generation, one, async () => {
        underWay += 1;
        await slow;
      });
    const all = Array.from({ length: 272 }, ask);
    await expect(ask()).rejects.toThrow('too many requests with this token at the same time');
    expect(underWay).toBe(16);
    expect(await line.run(generation, other, async () => 'answered')).toBe('answered');
    answer();
    expect(await Promise.all(all)).toHaveLength(272);
  });

  it('does not hold up people of whom nothing is asked: they may be many', async () => {
    const line = new UserLimiter();
    const { promise: slow, resolve: answer } = withResolvers();
    const all = Array.from({ length: 32 }, () => line.run(generation, ANONYMOUS, () => slow));
    const last = line.run(generation, ANONYMOUS, async () => 'answered');
    answer();
    await Promise.all(all);
    expect(await last).toBe('answered');
  });

  it('forgets requests that fail', async () => {
    const line = new UserLimiter();
    for (let count = 0; count < 20; count += 1) {
      await expect(
        line.run(generation, member('meg'), () => Promise.reject(new Error('away'))),
      ).rejects.toThrow('away');
    }
  });
});
