import { createRequire } from 'node:module';
import type { Logger as PinoLogger } from 'pino';

/** The part of pino that the core and its filters use; any object with these methods will do. */
export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error'>;

/** `silent` writes nothing at all. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** One JSON object a line, or lines for people. */
export type LogFormat = 'json' | 'pretty';

const require = createRequire(import.meta.url);

/**
 * Lines on standard error, in JSON, at `warn` and above unless told otherwise. pino is loaded by the first line that is
 * written: most commands write none.
 */
export function createLogger(level: LogLevel = 'warn', format: LogFormat = 'json'): Logger {
  let logger: PinoLogger | undefined;
  const write = (method: 'debug' | 'info' | 'warn' | 'error') =>
    ((...line: [string]) => {
      logger ??= startPino(level, format);
      logger[method](...line);
    }) as PinoLogger['info'];
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/** Synchronous, so that what is logged just before a process ends is written. */
function startPino(level: LogLevel, format: LogFormat): PinoLogger {
  const pino = require('pino') as typeof import('pino');
  if (format === 'json') {
    return pino({ level, base: null }, pino.destination({ fd: 2, sync: true }));
  }
  const pretty = require('pino-pretty') as typeof import('pino-pretty');
  return pino(
    { level, base: null },
    pretty({ destination: 2, sync: true, colorize: process.stderr.isTTY === true }),
  );
}
