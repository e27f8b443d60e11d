/** A decision log on standard output, of a service in a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text as wholeText } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { decisionsIn } from '../support/decision-logs.ts';
import { projectFile } from '../support/files.ts';
import { flood } from '../support/load.ts';
import { COMMAND } from '../support/run-command.ts';
import { freshSamples } from '../support/samples.ts';

/** How many decisions may wait to be written. */
const ROOM = 10_000;

describe('a log on standard output', () => {
  function serve(...settings: string[]) {
    const child = spawn(
      process.execPath,
      [
        COMMAND,
        'serve',
        '--config-file',
        projectFile('etc/policy-service.conf'),
        '--port',
        '0',
        ...settings.flatMap((setting) => ['--config', `service.${setting}`]),
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    onTestFinished(() => void child.kill('SIGKILL'));
    let stderr = '';
    const listening = new Promise<URL>((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
        const [, url] = /^Listening on (http:\S+)\n/m.exec(stderr) ?? [];
        if (url !== undefined) {
          resolve(new URL(url));
        }
      });
      child.on('close', () => reject(new Error(`it has ended: ${stderr}`)));
    });
    return { child, listening, closed: once(child, 'close'), stderr: () => stderr };
  }

  it('is the only output there', async () => {
    const { child, listening, closed, stderr } = serve('decision_log=-');
    const stdout = wholeText(child.stdout);
    const { port } = await listening;
    expect(await flood(Number(port), 8)).toEqual({ '204': 8 });
    child.kill('SIGTERM');
    expect(await closed).toEqual([0, null]);
    expect(decisionsIn(await stdout)).toHaveLength(8);
    expect(stderr()).toContain('curl -i');
  });

  it('delays no answer when nobody reads it, counts dropped lines, and ends at a signal', async () => {
    const { child, listening, closed, stderr } = serve('decision_log=-', 'shutdown_grace=60', 'deadline=300');
    const { port, origin } = await listening;
    const asked = ROOM + 1520;
    expect(await flood(Number(port), asked)).toEqual({ '204': asked });
    const { decision_log_dropped_total: dropped = 0 } = await freshSamples(origin);
    expect(dropped).toBeGreaterThan(0);
    expect(stderr().match(/decisions are dropped/g)).toHaveLength(1);

    let read = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      read += text;
    });
    await expect.poll(() => read.split('\n').length - 1 + dropped).toBe(asked);
    child.kill('SIGTERM');
    expect(await closed).toEqual([0, null]);
    expect(decisionsIn(read).length + dropped).toBe(asked);
  });

  it('delays the end of the service no longer than allowed', async () => {
    const { child, listening, closed, stderr } = serve('decision_log=-', 'shutdown_grace=5');
    const { port } = await listening;
    expect(await flood(Number(port), 1000)).toEqual({ '204': 1000 });
    child.kill('SIGTERM');
    // Nobody reads: the pipe is left full.
    const [code] = await Promise.race([once(child, 'exit'), sleep(600_000, ['still there'], { ref: false })]);
    expect(code).toBe(0);
    expect(stderr()).toContain('the end of the decision log was not written');
    child.stdout.resume();
    await closed;
  });
});
