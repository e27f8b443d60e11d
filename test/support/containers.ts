/**
 * A real image builder, Debian's podman, with a separate persistent store: the base image, the layers of the
 * Dockerfile, and the image. Needs root, and `apt-get install podman runc debootstrap`; pulls nothing from an
 * image registry.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as wholeText } from 'node:stream/consumers';
import { expect, onTestFinished } from 'vitest';
import { projectFile } from './files.ts';
import { skipAloud } from './peers.ts';
import { type CommandResult, type RunningCommand, watched } from './run-command.ts';

const STORE = join(tmpdir(), 'blazar-enforcement-images');
/** Limits below those of the process, which root without CAP_SYS_RESOURCE may not raise. No journal. */
const SETTINGS = `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
log_driver = "k8s-file"
[network]
network_backend = "netavark"
network_config_dir = "${STORE}/networks"
`;
const FLAGS = [
  '--root',
  join(STORE, 'storage'),
  '--runroot',
  join(STORE, 'running'),
  '--storage-driver',
  'overlay',
  '--cgroup-manager',
  'cgroupfs',
  '--events-backend',
  'none',
  '--runtime',
  'runc',
];
/** The environment of podman, and of commands that call it. */
export const CONTAINERS_ENVIRONMENT = { ...process.env, CONTAINERS_CONF: join(STORE, 'containers.conf') };

/** Whether there is a builder. If not, this is said once on standard error. */
export function hasContainerBuilder(): boolean {
  const missing = ['podman', 'runc', 'debootstrap'].filter((name) => spawnSync(name, ['--version']).error);
  const why = [
    ...(process.getuid?.() === 0 ? [] : ['it needs root']),
    ...missing.map((name) => `there is no command ${name}`),
  ];
  if (why.length > 0) {
    skipAloud('the image', why.join(', '));
  }
  return why.length === 0;
}

/** The command line of podman with this store, for scripts that call it. */
export function podmanCommand(): readonly string[] {
  mkdirSync(join(STORE, 'networks'), { recursive: true });
  writeFileSync(CONTAINERS_ENVIRONMENT.CONTAINERS_CONF, SETTINGS);
  return ['podman', ...FLAGS];
}

/** Runs `podman …args`, which must exit with 0. Returns its output. */
export async function podman(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await podmanEnd(...args);
  expect(code, `podman ${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
  return stdout.trim();
}

/** Runs `podman …args`, with any exit code. */
export const podmanEnd = (...args: readonly string[]) => commandEnd([...podmanCommand(), ...args]);

/** Runs a command to its end. */
export async function commandEnd(
  [command = '', ...args]: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<CommandResult> {
  const child = spawn(command, args, {
    env: CONTAINERS_ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
  });
  const [stdout, stderr, [code]] = await Promise.all([
    wholeText(child.stdout),
    wholeText(child.stderr),
    once(child, 'close'),
  ]);
  return { code, stdout, stderr };
}

/** The base image of the Dockerfile, built once. Returns its name. */
export async function baseImage(): Promise<string> {
  const dockerfile = readFileSync(projectFile('Dockerfile'), 'utf8');
  const [, version = ''] = /^ARG NODE_VERSION=(\S+)$/m.exec(dockerfile) ?? [];
  const [, release = ''] = /node:\$\{NODE_VERSION\}-(\S+)/.exec(dockerfile) ?? [];
  const base = `docker.io/library/node:${version}-${release}`;
  const script = projectFile('test/support/base-image.sh');
  await inTurn('sh', script, base, join(STORE, 'base'), ...podmanCommand());
  return base;
}

/** Builds the project's Dockerfile, with cached layers. Returns the name of the image. */
export async function builtImage(): Promise<string> {
  await baseImage();
  // In Docker's format: the other one has no health check.
  const how = ['--isolation', 'chroot', '--network', 'host', '--format', 'docker', '--pull=never'];
  const labels = ['--build-arg', 'VERSION=1.2.3', '--build-arg', 'REVISION=c0ffee'];
  const what = ['--tag', 'blazar-enforcement', projectFile('.')];
  await inTurn(...podmanCommand(), 'build', ...how, ...labels, ...what);
  return 'localhost/blazar-enforcement';
}

/** Runs a command that builds an image. Test files that need the same image wait, and then use it. */
async function inTurn(...command: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await commandEnd(['flock', join(STORE, 'lock'), ...command]);
  expect(code, `${command.join(' ')}\n${stdout}${stderr}`).toBe(0);
}

/** A container that runs until it is stopped: `podman run`, which ends with the exit code of the container. */
export interface RunningContainer extends RunningCommand {
  readonly name: string;
}

let containers = 0;

/** `podman run …args`, removed when the test is over. */
export function startContainer(...args: readonly string[]): RunningContainer {
  containers += 1;
  const name = `proof-${process.pid}-${containers}`;
  const [command = '', ...flags] = podmanCommand();
  const child = spawn(command, [...flags, 'run', '--name', name, ...args], {
    env: CONTAINERS_ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const running = watched(child);
  onTestFinished(async () => {
    await podmanEnd('rm', '--force', '--time', '0', name);
    await running.ended;
  });
  return { name, ...running };
}
