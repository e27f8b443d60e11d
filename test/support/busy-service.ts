import { onTestFinished, vi } from 'vitest';
import { filterSource } from './filter-folder.ts';
import { runService } from './running-service.ts';

/** A filter that blocks each `/check-create` until `finish()`; `begun` resolves when one is blocked. */
export function heldFilter() {
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const begun = new Promise<void>((begin) => {
    vi.stubGlobal('heldDecision', () => {
      begin();
      return finished;
    });
  });
  onTestFinished(() => void vi.unstubAllGlobals());
  const create = 'return heldDecision().then(allow);';
  const filters = { 'held-filter.js': filterSource('HeldFilter', { create }) };
  return { filters, begun, finish: () => finish() };
}

/**
 * A service that can make one decision at a time, and is busy. `ask`: requests that decision. `meanwhile`:
 * sends a request until it is made.
 */
export async function fromBusyService<First, Then>(
  ask: (url: string) => Promise<First>,
  meanwhile: (url: string) => Promise<Then>,
): Promise<[First, Then]> {
  const { filters, begun, finish } = heldFilter();
  const { url } = await runService({
    service: { max_concurrent: 1, max_queued: 0 },
    filters,
    enforcement: { enabled_filters: ['HeldFilter'] },
  });
  const first = ask(url);
  await begun;
  const then = await meanwhile(url);
  finish();
  return [await first, then];
}
