/** The resolve hook of `packages.ts`. On Node 20 it runs on the loader's thread, so it imports nothing of this package. */

import { pathToFileURL } from 'node:url';

interface Context {
  readonly parentURL?: string | undefined;
}
interface Resolved {
  readonly url: string;
}
type Next<Result> = (specifier: string, context?: Context) => Result;

const OFFERED = /^(?:blazar-enforcement|zod)(?:\/|$)/;

/** Prefix of a package name that is resolved from the working directory. */
export const FROM_WORKING_DIRECTORY = 'blazar-working-directory:';

/** The URL parameter for the version of a module. */
const VERSION = 'changed';

/** The URL under which Node imports this version of a module anew. `null` = the first version. */
export function withVersion(url: string, version: string | null): string {
  if (version === null) {
    return url;
  }
  const versioned = new URL(url);
  versioned.searchParams.set(VERSION, version);
  return versioned.href;
}

/** Relative imports of a versioned module get its version too: they may have changed with it. */
function inherited<Result extends Resolved>(
  specifier: string,
  { parentURL }: Context,
  resolved: Result,
): Result {
  const isOwn = /^\.{0,2}\//.test(specifier) && /^file:/.test(resolved.url);
  if (!isOwn || parentURL?.includes(`${VERSION}=`) !== true || resolved.url.includes('/node_modules/')) {
    return resolved;
  }
  return { ...resolved, url: withVersion(resolved.url, new URL(parentURL).searchParams.get(VERSION)) };
}

/** A specifier with the prefix, without it and from the working directory; others unchanged. */
function located(specifier: string, context: Context): [specifier: string, context: Context] {
  return specifier.startsWith(FROM_WORKING_DIRECTORY)
    ? [
        specifier.slice(FROM_WORKING_DIRECTORY.length),
        { ...context, parentURL: pathToFileURL(`${process.cwd()}/`).href },
      ]
    : [specifier, context];
}

/** The context for a second attempt, from this file. Rethrows if this package does not offer the specifier. */
function offered(specifier: string, context: Context, thrown: unknown): Context {
  if (!OFFERED.test(specifier)) {
    throw thrown;
  }
  return { ...context, parentURL: import.meta.url };
}

/** For `registerHooks`: synchronous. */
export function fallbackResolve<Result extends Resolved>(
  specifier: string,
  context: Context,
  next: Next<Result>,
): Result {
  try {
    return inherited(specifier, context, next(...located(specifier, context)));
  } catch (thrown) {
    return next(specifier, offered(specifier, context, thrown));
  }
}

/** For `register`: the same with promises. */
export async function resolve(
  specifier: string,
  context: Context,
  next: Next<Promise<Resolved>>,
): Promise<Resolved> {
  try {
    return inherited(specifier, context, await next(...located(specifier, context)));
  } catch (thrown) {
    return next(specifier, offered(specifier, context, thrown));
  }
}
