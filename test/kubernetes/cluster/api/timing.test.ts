import { describe, expect, it } from 'vitest';
import { ElapsedClock, elapsed } from '../../../../src/kubernetes/cluster/api/timing.ts';

function clocks() {
  const state = { wall: 1_790_000_000_000, awake: 5000, sinceBoot: 70_000, reads: 0 };
  const clock = new ElapsedClock({
    wall: () => state.wall,
    awake: () => state.awake,
    sinceBoot: () => {
      state.reads += 1;
      return state.sinceBoot;
    },
  });
  const pass = (milliseconds: number) => {
    state.wall += milliseconds;
    state.awake += milliseconds;
    state.sinceBoot += milliseconds;
  };
  const suspend = (milliseconds: number) => {
    state.wall += milliseconds;
    state.sinceBoot += milliseconds;
  };
  return { state, clock, pass, suspend };
}

describe('the time that has passed', () => {
  it('is that of the monotonic clock, which alone is read', () => {
    const { clock, pass, state } = clocks();
    expect(clock.now()).toBe(5000);
    pass(60_000);
    expect(clock.now()).toBe(65_000);
    expect(state.reads).toBe(1);
  });

  it('counts suspensions', () => {
    const { clock, pass, suspend } = clocks();
    suspend(3_600_000);
    expect(clock.now()).toBe(3_605_000);
    pass(1000);
    suspend(2000);
    expect(clock.now()).toBe(3_608_000);
  });

  it('is the same whatever somebody sets the wall clock to', () => {
    const { clock, pass, suspend, state } = clocks();
    for (const jump of [3_600_000, -9_000_000, 700, -700]) {
      state.wall += jump;
      expect(clock.now()).toBe(5000);
    }
    suspend(10_000);
    expect(clock.now()).toBe(15_000);
    state.wall -= 86_400_000;
    pass(5);
    expect(clock.now()).toBe(15_005);
  });

  it('does not go back', () => {
    const before = elapsed();
    expect(elapsed()).toBeGreaterThanOrEqual(before);
  });
});
