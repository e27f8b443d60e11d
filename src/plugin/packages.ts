/**
 * Lets a filter anywhere on disk `import … from 'blazar-enforcement'` and `'zod'`, as Python's site-packages
 * would: a copy installed beside the filter wins, then this package's.
 */
import * as nodeModule from 'node:module';
import { fallbackResolve } from './packages-hook.ts';

type RegisterHooks = (hooks: { resolve: typeof fallbackResolve }) => void;

let registered = false;

/** Makes the two packages resolvable for all later imports. May be called more than once. */
export function makePackagesResolvable(): void {
  if (registered) {
    return;
  }
  registered = true;
  // Node 22.15 and later have synchronous hooks, and deprecate hooks on a thread, the only ones in Node 20.
  if ('registerHooks' in nodeModule) {
    (nodeModule.registerHooks as RegisterHooks)({ resolve: fallbackResolve });
  } else if (import.meta.url.endsWith('.js')) {
    // In the source tree the test runner resolves them; the hook's thread could not read TypeScript.
    nodeModule.register(new URL('./packages-hook.js', import.meta.url));
  }
}
