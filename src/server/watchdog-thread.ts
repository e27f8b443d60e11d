/** The thread of the watchdog. It must work when the rest of the process is blocked. */
import { write } from 'node:fs';
import { Session } from 'node:inspector';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { LogFormat } from '../base/logger.ts';
import { occupationSeen } from '../enforcement/occupation.ts';
import type { WatchdogOrder, WatchdogStart } from './watchdog.ts';

/** Maximum time to pause the main thread: impossible in a system call, such as waiting for a child. */
const STOPPED_WITHIN_MS = 2000;
/** Maximum time to write the log line, whose reader may have stopped. */
const LOGGED_WITHIN_MS = 1000;
const SHOWN_FRAMES = 5;
const ERROR = 50;

const { memory, exitCode } = workerData as WatchdogStart;

let names: readonly string[] = [];
let looking: NodeJS.Timeout | undefined;
let isEnding = false;
let logFormat: LogFormat | undefined;

parentPort?.on('message', (order: WatchdogOrder) => {
  if ('names' in order) {
    names = order.names;
  } else if ('endInMs' in order) {
    setTimeout(() => void end('the service has not stopped within shutdown_grace'), order.endInMs);
  } else {
    ({ logFormat } = order);
    look(order);
  }
});

/** Counts missed heartbeats, not time: in a suspended machine, the main thread could not run either. */
function look({ everyMs, looks }: { readonly everyMs: number; readonly looks: number }): void {
  clearInterval(looking);
  let seen = -1;
  let without = 0;
  if (everyMs > 0) {
    looking = setInterval(() => {
      const { beats } = occupationSeen(memory);
      without = beats === seen ? without + 1 : 0;
      seen = beats;
      if (without >= looks) {
        void end(`nothing else was done for ${(everyMs * (looks + 1)) / 1000} s`);
      }
    }, everyMs);
  }
}

async function end(why: string): Promise<void> {
  if (isEnding) {
    return;
  }
  isEnding = true;
  clearInterval(looking);
  const { at } = occupationSeen(memory);
  const filter = names[Math.abs(at) - 1];
  // `at` was read before the pause, which may fail: what is known is logged in any case.
  const session = new Session();
  const stopped = await Promise.race([stop(session), pause(STOPPED_WITHIN_MS)]);
  const frames = stopped?.slice(0, SHOWN_FRAMES);
  const isLogged = await Promise.race([
    log({
      [at > 0 ? 'filter' : 'last_filter']: filter,
      at: frames,
      msg: `the process is held, and ended: ${why}`,
    }),
    pause(LOGGED_WITHIN_MS, false),
  ]);
  if (stopped !== undefined && isLogged) {
    // As PID 1 of a container it ignores signals from inside. A normal exit would wait for this thread.
    const expression = `process.getBuiltinModule('node:fs').closeSync(2); process.reallyExit(${exitCode})`;
    session.post('Runtime.evaluate', { expression });
    await pause(STOPPED_WITHIN_MS);
  }
  process.kill(process.pid, 'SIGKILL');
}

/** Pauses the main thread like a debugger, and returns its stack: innermost function first. */
function stop(session: Session): Promise<string[]> {
  return new Promise((stopped) => {
    const scripts = new Map<string, string>();
    session.connectToMainThread();
    session.on('Debugger.scriptParsed', ({ params: { scriptId, url } }) => scripts.set(scriptId, url));
    session.on('Debugger.paused', ({ params: { callFrames } }) =>
      stopped(
        callFrames.map(
          ({ functionName, location: { scriptId, lineNumber } }) =>
            `${functionName || '(anonymous)'} ${scripts.get(scriptId) ?? ''}:${lineNumber + 1}`,
        ),
      ),
    );
    session.post('Debugger.enable');
    session.post('Debugger.pause');
  });
}

/** Not synchronously: the reader of the log may block the process. Resolves to whether it was written. */
function log(line: Readonly<Record<string, unknown>>): Promise<boolean> {
  if (logFormat === undefined) {
    return Promise.resolve(true);
  }
  const { msg, ...facts } = line;
  const time = Date.now();
  const text =
    logFormat === 'json'
      ? JSON.stringify({ level: ERROR, time, ...facts, msg })
      : `[${new Date(time).toISOString()}] ERROR: ${String(msg)} ${JSON.stringify(facts)}`;
  return new Promise((written) => {
    write(2, `${text}\n`, (thrown) => written(thrown === null));
  });
}
