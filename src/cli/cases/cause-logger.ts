import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';

/** Keeps why filters and policies failed; users read only that they did. */
export function causeLogger(causes: string[]): Logger {
  const ignore = () => {};
  const error = (fields: unknown) => {
    const cause =
      typeof fields === 'object' && fields !== null && 'error' in fields ? fields.error : undefined;
    if (cause !== undefined) {
      causes.push(errorText(cause));
    }
  };
  return { debug: ignore, info: ignore, warn: ignore, error } as unknown as Logger;
}
