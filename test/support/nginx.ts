/** A real nginx with the files of etc/nginx. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { projectFile } from './files.ts';
import { skipAloud } from './peers.ts';

export const HAS_NGINX = spawnSync('nginx', ['-v']).status === 0;
if (!HAS_NGINX) {
  skipAloud('nginx', 'there is no command nginx');
}

/** A file of etc/nginx with replaced addresses and limits; each replaced text must occur in it. */
export function nginxFile(name: string, changes: readonly (readonly [text: string, instead: string])[]) {
  return changes.reduce(
    (file, [text, instead]) => {
      if (!file.includes(text)) {
        throw new Error(`expected ${name} to have "${text}"`);
      }
      return file.replace(text, instead);
    },
    readFileSync(projectFile(`etc/nginx/${name}`), 'utf8'),
  );
}

/** Resolves when it responds at `url`, to a function that stops it. */
export async function startNginx(servers: readonly string[], url: string): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'nginx-'));
  mkdirSync(join(folder, 'temporary'));
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const conf = `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log; events {}
http { access_log off; ${paths.map((name) => `${name}_temp_path ${folder}/temporary/${name};`).join(' ')}
${servers.join('\n')} }`;
  writeFileSync(join(folder, 'nginx.conf'), conf);
  const nginx = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' });
  const stop = async () => {
    if (nginx.exitCode === null && nginx.signalCode === null) {
      nginx.kill('SIGKILL');
      await once(nginx, 'close');
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await vi.waitFor(() => fetch(url), { timeout: 120_000, interval: 50 });
  } catch (thrown) {
    const said = readFileSync(join(folder, 'error.log'), 'utf8');
    await stop();
    throw new Error(`nginx does not answer: ${said}`, { cause: thrown });
  }
  return stop;
}
