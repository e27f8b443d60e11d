import { describe, expect, it } from 'vitest';
import {
  ConcurrencyLimiter,
  OverloadedError,
  Semaphore,
  WaitQueue,
} from '../../src/base/concurrency-limiter.ts';
import { Deadline, waitFor } from '../../src/base/deadline.ts';

const FOREVER = waitFor(undefined);

describe('ConcurrencyLimiter', () => {
  it('lets in at once as many as may be under way', () => {
    const limiter = new ConcurrencyLimiter(2, 0);
    expect(limiter.enter(FOREVER)).toBeUndefined();
    expect(limiter.enter(FOREVER)).toBeUndefined();
    expect(limiter).toMatchObject({ underWay: 2, queued: 0 });
  });

  it('has as many wait as may, in their order, and refuses the next at once', async () => {
    const limiter = new ConcurrencyLimiter(1, 2);
    limiter.enter(FOREVER);
    const entered: number[] = [];
    const waiting = [1, 2].map((number) => limiter.enter(FOREVER)?.then(() => entered.push(number)));
    expect(limiter).toMatchObject({ underWay: 1, queued: 2 });
    expect(() => limiter.enter(FOREVER)).toThrow(OverloadedError);

    limiter.leave();
    await waiting[0];
    expect(entered).toEqual([1]);
    expect(limiter).toMatchObject({ underWay: 1, queued: 1 });
    limiter.leave();
    await waiting[1];
    expect(entered).toEqual([1, 2]);
    limiter.leave();
    expect(limiter).toMatchObject({ underWay: 0, queued: 0 });
  });

  it('refuses at once where nobody may wait', () => {
    const limiter = new ConcurrencyLimiter(1, 0);
    limiter.enter(FOREVER);
    expect(() => limiter.enter(FOREVER)).toThrow('Too many decisions are under way and waiting.');
    limiter.leave();
    expect(limiter.enter(FOREVER)).toBeUndefined();
  });

  it('keeps no place for who could not be let in in time', async () => {
    const limiter = new ConcurrencyLimiter(1, 1);
    limiter.enter(FOREVER);
    await expect(limiter.enter(new Deadline(0))).rejects.toThrow('No decision could be made in time.');
    expect(limiter).toMatchObject({ underWay: 1, queued: 0 });
    const next = limiter.enter(FOREVER);
    limiter.leave();
    await next;
    expect(limiter.underWay).toBe(1);
  });

  it('has never more under way than may be, whoever comes, leaves and gives up', async () => {
    const limiter = new ConcurrencyLimiter(3, 5);
    let most = 0;
    const visit = async (index: number) => {
      try {
        await limiter.enter(index % 4 === 0 ? new Deadline(0.002) : FOREVER);
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(OverloadedError);
        return;
      }
      most = Math.max(most, limiter.underWay);
      await new Promise((go) => setTimeout(go, index % 3));
      limiter.leave();
    };
    await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        await new Promise((go) => setTimeout(go, index % 10));
        await visit(index);
      }),
    );
    expect(most).toBe(3);
    expect(limiter).toMatchObject({ underWay: 0, queued: 0 });
  });
});

describe('WaitQueue', () => {
  it('turns away at once who has no time left', async () => {
    const line = new WaitQueue();
    await expect(line.join(waitFor(AbortSignal.abort()), 'too late')).rejects.toThrow(OverloadedError);
    const deadline = new Deadline(0.001);
    await new Promise((go) => deadline.signal.addEventListener('abort', go));
    await expect(line.join(deadline, 'too late')).rejects.toThrow('too late');
    expect(line.length).toBe(0);
  });

  it('turns away when the time is over that was not watched before', async () => {
    const line = new WaitQueue();
    await expect(line.join(new Deadline(0), 'too late')).rejects.toThrow('too late');
    expect(line.length).toBe(0);
  });
});

describe('Semaphore', () => {
  it('lets so many in, and the next when one has left, in their order', async () => {
    const semaphore = new Semaphore(2);
    const leave = [await semaphore.enter(FOREVER), await semaphore.enter(FOREVER)];
    const entered: string[] = [];
    const enter = async (name: string) => {
      const left = await semaphore.enter(FOREVER);
      entered.push(name);
      return left;
    };
    const third = enter('third');
    const fourth = enter('fourth');
    await Promise.resolve();
    expect(entered).toEqual([]);
    leave[0]?.();
    const leaveThird = await third;
    expect(entered).toEqual(['third']);
    leaveThird();
    (await fourth)();
    expect(semaphore.isEmpty).toBe(false);
    leave[1]?.();
    expect(semaphore.isEmpty).toBe(true);
  });

  it('forgets who waits no longer, and lets the next in instead', async () => {
    const semaphore = new Semaphore(1);
    const leave = await semaphore.enter(FOREVER);
    const controller = new AbortController();
    const withLockTimeouts = semaphore.enter(waitFor(controller.signal));
    const patient = semaphore.enter(FOREVER);
    controller.abort(new Error('too late'));
    await expect(withLockTimeouts).rejects.toThrow('too late');
    await expect(semaphore.enter(waitFor(controller.signal))).rejects.toThrow('too late');
    leave();
    (await patient)();
    expect(semaphore.isEmpty).toBe(true);
  });

  it('grows and shrinks while some wait', async () => {
    const semaphore = new Semaphore(1);
    const leave = await semaphore.enter(FOREVER);
    const second = semaphore.enter(FOREVER);
    semaphore.limit = 2;
    semaphore.open();
    const leaveSecond = await second;
    semaphore.limit = 1;
    const third = semaphore.enter(FOREVER);
    leave();
    leaveSecond();
    (await third)();
    expect(semaphore.isEmpty).toBe(true);
  });
});
