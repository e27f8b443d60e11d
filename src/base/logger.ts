import { createRequire } from 'node:module';
import type { Logger as PinoLogger } from 'pino';
import { traceId } from './trace-context.ts';
import { isTraced } from './tracing.ts';
import { onOneLine, visibleJson, visibleValue } from './visible-text.ts';

/** The part of pino that the core and the filters use. Any object with these methods will do. */
export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error'>;

/** `silent` writes nothing. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** One JSON object per line, or human-readable lines. */
export type LogFormat = 'json' | 'pretty';

const require = createRequire(import.meta.url);

/**
 * Logs to standard error. Default: `warn` and above, as JSON. pino is loaded at the first line: most commands
 * log none.
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

/**
 * In bytes. While standard error cannot be written, lines wait in memory up to this length; further ones are dropped. A
 * longer line is always dropped: a filter's error may contain a whole answer of another service.
 */
const MAX_WAITING = 16_777_216;
/** In characters: how much is written of the last line that was dropped. */
const MAX_SHOWN = 300;
const DROPPED = 'lines of the log were dropped: too long, or standard error could not be written';

/** Writes synchronously, so that lines from just before the process ends are not lost. Control characters are escaped. */
function startPino(level: LogLevel, format: LogFormat): PinoLogger {
  const pino = require('pino') as typeof import('pino');
  const options = { level, base: null, ...(isTraced() && { mixin: traceFields }) };
  const stderr = pino.destination({ fd: 2, sync: true, maxLength: MAX_WAITING });
  // Without a listener, a full disk would end the process. Lines that wait are written with the next one.
  stderr.on('error', () => {});
  const form = format === 'json' ? visibleJson : readable();
  let dropped = 0;
  stderr.on('drop', () => {
    dropped += 1;
  });
  let begins = '';
  const write = (line: string) => {
    const before = dropped;
    stderr.write(form(line));
    begins = dropped > before ? line.slice(0, MAX_SHOWN) : begins;
    if (dropped === 0) {
      return;
    }
    const told = dropped;
    dropped = 0;
    const fields = { level: 50, time: Date.now(), lines: told, begins, msg: DROPPED };
    stderr.write(form(`${JSON.stringify(fields)}\n`));
    // That line was dropped, too: there is no room yet.
    dropped = dropped === 0 ? 0 : told;
  };
  return pino(options, { write });
}

function readable(): (line: string) => string {
  const { prettyFactory } = require('pino-pretty') as typeof import('pino-pretty');
  const pretty = prettyFactory({ colorize: process.stderr.isTTY === true });
  return (line) => pretty(forPeople(line));
}

function traceFields(): object {
  const trace_id = traceId();
  return trace_id === undefined ? {} : { trace_id };
}

/** Must run before colours are added: their escape sequences look like any other. Keeps the message on one line. */
function forPeople(line: string): string {
  const { msg, ...fields } = JSON.parse(line) as { readonly msg?: unknown };
  const shown = visibleValue(fields) as object;
  return `${JSON.stringify({ ...shown, msg: typeof msg === 'string' ? onOneLine(msg) : msg })}\n`;
}
