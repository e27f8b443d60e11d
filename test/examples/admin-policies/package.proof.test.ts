/** The package of example policies, packed, installed and served. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { decodeRequest, encodeRequest } from '../../../src/skypilot/wire.ts';
import { projectFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { runCommand, startCommand } from '../../support/run-command.ts';
import { LEE, TASK } from './helpers.ts';

const NAME = 'blazar-enforcement-admin-policies';
const FOLDER = projectFile('examples/admin-policies');
const README = readFileSync(join(FOLDER, 'README.md'), 'utf8');
const CONFIGURATIONS = [...README.matchAll(/^```ini\n(.*?)^```$/gms)].map(([, text = '']) => text);

/** A folder in which the packed package is installed, and what it depends on, but neither of its peers. */
function site(): string {
  const folder = temporaryFolder();
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, NAME), { recursive: true });
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', folder, FOLDER], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  execFileSync('tar', ['-xzf', join(folder, filename), '-C', join(modules, NAME), '--strip-components=1']);
  symlinkSync(projectFile('node_modules/yaml'), join(modules, 'yaml'));
  return folder;
}

it('is served by its name, with the configurations of its README', async () => {
  const folder = site();
  expect(CONFIGURATIONS).toHaveLength(3);
  const files = CONFIGURATIONS.map((text, index) => {
    const file = join(folder, `${index}.conf`);
    writeFileSync(file, index === 0 ? `${text}\n[service]\nport = 0\n` : text);
    return file;
  });
  const [first = '', ...others] = files;
  const validations = Promise.all(
    others.map((file) => runCommand(['config', 'validate', '--config-file', file], { cwd: folder })),
  );
  const running = startCommand(['serve', '--config-file', first], { cwd: folder });
  onTestFinished(async () => {
    running.process.kill('SIGKILL');
    await running.ended;
  });
  const [, url] = await running.printed(/^Listening on (\S+)$/m);

  const body = encodeRequest({
    task: TASK.replace('infra: aws', 'accelerators: A100:8'),
    skypilotConfig: '{}\n',
    requestName: 'launch',
    requestOptions: { clusterName: 'c1', idleMinutesToAutostop: null, down: false, dryrun: false },
    ...{ atClientSide: false, user: LEE, clientApiVersion: 56, clientVersion: '0.13.0' },
  });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${url}/skypilot/admin-policy`, { method: 'POST', body, headers });
  expect(answer.status).toBe(200);
  const { task, skypilotConfig } = decodeRequest(await answer.json());
  expect(task.value).toMatchObject({
    resources: { accelerators: 'A100:8', use_spot: true, autostop: { idle_minutes: 30 } },
  });
  expect(skypilotConfig.value).toEqual({
    kubernetes: { custom_metadata: { labels: { app: 'skypilot', team: 'research' } } },
  });
  for (const { code, stderr, stdout } of await validations) {
    expect({ code, stderr, stdout }).toMatchObject({ code: 0 });
  }
});
