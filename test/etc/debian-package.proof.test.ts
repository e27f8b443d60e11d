/** Proves that the Debian package installs in a clean Debian, serves, keeps ledger and edited configuration in an upgrade, and is removed and purged. */
import { spawn } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { CreateRequest } from '../../src/index.ts';
import {
  cleanDebian,
  cleaningAfterAll,
  inRoot,
  MINIMAL_ENVIRONMENT,
  madePackage,
  need,
  run,
} from '../support/debian-root.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

const NAME = 'blazar-enforcement';
const CONF = `etc/${NAME}/blazar.conf`;
const DEFAULT = `etc/default/${NAME}`;
const STATE = `var/lib/${NAME}`;
const LEDGER = `${STATE}/ledger.db`;

const afterwards = cleaningAfterAll();
let first: Promise<string> | undefined;

function firstPackage(): Promise<string> {
  first ??= madePackage(afterwards);
  return first;
}

/** The same as version 1.0.1, with other configuration files. */
async function secondPackage(): Promise<string> {
  const folder = temporaryFolder(afterwards);
  const tree = join(folder, 'tree');
  const file = join(folder, `${NAME}_1.0.1_amd64.deb`);
  await run('dpkg-deb', ['--raw-extract', await firstPackage(), tree]);
  for (const path of ['DEBIAN/control', `usr/lib/${NAME}/package.json`]) {
    const text = readFileSync(join(tree, path), 'utf8');
    writeFileSync(join(tree, path), text.replace('1.0.0', '1.0.1'));
  }
  for (const path of [CONF, DEFAULT]) {
    appendFileSync(join(tree, path), '# Of version 1.0.1.\n');
  }
  await run('dpkg-deb', ['--root-owner-group', '-Zgzip', '-z1', '--build', tree, file]);
  return file;
}

async function install(root: string, file: string): Promise<void> {
  cpSync(file, join(root, 'package.deb'));
  // The answer of an administrator who keeps the edited file.
  await inRoot(root, 'dpkg', '--force-confold', '-i', '/package.deb');
}

const asUser = (user: string, group: string) => [
  'setpriv',
  `--reuid=${user}`,
  `--regid=${group}`,
  '--clear-groups',
];
const asService = (root: string, ...command: string[]) => inRoot(root, ...asUser(NAME, NAME), ...command);

/** For a lease that has not ended when the ledger is read. */
function requestFromTomorrow(seconds: number): CreateRequest {
  const start = Date.now() + 86_400_000;
  const date = (time: number) => new Date(time).toISOString();
  return {
    context: { user_id: 'alice', project_id: 'climate' },
    lease: { start_date: date(start), end_date: date(start + seconds * 1000), reservations: [] },
  };
}

/** Runs what the unit starts, as its user, asks until it answers for leases of these many seconds, and stops it. */
async function answersOf(root: string, ...lasting: number[]): Promise<number[]> {
  const unit = readFileSync(join(root, `usr/lib/systemd/system/${NAME}.service`), 'utf8');
  const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
  const become = asUser(value('User'), value('Group'));
  const running = spawn('chroot', [root, ...become, ...value('ExecStart').split(' ')], {
    env: { ...MINIMAL_ENVIRONMENT, OS_SERVICE__PORT: '0' },
    stdio: 'pipe',
  });
  let output = '';
  for (const stream of [running.stdout, running.stderr]) {
    stream.on('data', (text: Buffer) => {
      output += String(text);
    });
  }
  const ended = new Promise<number | null>((resolve) => running.on('close', resolve));
  // It chooses a port that nobody else has.
  const url = await Promise.race([
    vi.waitUntil(() => /^Listening on (\S+)$/m.exec(output)?.[1], { timeout: 300_000, interval: 50 }),
    ended.then((code) => Promise.reject(new Error(`it ended with ${code}: ${output}`))),
  ]);
  const ask = async (seconds: number) => {
    const headers = { 'Content-Type': 'application/json' };
    const body = JSON.stringify(requestFromTomorrow(seconds));
    return (await fetch(`${url}/check-create`, { method: 'POST', body, headers })).status;
  };
  const statuses: number[] = [];
  for (const seconds of lasting) {
    statuses.push(await vi.waitFor(() => ask(seconds), { timeout: 300_000, interval: 50 }));
  }
  running.kill('SIGTERM');
  expect(await ended, output).toBe(0);
  return statuses;
}

describe('the Debian package', () => {
  it('installs, serves, upgrades with its ledger and configuration, and is removed and purged', async (context) => {
    need(context, 'dpkg-deb', 'strip', 'debootstrap', 'chroot', 'setpriv');
    const root = await cleanDebian(context, afterwards);
    const at = (path: string) => join(root, path);
    const text = (path: string) => readFileSync(at(path), 'utf8');
    const access = (path: string) => {
      const { mode, uid, gid } = statSync(at(path));
      return [(mode & 0o777).toString(8), uid, gid];
    };
    await install(root, await firstPackage());
    expect(await inRoot(root, NAME, '--version')).toBe('1.0.0\n');
    const uid = Number(await inRoot(root, 'id', '-u', NAME));
    const gid = Number(await inRoot(root, 'id', '-g', NAME));
    expect(uid).toBeGreaterThan(0);
    const expectAccess = () => {
      expect(access(`etc/${NAME}`)).toEqual(['750', 0, gid]);
      expect(access(CONF)).toEqual(['640', 0, gid]);
      // SQLite makes files that everyone may read: the folder keeps others out.
      expect(access(STATE)).toEqual(['750', uid, gid]);
      expect(access(`var/log/${NAME}`)).toEqual(['750', uid, gid]);
    };
    expectAccess();
    // Allowed, and longer than the configuration allows.
    expect(await answersOf(root, 3600, 864_000)).toEqual([204, 403]);

    const enabled = 'enabled_filters = MaxLeaseDurationFilter';
    const limits = `max_leases_per_project = 10\n[ledger]\nconnection = sqlite:///${LEDGER}\n`;
    const edited = `${text(CONF).replace(enabled, `${enabled}, MaxLeasesFilter`)}${limits}`;
    writeFileSync(at(CONF), edited);
    await asService(root, NAME, 'ledger', 'upgrade');
    expect(access(LEDGER).slice(1)).toEqual([uid, gid]);
    expect(await answersOf(root, 3600)).toEqual([204]);
    const leases = async () =>
      JSON.parse(await asService(root, NAME, 'ledger', 'list', '--format', 'json')) as unknown[];
    const before = await leases();
    expect(before).toHaveLength(1);

    const second = await secondPackage();
    // Installing again changes nothing.
    for (const _ of ['upgrade', 'again']) {
      await install(root, second);
      expect(await inRoot(root, NAME, '--version')).toBe('1.0.1\n');
      expectAccess();
      expect(await leases()).toEqual(before);
      expect(text(CONF)).toBe(edited);
      // What nobody has edited is that of the new version.
      expect(text(DEFAULT)).toContain('# Of version 1.0.1.');
    }
    expect(text(`${CONF}.dpkg-dist`)).toContain('# Of version 1.0.1.');
    expect(await answersOf(root, 7200)).toEqual([204]);
    expect(await leases()).toHaveLength(2);

    await inRoot(root, 'dpkg', '--remove', NAME);
    const programs = [`usr/bin/${NAME}`, `usr/lib/${NAME}`];
    expect(programs.filter((path) => existsSync(at(path)))).toEqual([]);
    expect(existsSync(at(LEDGER))).toBe(true);
    expect(text(CONF)).toBe(edited);
    expectAccess();
    await inRoot(root, 'dpkg', '--purge', NAME);
    const left = [`etc/${NAME}`, DEFAULT, `etc/logrotate.d/${NAME}`, STATE, `var/log/${NAME}`];
    expect(left.filter((path) => existsSync(at(path)))).toEqual([]);
  });

  it('has no error that lintian finds', async (context) => {
    need(context, 'dpkg-deb', 'strip', 'lintian');
    // Without the code in it, which takes lintian minutes and of which it knows nothing; compiled files stay.
    const folder = join(temporaryFolder(), 'package');
    await run('dpkg-deb', ['-R', await firstPackage(), folder]);
    const isCode = (path: string) => /\/node_modules\/.*\.(?:[cm]?[jt]s|map|json|md)$/.test(path);
    for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(isCode)) {
      rmSync(join(folder, path), { recursive: true });
    }
    const sums = join(folder, 'DEBIAN/md5sums');
    if (existsSync(sums)) {
      const lines = readFileSync(sums, 'utf8').split('\n');
      writeFileSync(sums, lines.filter((line) => !isCode(line)).join('\n'));
    }
    await run('dpkg-deb', ['--root-owner-group', '-Zgzip', '-z1', '-b', folder, `${folder}.deb`]);
    const found = await run('lintian', ['--fail-on', 'none', `${folder}.deb`]);
    expect(found.split('\n').filter((line) => line.startsWith('E: '))).toEqual([]);
  });
});
