/** Clean Debian systems from debootstrap, and this project's Debian package. */
import { execFile, type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, type TestContext, vi } from 'vitest';
import { projectFile } from './files.ts';
import { temporaryFolder, type WhenDone } from './filter-folder.ts';

const NAME = 'blazar-enforcement';
const MIRROR = process.env.DEBIAN_MIRROR ?? 'http://deb.debian.org/debian';
/** Timeout for commands that hang; none here takes a tenth of it. */
const LONGEST_MS = 900_000;
export const MINIMAL_ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };

/** Collects cleanups for the end of the file, last one first. */
export function cleaningAfterAll(): WhenDone {
  const cleanings: (() => void | Promise<void>)[] = [];
  afterAll(async () => {
    for (const clean of cleanings.splice(0).reverse()) {
      await clean();
    }
  });
  return (clean) => void cleanings.push(clean);
}

/** Skips a test with a message if its tool is missing. */
export function need(context: TestContext, ...tools: string[]): void {
  const missing = tools.find((tool) => spawnSync('which', [tool]).status !== 0);
  if (missing !== undefined) {
    context.skip(`${missing} is not installed: NOT proven with it here`);
  }
}

/** Runs a command, and fails with all of its output. Does not block the worker. */
export async function run(file: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string> {
  const options = { env, timeout: LONGEST_MS, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 } as const;
  try {
    return (await promisify(execFile)(file, args, options)).stdout;
  } catch (error) {
    const { stdout, stderr } = error as SpawnSyncReturns<string>;
    throw new Error(`${file} ${args.join(' ')}: ${String(error)}\n${stdout}${stderr}`);
  }
}

/** Version 1.0.0, with the packages and Node.js of this project, without downloads. */
export async function madePackage(afterwards: WhenDone): Promise<string> {
  const folder = temporaryFolder(afterwards);
  const args = ['--installed', '--compression', 'gzip', '--version', '1.0.0', '--output', folder];
  await run(process.execPath, [projectFile('dist/tools/debian-package.js'), ...args]);
  return join(folder, `${NAME}_1.0.0_amd64.deb`);
}

/** Processes whose root directory is this one. */
function processesIn(root: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/root`) === root;
      } catch {
        return false; // It has ended.
      }
    })
    .map(Number);
}

function mountsIn(root: string): string[] {
  const points = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  return points.filter((point) => point.startsWith(`${root}/`)).reverse();
}

/** Ends all processes in it and unmounts everything below, which must not be deleted with it. */
async function leave(root: string): Promise<void> {
  const stop = () => {
    for (const pid of processesIn(root)) {
      process.kill(pid, 'SIGKILL');
    }
    for (const point of mountsIn(root)) {
      spawnSync('umount', [point]);
    }
    expect([processesIn(root), mountsIn(root)]).toEqual([[], []]);
  };
  await vi.waitFor(stop, { timeout: 300_000, interval: 50 });
}

/** Debian 12 from debootstrap, with these packages. */
export async function cleanDebian(
  context: TestContext,
  afterwards: WhenDone,
  packages: readonly string[] = [],
): Promise<string> {
  if (process.getuid?.() !== 0) {
    context.skip('debootstrap needs root: NOT tried here');
  }
  const root = join(temporaryFolder(afterwards), 'root');
  afterwards(() => leave(root));
  const included = packages.length === 0 ? [] : [`--include=${packages.join(',')}`];
  // `timeout` also ends the child processes of debootstrap.
  const debootstrap = ['debootstrap', '--variant=minbase', ...included, 'bookworm', root, MIRROR];
  await run('timeout', ['--kill-after=10', String(LONGEST_MS / 2000), ...debootstrap]).catch((error) =>
    context.skip(`debootstrap makes no Debian: NOT tried here: ${String(error).slice(-300)}`),
  );
  return root;
}

export const inRoot = (root: string, ...command: string[]) =>
  run('chroot', [root, ...command], { ...MINIMAL_ENVIRONMENT, DEBIAN_FRONTEND: 'noninteractive' });
