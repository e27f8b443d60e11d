import { register } from 'node:module';
import { extname } from 'node:path';
import type { Replacement } from './hook.ts';

type Tracing = typeof import('../../src/base/tracing.ts');

const EXTENSION = extname(import.meta.url);
const urlOf = (path: string) => new URL(path + EXTENSION, import.meta.url).href;

const TRACING = urlOf('../../src/base/tracing');
const NONE = urlOf('./none');

/**
 * Replaces `src/base/tracing.ts` by empty functions for modules that are loaded from now on; with `kept`,
 * loads the real ones through the same loader. Rejects if a module that uses the other ones is already
 * loaded.
 */
export async function removeTracing({ kept = false } = {}): Promise<void> {
  const replacement: Replacement = { of: TRACING, by: kept ? TRACING : NONE };
  register(urlOf('./hook'), { data: replacement });
  const seen: Tracing = await import('../../src/base/tracing.ts');
  const none: Tracing = await import('./none.ts');
  if ((seen.inSpan === none.inSpan) === kept) {
    throw new Error(
      `expected ${kept ? 'src/base/tracing' : 'bench/tracing/none'} to be what is seen of tracing`,
    );
  }
}
