import { register } from 'node:module';
import { extname } from 'node:path';
import type { Replacement } from './hook.ts';

type Tracing = typeof import('../../src/base/tracing.ts');

const EXTENSION = extname(import.meta.url);
const urlOf = (path: string) => new URL(path + EXTENSION, import.meta.url).href;

const TRACING = urlOf('../../src/base/tracing');
const NONE = urlOf('./none');

/**
 * Has the modules of this process that are loaded from now on see functions that do nothing in place of `src/base/tracing.ts`; with `kept`, the
 * real ones, through the same loader. Rejects if one has been loaded that sees the others already.
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
