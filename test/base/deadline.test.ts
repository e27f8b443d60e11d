import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Deadline, waitFor, withinDeadline } from '../../src/base/deadline.ts';

const OVER = 'no answer within 2 s';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});

/** Time passes and no timer fires, as when something blocks the event loop. */
function block(milliseconds: number): void {
  const late = performance.now() + milliseconds;
  vi.spyOn(performance, 'now').mockReturnValue(late);
}

describe('Deadline', () => {
  it('starts no timer before its signal is read', () => {
    const deadline = new Deadline(2);
    deadline.throwIfOver();
    expect(vi.getTimerCount()).toBe(0);
    expect(deadline.signal.aborted).toBe(false);
    expect(vi.getTimerCount()).toBe(1);
  });

  it('has one signal, which fires with a reason when the time is over', () => {
    const deadline = new Deadline(2);
    const { signal } = deadline;
    expect(deadline.signal).toBe(signal);
    vi.advanceTimersByTime(1999);
    expect(signal.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toEqual(new Error(OVER));
  });

  it('counts from its creation, not from when the signal is read', () => {
    const deadline = new Deadline(2);
    vi.advanceTimersByTime(1500);
    const { signal } = deadline;
    vi.advanceTimersByTime(499);
    expect(signal.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(signal.aborted).toBe(true);
  });

  it('fires its signal in throwIfOver when its timer is late', () => {
    const deadline = new Deadline(2);
    const { signal } = deadline;
    block(2000);
    expect(signal.aborted).toBe(false);
    expect(() => deadline.throwIfOver()).toThrow(OVER);
    expect(signal.aborted).toBe(true);
  });

  it('never fires after end()', () => {
    const deadline = new Deadline(2);
    const { signal } = deadline;
    deadline.end();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(5000);
    expect(signal.aborted).toBe(false);
  });
});

describe('withinDeadline', () => {
  it('leaves no timer behind, whether the work succeeds or fails', async () => {
    const answered = withinDeadline(2, async ({ signal }) => signal.aborted);
    await expect(answered).resolves.toBe(false);
    const failed = withinDeadline(2, async ({ signal }) => {
      throw new Error(`broken, ${signal.aborted}`);
    });
    await expect(failed).rejects.toThrow('broken, false');
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('waitFor', () => {
  it('without a signal is never over', () => {
    const wait = waitFor(undefined);
    expect(wait.signal).toBeUndefined();
    expect(() => wait.throwIfOver()).not.toThrow();
  });

  it("with a caller's signal is over when that fires, for its reason", () => {
    const caller = new AbortController();
    const wait = waitFor(caller.signal);
    expect(() => wait.throwIfOver()).not.toThrow();
    caller.abort(new Error('the caller has gone'));
    expect(wait.signal).toBe(caller.signal);
    expect(() => wait.throwIfOver()).toThrow('the caller has gone');
  });
});
