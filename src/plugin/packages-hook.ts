/** The resolve hook of `filter-packages.ts`. On Node 20 it runs on the loader's thread, so it stands alone. */

import { pathToFileURL } from 'node:url';

interface Context {
  readonly parentURL?: string | undefined;
}
interface Resolved {
  readonly url: string;
}
type Next<Result> = (specifier: string, context?: Context) => Result;

const OFFERED = /^(?:blazar-enforcement|zod)(?:\/|$)/;

/** Before a package's name: it is looked for from the working directory. */
export const FROM_WORKING_DIRECTORY = 'blazar-working-directory:';

/** A specifier that says where it is to be looked for, without that prefix and from there; any other as it is. */
function located(specifier: string, context: Context): [specifier: string, context: Context] {
  return specifier.startsWith(FROM_WORKING_DIRECTORY)
    ? [
        specifier.slice(FROM_WORKING_DIRECTORY.length),
        { ...context, parentURL: pathToFileURL(`${process.cwd()}/`).href },
      ]
    : [specifier, context];
}

/** Where what was not found is looked for next: beside this file. Throws again for what is not on offer. */
function offered(specifier: string, context: Context, thrown: unknown): Context {
  if (!OFFERED.test(specifier)) {
    throw thrown;
  }
  return { ...context, parentURL: import.meta.url };
}

/** For `registerHooks`: all in one step. */
export function fallbackResolve<Result extends Resolved>(
  specifier: string,
  context: Context,
  next: Next<Result>,
): Result {
  try {
    return next(...located(specifier, context));
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
    return await next(...located(specifier, context));
  } catch (thrown) {
    return next(specifier, offered(specifier, context, thrown));
  }
}
