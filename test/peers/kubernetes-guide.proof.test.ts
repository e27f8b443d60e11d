/** The commands of the pages about Kubernetes, from top to bottom beside a real cluster: what the pages show is what comes. */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { type Block, pageNamed } from '../docs/markdown.ts';
import { matchesShown } from '../docs/shown.ts';
import { projectFile } from '../support/files.ts';
import { namespace } from './cluster-objects.ts';
import { pod, policedClusterOfFile } from './policed-cluster.ts';

const { started, police, here } = policedClusterOfFile();

const PAGES = ['docs/kubernetes.md', 'docs/kubernetes-rollout.md'];
const SETTLED = { timeout: 120_000, interval: 200 };
const CHANGES = /^kubectl .*\b(apply|patch|delete|create)\b/;

const isTried = ({ language, words, file }: Block) =>
  (language === 'sh' && words.includes('cluster')) || (language === 'yaml' && file !== undefined);

/** What the pages assume to be there, and nothing that another page has made. */
async function tidy(): Promise<void> {
  const { cluster } = here();
  await cluster.kubectl(['delete', 'namespace', 'research', '--ignore-not-found']);
  await cluster.kubectl(['delete', 'clusterrole', 'sp:disks', '--ignore-not-found']);
  await cluster.kubectl(['delete', 'schedpol', 'disks', '--ignore-not-found']);
  await cluster.apply([namespace('research')]);
  await vi.waitUntil(async () => {
    const { stdout } = await cluster.kubectl([
      '-n',
      'research',
      'get',
      'serviceaccount',
      'default',
      '-o',
      // Accounts get their token a moment later.
      'jsonpath={.secrets}',
    ]);
    return stdout !== '';
  }, SETTLED);
}

/** What it prints on both streams. */
async function printed(command: string, folder: string): Promise<string> {
  const child = spawn('sh', ['-c', `exec 2>&1; ${command}`], {
    cwd: folder,
    env: {
      PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
      HOME: folder,
      KUBECONFIG: join(here().cluster.folder, 'admin.conf'),
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return text(child.stdout);
}

/** What it would print, without creating anything. */
async function tried(command: string, folder: string): Promise<string> {
  const dry = / run /.test(command) ? `${command} --dry-run=server` : command;
  return (await printed(dry, folder)).replace(' (server dry run)', '');
}

describe.skipIf(started === undefined).each(PAGES)('%s, beside a real cluster', (name) => {
  const { blocks } = pageNamed(name);
  const folder = join(started?.folder ?? '', name.replaceAll(/\W/g, '-'));

  beforeAll(async () => {
    if (started === undefined) {
      return;
    }
    await police(started);
    // As the pages install it.
    await here().configure({ audit: '*' });
    await tidy();
    if (name.includes('rollout')) {
      // What runs in a cluster that has never had policies.
      const nodeSelector = { disk: 'ssd' };
      expect(await here().create(pod('research', 'train', { nodeSelector }))).toBe('');
    }
    mkdirSync(join(folder, 'bin'), { recursive: true });
    const main = projectFile('dist/src/cli/main.js');
    writeFileSync(
      join(folder, 'bin/blazar-enforcement'),
      `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`,
      {
        mode: 0o755,
      },
    );
  });

  it('has commands to try', () => {
    expect(blocks.filter(({ words }) => words.includes('cluster')).length).toBeGreaterThan(2);
  });

  for (const block of blocks.filter(isTried)) {
    it(`line ${block.line}: ${[block.language, ...block.words].join(' ')}`, {
      timeout: 600_000,
    }, async () => {
      if (block.file !== undefined) {
        if (!block.file.startsWith('/')) {
          writeFileSync(join(folder, block.file), block.text);
        }
        return;
      }
      if (block.words.includes('enforced')) {
        await here().configure({});
      }
      const follower = blocks[blocks.indexOf(block) + 1];
      const shown = follower?.language === 'text' && follower.words.length === 0 ? follower.text : undefined;
      const commands = block.text.replaceAll('\\\n', ' ').trim().split('\n');
      const last = commands.pop() ?? '';
      let output = '';
      for (const command of commands) {
        output += await printed(command, folder);
      }
      if (shown !== undefined && !CHANGES.test(last)) {
        // What was changed above is in force, and in the status, a moment later.
        const isShown = async () => matchesShown(output + (await tried(last, folder)), shown);
        await vi.waitUntil(isShown, SETTLED).catch(() => {});
      }
      output += await printed(last, folder);
      if (shown === undefined) {
        expect(output).not.toMatch(/^(error|Error|Warning|blazar-enforcement:)/m);
      } else if (!matchesShown(output, shown)) {
        expect(output).toBe(shown);
      }
    });
  }
});
