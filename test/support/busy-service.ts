import { onTestFinished, vi } from 'vitest';
import { filterSource } from './filter-folder.ts';
import { runService } from './running-service.ts';

/**
 * A service that can make one decision at a time, and is busy. `ask`: requests that decision. `meanwhile`:
 * sends a request until it is made.
 */
export async function fromBusyService<First, Then>(
  ask: (url: string) => Promise<First>,
  meanwhile: (url: string) => Promise<Then>,
): Promise<[First, Then]> {
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const begun = new Promise<void>((resolve) => {
    vi.stubGlobal('decision', () => {
      resolve();
      return finished;
    });
  });
  onTestFinished(() => void vi.unstubAllGlobals());
  const { url } = await runService({
    service: { max_concurrent: 1, max_queued: 0 },
    filters: { 'slow-filter.js': filterSource('SlowFilter', { create: 'return decision().then(allow);' }) },
    enforcement: { enabled_filters: ['SlowFilter'] },
  });
  const first = ask(url);
  await begun;
  const then = await meanwhile(url);
  finish();
  return [await first, then];
}
