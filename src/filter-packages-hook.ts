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

function local(specifier: string): [string, Context] | undefined {
  return specifier.startsWith(FROM_WORKING_DIRECTORY)
    ? [specifier.slice(FROM_WORKING_DIRECTORY.length), { parentURL: pathToFileURL(`${process.cwd()}/`).href }]
    : undefined;
}

/** For `registerHooks`: all in one step. */
export function fallbackResolve<Result extends Resolved>(
  specifier: string,
  context: Context,
  next: Next<Result>,
): Result {
  const [name, from] = local(specifier) ?? [specifier, undefined];
  if (from !== undefined) {
    return next(name, { ...context, ...from });
  }
  try {
    return next(specifier, context);
  } catch (thrown) {
    if (!OFFERED.test(specifier)) {
      throw thrown;
    }
    return next(specifier, { ...context, parentURL: import.meta.url });
  }
}

/** For `register`: the same with promises. */
export async function resolve(
  specifier: string,
  context: Context,
  next: Next<Promise<Resolved>>,
): Promise<Resolved> {
  const [name, from] = local(specifier) ?? [specifier, undefined];
  if (from !== undefined) {
    return next(name, { ...context, ...from });
  }
  try {
    return await next(specifier, context);
  } catch (thrown) {
    if (!OFFERED.test(specifier)) {
      throw thrown;
    }
    return next(specifier, { ...context, parentURL: import.meta.url });
  }
}
