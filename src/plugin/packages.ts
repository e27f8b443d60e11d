/**
 * Lets a filter anywhere on disk `import … from 'blazar-enforcement'` and `'zod'`, as Python's site-packages would: a copy
 * that is installed beside the filter comes first, then the one of this package.
 */
import * as nodeModule from 'node:module';
import { fallbackResolve } from './packages-hook.ts';

type RegisterHooks = (hooks: { resolve: typeof fallbackResolve }) => void;

let registered = false;

/** Makes the two packages resolvable for everything that is imported later. May be called more than once. */
export function makePackagesResolvable(): void {
  if (registered) {
    return;
  }
  registered = true;
  // Node 22.15 and later have synchronous hooks, and deprecate hooks on a thread, the only ones that Node 20 has.
  if ('registerHooks' in nodeModule) {
    (nodeModule.registerHooks as RegisterHooks)({ resolve: fallbackResolve });
  } else if (import.meta.url.endsWith('.js')) {
    // In the source tree the test runner resolves them; that thread could not read TypeScript.
    nodeModule.register(new URL('./packages-hook.js', import.meta.url));
  }
}
