/** The built service in a process of its own, whose memory can be asked for. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMAND } from '../support/run-command.ts';
import { freshMetrics } from '../support/samples.ts';

/** In MiB. */
export interface ServiceMemory {
  /** What it holds of the machine's memory, after garbage was collected. */
  readonly resident: number;
  /** The most that it has held. */
  readonly peak: number;
  readonly heap: number;
}

export interface MeasuredService {
  readonly url: string;
  memory(): Promise<ServiceMemory>;
  /** The sum of all samples of a metric. */
  metric(name: string): Promise<number>;
  stop(): Promise<void>;
}

/** Collects garbage and says how much is left, whenever it is asked. */
const PROBE = `
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
process.on('message', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  collect();
  collect();
  process.send(process.memoryUsage());
});
process.channel.unref();
`;

/** Resolves when it listens, on a port that the system chooses. `settings`: lines of `[kubernetes]`. */
export async function measuredService(folder: string, settings: readonly string[]): Promise<MeasuredService> {
  const configuration = join(folder, 'measured-service.conf');
  writeFileSync(
    configuration,
    ['[service]', 'host = 127.0.0.1', 'port = 0', '[kubernetes]', ...settings].join('\n'),
  );
  chmodSync(configuration, 0o600);
  const child = fork(COMMAND, ['serve', '--config-file', configuration], {
    execArgv: ['--import', `data:text/javascript,${encodeURIComponent(PROBE)}`],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`the service has ended: ${output}`)));
    const look = (text: string) => {
      output = (output + text).slice(-10_000);
      const [, at] = /^Listening on (\S+)$/m.exec(output) ?? [];
      if (at !== undefined) {
        resolve(at);
      }
    };
    child.stdout?.setEncoding('utf8').on('data', look);
    child.stderr?.setEncoding('utf8').on('data', look);
  });
  return {
    url,
    async memory() {
      child.send('memory');
      const [{ rss, heapUsed }] = (await once(child, 'message')) as [NodeJS.MemoryUsage];
      const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1];
      return { resident: rss / 2 ** 20, heap: heapUsed / 2 ** 20, peak: Number(peak) / 2 ** 10 };
    },
    async metric(name) {
      const text = await freshMetrics(url);
      const samples = text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d\\S*)$`, 'gm'));
      return [...samples].reduce((sum, [, value]) => sum + Number(value), 0);
    },
    async stop() {
      child.removeAllListeners('exit');
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    },
  };
}
