/** Hooks of Node's module loader, in its own thread: they replace one module by another. */
import type { InitializeHook, ResolveHook } from 'node:module';

/** URLs. */
export interface Replacement {
  readonly of: string;
  readonly by: string;
}

let replacement: Replacement | undefined;

export const initialize: InitializeHook<Replacement> = (data) => {
  replacement = data;
};

export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  const resolved = await nextResolve(specifier, context);
  return replacement !== undefined && resolved.url === replacement.of
    ? { ...resolved, url: replacement.by }
    : resolved;
};
