/** After each test, the clock, the environment, the globals and what was spied on are the real ones again: files share what they import. */
import { afterEach, beforeEach, vi } from 'vitest';

beforeEach(({ onTestFinished }) => {
  // The last of what runs after a test: filters use them until they are closed.
  onTestFinished(() => void vi.unstubAllGlobals());
});

afterEach(() => {
  // Before the clock, which may be spied on while it is a fake.
  vi.restoreAllMocks();
  vi.useRealTimers();
  vi.unstubAllEnvs();
});
