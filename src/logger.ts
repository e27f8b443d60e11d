import { createRequire } from 'node:module';
import type { DestinationStream, Logger as PinoLogger } from 'pino';
import { onOneLine, visibleJson, visibleValue } from './visible-text.ts';

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

/** Synchronous, so that what is logged just before a process ends is written. Nothing in a line steers the terminal that shows it. */
function startPino(level: LogLevel, format: LogFormat): PinoLogger {
  const pino = require('pino') as typeof import('pino');
  if (format === 'json') {
    const lines = pino.destination({ fd: 2, sync: true });
    return pino({ level, base: null }, { write: (line) => void lines.write(visibleJson(line)) });
  }
  const pretty = require('pino-pretty') as typeof import('pino-pretty');
  const lines: DestinationStream = pretty({
    destination: 2,
    sync: true,
    colorize: process.stderr.isTTY === true,
  });
  return pino({ level, base: null }, { write: (line) => lines.write(forPeople(line)) });
}

/** Before it is coloured: behind that, nobody can tell whose escape sequences they are. The message is printed as it is, on a line. */
function forPeople(line: string): string {
  const { msg, ...fields } = JSON.parse(line) as { readonly msg?: unknown };
  const shown = visibleValue(fields) as object;
  return `${JSON.stringify({ ...shown, msg: typeof msg === 'string' ? onOneLine(msg) : msg })}\n`;
}
