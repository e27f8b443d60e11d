/** Proves that the Debian package installs in a clean Debian, serves, keeps ledger and edited configuration in an upgrade, and is removed and purged. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { packagedUnit } from '../../tools/debian-package/packaged-unit.ts';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { createLasting } from '../support/requests.ts';
import { unusedPort } from '../support/services.ts';

const NAME = 'blazar-enforcement';
const CONF = `etc/${NAME}/blazar.conf`;
const LEDGER = `var/lib/${NAME}/ledger.db`;
const MIRROR = process.env.DEBIAN_MIRROR ?? 'http://deb.debian.org/debian';
const MAX_EXPOSURE = 2.0;

const exists = (tool: string) => spawnSync('which', [tool]).status === 0;

/** Skips a test whose tool is missing, and says so. */
function need(context: TestContext, ...tools: string[]): void {
  const missing = tools.find((tool) => !exists(tool));
  if (missing !== undefined) {
    context.skip(`${missing} is not installed: the Debian package is NOT proven with it here`);
  }
}

/** With the packages and the Node.js of this project, which need no download. */
function built(version: string): string {
  const folder = temporaryFolder();
  const args = ['--installed', '--compression', 'gzip', '--version', version, '--output', folder];
  execFileSync(process.execPath, [projectFile('dist/tools/debian-package.js'), ...args], { stdio: 'pipe' });
  return join(folder, `${NAME}_${version}_amd64.deb`);
}

/** Debian 12 as debootstrap makes it. */
function cleanDebian(context: TestContext): string {
  const root = join(temporaryFolder(), 'root');
  if (process.getuid?.() !== 0) {
    context.skip('debootstrap needs root: the Debian package is NOT installed here');
  }
  const made = spawnSync('debootstrap', ['--variant=minbase', 'bookworm', root, MIRROR], {
    encoding: 'utf8',
  });
  if (made.status !== 0) {
    context.skip(`debootstrap cannot make a Debian: it is NOT installed here: ${made.stdout.slice(-300)}`);
  }
  return root;
}

function inRoot(root: string, ...command: string[]): string {
  const { status, stdout, stderr } = spawnSync('chroot', [root, ...command], {
    encoding: 'utf8',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
  });
  expect(status, `${command.join(' ')}\n${stdout}${stderr}`).toBe(0);
  return stdout;
}

function install(root: string, file: string): void {
  cpSync(file, join(root, 'package.deb'));
  // As apt calls it: a conffile that was edited is kept.
  inRoot(root, 'dpkg', '--force-confold', '-i', '/package.deb');
}

const asService = (root: string, ...command: string[]) =>
  inRoot(root, 'setpriv', `--reuid=${NAME}`, `--regid=${NAME}`, '--clear-groups', ...command);

/** Runs what the unit starts, as its user, asks for a lease of this many seconds, and stops it. */
async function answerOf(root: string, seconds: number): Promise<number> {
  const unit = readFileSync(join(root, `usr/lib/systemd/system/${NAME}.service`), 'utf8');
  const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
  const [user, group] = [value('User'), value('Group')];
  expect([user, group]).toEqual([NAME, NAME]);
  const become = ['setpriv', `--reuid=${user}`, `--regid=${group}`, '--clear-groups'];
  const running = spawn('chroot', [root, ...become, ...value('ExecStart').split(' ')], {
    env: { PATH: '/usr/bin:/bin', OS_SERVICE__PORT: String(await unusedPort()) },
    stdio: 'pipe',
  });
  onTestFinished(() => {
    running.kill('SIGKILL');
  });
  let output = '';
  const ended = new Promise<number | null>((resolve) => running.on('close', resolve));
  const url = await new Promise<string>((resolve, reject) => {
    const look = (text: Buffer) => {
      output += String(text);
      const listening = /^Listening on (\S+)$/m.exec(output)?.[1];
      if (listening !== undefined) {
        resolve(listening);
      }
    };
    running.stdout.on('data', look);
    running.stderr.on('data', look);
    running.on('close', () => reject(new Error(`it ended: ${output}`)));
  });
  const { status } = await fetch(`${url}/commit-create`, {
    ...{ method: 'POST', body: JSON.stringify(createLasting(seconds)) },
    headers: { 'Content-Type': 'application/json' },
  });
  running.kill('SIGTERM');
  expect(await ended).toBe(0);
  return status;
}

describe('the Debian package', () => {
  it('has no error that lintian finds', (context) => {
    need(context, 'dpkg-deb', 'strip', 'lintian');
    const { stdout } = spawnSync('lintian', ['--fail-on', 'none', built('1.0.0')], { encoding: 'utf8' });
    expect(stdout.split('\n').filter((line) => line.startsWith('E: '))).toEqual([]);
  });

  it('installs, serves, upgrades with its ledger and configuration, and is removed and purged', async (context) => {
    need(context, 'dpkg-deb', 'strip', 'debootstrap', 'chroot');
    const [first, second] = [built('1.0.0'), built('1.0.1')];
    const root = cleanDebian(context);
    const at = (path: string) => join(root, path);
    install(root, first);
    expect(inRoot(root, NAME, '--version')).toBe('1.0.0\n');
    const secret = statSync(at(CONF));
    expect((secret.mode & 0o777).toString(8)).toBe('640');
    expect(String(secret.gid)).toBe(inRoot(root, 'id', '-g', NAME).trim());

    expect(await answerOf(root, 3600)).toBe(204);
    expect(await answerOf(root, 864_000)).toBe(403);

    const enabled = 'enabled_filters = MaxLeaseDurationFilter';
    const edited = readFileSync(at(CONF), 'utf8').replace(enabled, `${enabled}, MaxLeasesFilter`);
    writeFileSync(
      at(CONF),
      `${edited}max_leases_per_project = 10\n[ledger]\nconnection = sqlite:///${LEDGER}\n`,
    );
    asService(root, NAME, 'ledger', 'upgrade');
    expect(await answerOf(root, 3600)).toBe(204);
    const leases = () => JSON.parse(asService(root, NAME, 'ledger', 'list', '--format', 'json')) as unknown[];
    const before = leases();
    expect(before).toHaveLength(1);

    install(root, second);
    expect(inRoot(root, NAME, '--version')).toBe('1.0.1\n');
    expect(leases()).toEqual(before);
    expect(readFileSync(at(CONF), 'utf8')).toContain('MaxLeasesFilter');
    expect(statSync(at(CONF)).gid).toBe(secret.gid);
    expect(await answerOf(root, 3600)).toBe(204);
    // Installing again changes nothing.
    install(root, second);

    inRoot(root, 'dpkg', '--remove', NAME);
    expect(existsSync(at(`usr/bin/${NAME}`))).toBe(false);
    expect([existsSync(at(LEDGER)), existsSync(at(CONF))]).toEqual([true, true]);
    inRoot(root, 'dpkg', '--purge', NAME);
    const left = [`etc/${NAME}`, `var/lib/${NAME}`, `var/log/${NAME}`, `usr/lib/${NAME}`];
    expect(left.filter((path) => existsSync(at(path)))).toEqual([]);
  });

  it('has units that allow little more than the service needs', (context) => {
    need(context, 'systemd-analyze');
    const folder = temporaryFolder();
    for (const name of readdirSync(projectFile('etc/systemd'))) {
      const file = join(folder, name);
      const unit = packagedUnit(readFileSync(projectFile(`etc/systemd/${name}`), 'utf8'));
      expect(unit).toContain(
        'ExecStart=/usr/bin/blazar-enforcement serve --config-file /etc/blazar-enforcement/',
      );
      expect(unit).not.toMatch(/DynamicUser|\/etc\/blazar\//);
      writeFileSync(file, unit);
      const args = ['security', '--offline=true', '--no-pager', file];
      const { stdout } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
      const [, exposure] = /Overall exposure level .*: ([\d.]+)/.exec(stdout) ?? [];
      expect(Number(exposure), stdout).toBeLessThanOrEqual(MAX_EXPOSURE);
    }
  });
});
