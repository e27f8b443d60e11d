import { expect, it } from 'vitest';
import { waitFor } from '../../../src/base/deadline.ts';
import { Gate } from '../../../src/ledger/storage/gate.ts';

const FOREVER = waitFor(undefined);

it('lets so many in, and the next when one has left, in their order', async () => {
  const gate = new Gate(2);
  const leave = [await gate.enter(FOREVER), await gate.enter(FOREVER)];
  const entered: string[] = [];
  const enter = async (name: string) => {
    const left = await gate.enter(FOREVER);
    entered.push(name);
    return left;
  };
  const [third, fourth] = [enter('third'), enter('fourth')];
  await Promise.resolve();
  expect(entered).toEqual([]);
  leave[0]?.();
  const leaveThird = await third;
  expect(entered).toEqual(['third']);
  leaveThird();
  (await fourth)();
  expect(gate.isEmpty).toBe(false);
  leave[1]?.();
  expect(gate.isEmpty).toBe(true);
});

it('forgets who waits no longer, and lets the next in instead', async () => {
  const gate = new Gate(1);
  const leave = await gate.enter(FOREVER);
  const controller = new AbortController();
  const withLockTimeouts = gate.enter(waitFor(controller.signal));
  const patient = gate.enter(FOREVER);
  controller.abort(new Error('too late'));
  await expect(withLockTimeouts).rejects.toThrow('too late');
  await expect(gate.enter(waitFor(controller.signal))).rejects.toThrow('too late');
  leave();
  (await patient)();
  expect(gate.isEmpty).toBe(true);
});

it('grows and shrinks while some wait', async () => {
  const gate = new Gate(1);
  const leave = await gate.enter(FOREVER);
  const second = gate.enter(FOREVER);
  gate.limit = 2;
  gate.open();
  const leaveSecond = await second;
  gate.limit = 1;
  const third = gate.enter(FOREVER);
  leave();
  leaveSecond();
  (await third)();
  expect(gate.isEmpty).toBe(true);
});
