import { createRequire } from 'node:module';
import type { Logger as PinoLogger } from 'pino';

/** The part of pino that the core and its filters use; any object with these methods will do. */
export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error'>;

/** `silent` writes nothing at all. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

let pino: typeof import('pino') | undefined;

/**
 * JSON lines on standard error, at `warn` and above unless told otherwise. pino is loaded by the first line that is
 * written: most commands write none.
 */
export function createLogger(level: LogLevel = 'warn'): Logger {
  let logger: PinoLogger | undefined;
  const write = (method: 'debug' | 'info' | 'warn' | 'error') =>
    ((...line: [string]) => {
      pino ??= createRequire(import.meta.url)('pino') as typeof import('pino');
      // Synchronous, so that what is logged just before a process ends is written.
      logger ??= pino({ level, base: null }, pino.destination({ fd: 2, sync: true }));
      logger[method](...line);
    }) as PinoLogger['info'];
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
