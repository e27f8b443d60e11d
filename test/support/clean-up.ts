/** After each test, the clock and the environment are the real ones again: files share what they import. */
import { afterEach, vi } from 'vitest';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});
