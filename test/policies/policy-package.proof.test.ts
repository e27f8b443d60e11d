/** A package of policies, packed, installed and served by its name. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { decodeRequest, encodeRequest } from '../../src/skypilot/request/wire.ts';
import { temporaryFolder, writeFiles } from '../support/filter-folder.ts';
import { postJson } from '../support/post-json.ts';
import { runCommand, startUntilFinished } from '../support/run-command.ts';
import { LEE, TASK } from './helpers.ts';

const NAME = 'site-admin-policies';

/** It depends on its own file and on its two peers, which are not installed beside it. */
const PACKAGE = {
  'package.json': JSON.stringify({
    name: NAME,
    version: '1.0.0',
    type: 'module',
    main: './index.js',
    files: ['*.js'],
    peerDependencies: { 'blazar-enforcement': '>=0.1.0', zod: '^4.0.0' },
  }),
  'index.js': "export { MaxNodesPolicy } from './max-nodes-policy.js';\n",
  'max-nodes-policy.js': `import { AdminPolicy, MutatedUserRequest, PolicyRejected } from 'blazar-enforcement/skypilot';
import { z } from 'zod';

export class MaxNodesPolicy extends AdminPolicy {
  static options = z.object({ max_nodes: z.int().min(1).default(1).meta({ description: 'Nodes of a task.' }) });

  validateAndMutate({ task, skypilotConfig }) {
    if ((task.num_nodes ?? 1) > this.options.max_nodes) {
      throw new PolicyRejected(\`At most \${this.options.max_nodes} nodes are allowed.\`);
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }
}
`,
};

const CONF = `[service]
port = 0

[skypilot]
admin_policies = ${NAME}#MaxNodesPolicy, UseSpotForGpuPolicy
max_nodes = 2
`;

/** A folder in which the packed package is installed. */
function site(): string {
  const folder = temporaryFolder();
  const source = join(folder, 'source');
  const installed = join(folder, 'node_modules', NAME);
  writeFiles(source, PACKAGE);
  mkdirSync(installed, { recursive: true });
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', folder, source], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  execFileSync('tar', ['-xzf', join(folder, filename), '-C', installed, '--strip-components=1']);
  return folder;
}

it('is served by its name, beside an included policy', async () => {
  const folder = site();
  const file = join(folder, 'site.conf');
  writeFileSync(file, CONF);
  const running = startUntilFinished(['serve', '--config-file', file], { cwd: folder });
  const [, url] = await running.printed(/^Listening on (\S+)$/m);
  const ask = (task: string) =>
    postJson(
      `${url}/skypilot/admin-policy`,
      encodeRequest({
        task,
        skypilotConfig: '{}\n',
        requestName: 'launch',
        requestOptions: { clusterName: 'c1', idleMinutesToAutostop: null, down: false, dryrun: false },
        atClientSide: false,
        user: LEE,
        clientApiVersion: 56,
        clientVersion: '0.13.0',
      }),
    );

  const allowed = await ask(TASK.replace('infra: aws', 'accelerators: A100:8'));
  expect(allowed.status).toBe(200);
  const { task } = decodeRequest(await allowed.json());
  expect(task.value).toMatchObject({ resources: { accelerators: 'A100:8', use_spot: true } });

  const rejected = await ask(TASK.replace('num_nodes: 1', 'num_nodes: 3'));
  expect(rejected.status).toBe(400);
  expect(await rejected.text()).toContain('At most 2 nodes are allowed.');

  const wrong = join(folder, 'wrong.conf');
  writeFileSync(wrong, CONF.replace('max_nodes = 2', 'max_nodse = 2'));
  const { code, stderr } = await runCommand(['config', 'validate', '--config-file', wrong], { cwd: folder });
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('max_nodes') });
});
