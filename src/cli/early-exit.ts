/**
 * Whoever ends the process before a command has its result must not be taken for the result: a filter, a rule or a library may call
 * `process.exit(0)`, and a script that runs `check` or `test` would read "all allowed".
 */
import { ExitCode } from './output.ts';

/** Codes that tell of a result, and 13: Node ends with it when nothing is left to wait for. Others tell of a failure as they are. */
const RESULTS: readonly unknown[] = [ExitCode.ok, ExitCode.rejected, ExitCode.usage, 13, undefined];

const unfinished = new Set<object>();

/** Runs a command. If the process ends meanwhile, its exit code says that a filter failed. */
export async function toItsEnd(command: () => Promise<void>): Promise<void> {
  const running = {};
  const ended = (code: number) => {
    if (unfinished.has(running) && RESULTS.includes(code)) {
      process.stderr.write(
        `error: the process was ended before the command was done (exit code ${code}), for example by process.exit in a filter\n`,
      );
      process.exitCode = ExitCode.failed;
    }
  };
  unfinished.add(running);
  process.on('exit', ended);
  try {
    await command();
  } finally {
    unfinished.delete(running);
    process.off('exit', ended);
  }
}

/** The command has its result, and will end the process by itself. */
export function isDone(): void {
  unfinished.clear();
}
