import { vi } from 'vitest';
import { filterSource } from './filter-folder.ts';
import { runService } from './running-service.ts';
import { withResolvers } from './with-resolvers.ts';

/** A filter that blocks each `/check-create` until `finish()`; `begun` resolves when one is blocked. */
export function heldFilter() {
  const begun = withResolvers();
  const made = withResolvers();
  vi.stubGlobal('heldDecision', () => {
    begun.resolve();
    return made.promise;
  });
  const create = 'return heldDecision().then(allow);';
  const filters = { 'held-filter.js': filterSource('HeldFilter', { create }) };
  return { filters, begun: begun.promise, finish: made.resolve };
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
