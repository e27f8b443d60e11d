/** The resolve hook of `filter-packages.ts`. On Node 20 it runs on the loader's thread, so it stands alone. */

interface Context {
  readonly parentURL?: string | undefined;
}
interface Resolved {
  readonly url: string;
}
type Next<Result> = (specifier: string, context?: Context) => Result;

const OFFERED = /^(?:blazar-enforcement|zod)(?:\/|$)/;

/** For `registerHooks`: all in one step. */
export function fallbackResolve<Result extends Resolved>(
  specifier: string,
  context: Context,
  next: Next<Result>,
): Result {
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
  try {
    return await next(specifier, context);
  } catch (thrown) {
    if (!OFFERED.test(specifier)) {
      throw thrown;
    }
    return next(specifier, { ...context, parentURL: import.meta.url });
  }
}
