import { onTestFinished, vi } from 'vitest';

/** Both clocks of this process stand still until the test moves them, whatever the machine does. */
export function stoppedClocks(): { advance(milliseconds: number): void } {
  let monotonic = performance.now();
  let wall = Date.now();
  const clocks = [
    vi.spyOn(performance, 'now').mockImplementation(() => monotonic),
    vi.spyOn(Date, 'now').mockImplementation(() => wall),
  ];
  onTestFinished(() => clocks.forEach((clock) => void clock.mockRestore()));
  return {
    advance: (milliseconds) => {
      monotonic += milliseconds;
      wall += milliseconds;
    },
  };
}
