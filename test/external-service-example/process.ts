/** The example as a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

/** `npm run external-service-example` without npm; `npm test` has built it. */
export function run(env: Record<string, string>): {
  child: ChildProcess;
  firstLine: Promise<string>;
  errors: Promise<string>;
} {
  const file = fileURLToPath(new URL('../../dist/external-service-example/server.js', import.meta.url));
  const child = spawn(process.execPath, [file], { env: { PATH: process.env.PATH, ...env }, stdio: 'pipe' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const firstLine = once(createInterface(child.stdout), 'line').then(([line]) => String(line));
  return {
    child,
    firstLine,
    errors: child.stderr.toArray().then((chunks) => Buffer.concat(chunks).toString()),
  };
}
