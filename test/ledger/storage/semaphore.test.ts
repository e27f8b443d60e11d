import { expect, it } from 'vitest';
import { waitFor } from '../../../src/base/deadline.ts';
import { Semaphore } from '../../../src/ledger/storage/semaphore.ts';

const FOREVER = waitFor(undefined);

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
