/** Files that other users may write or read. */
import { chmodSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { whyWritable } from '../../src/config/read-file.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import type { ConfigSources } from '../../src/index.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import { startService } from '../../src/server/service.ts';
import { projectFile } from '../support/files.ts';
import { filterFolder, filterSource, temporaryFolder } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { createLasting } from '../support/requests.ts';
import { runServiceOn } from '../support/running-service.ts';
import { tlsFixture } from '../support/tls.ts';

const CHAIN = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n';

/** Writes a file with this mode, whatever the umask. */
function file(folder: string, name: string, text: string, mode: number): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

function folderOf(mode: number): string {
  const folder = join(temporaryFolder(), 'open');
  mkdirSync(folder);
  chmodSync(folder, mode);
  return folder;
}

const conf = (text: string, mode = 0o640, name = 'blazar.conf') =>
  file(temporaryFolder(), name, `${CHAIN}[service]\nport = 0\n${text}\n`, mode);

async function problemsOf(sources: ConfigSources): Promise<string[]> {
  const { problems } = await readConfiguration({ environment: {}, ...sources }, SECTIONS);
  return problems.map((problem) => `${problem.severity}: ${formatProblem(problem)}`);
}

const named = (path: string) => problemsOf({ configFiles: [path] });
const EVERYONE = 'everyone may write to it; remove that permission: chmod o-w';

describe('a file that everyone may write to is refused:', () => {
  it('a configuration file, at the start and at a reload', async () => {
    for (const mode of [0o666, 0o602, 0o777]) {
      const path = conf('', mode);
      expect(await named(path)).toEqual([`error: ${path}: ${EVERYONE}`]);
      const start = startService({ environment: {}, configFiles: [path] }, { logger: recordingLogger() });
      await expect(start).rejects.toThrow(EVERYONE);
    }
    const path = conf('');
    const { service, post } = await runServiceOn({ environment: {}, configFiles: [path] });
    file(join(path, '..'), 'blazar.conf', '[service]\nport = 0\n', 0o666);
    expect(await service.reload()).toBe(false);
    expect((await post('/check-create', createLasting(61))).status).toBe(403);
  });

  it('one of a folder, in YAML, of --config, or of a variable', async () => {
    const configDir = temporaryFolder();
    const path = file(configDir, 'x.yaml', 'enforcement: {max_lease_duration: 1}', 0o666);
    const refused = `error: ${path}: ${EVERYONE}`;
    expect(await problemsOf({ configFiles: [], configDirs: [configDir] })).toContain(refused);
    expect(await problemsOf({ configFiles: [conf('')], config: [path] })).toContain(refused);
    expect(await problemsOf({ environment: { BLAZAR_ENFORCEMENT_CONFIG: path } })).toContain(refused);
  });

  it('a token, a key, a certificate', async () => {
    const folder = temporaryFolder();
    const tokens = file(folder, 'tokens', 'a-0123456789abcdef\n', 0o622);
    const key = file(folder, 'key', 'no key', 0o622);
    expect(
      await named(conf(`tokens_file = ${tokens}\ntls_key_file = ${key}\ntls_cert_file = ${key}`)),
    ).toEqual([
      expect.stringMatching(/:6: \[service\] tokens_file: ".*\/tokens": everyone may write to it/),
      expect.stringMatching(/:7: \[service\] tls_key_file: ".*\/key": everyone may write to it/),
      expect.stringMatching(/:8: \[service\] tls_cert_file: ".*\/key": everyone may write to it/),
    ]);
  });

  it('a tokens file that changes while the service runs: the tokens before stay valid', async () => {
    const folder = temporaryFolder();
    const tokens = file(folder, 'tokens', 'first-0123456789abcdef\n', 0o600);
    const configFiles = [conf(`tokens_file = ${tokens}`)];
    const { post, logger } = await runServiceOn({ environment: {}, configFiles }, { pollMs: 10 });
    renameSync(file(folder, 'new', 'second-0123456789abcdef\n', 0o666), tokens);
    await expect
      .poll(() => logger.lines.map(({ message }) => message))
      .toContainEqual('token and certificate files not read again: the previous ones stay in use');
    const status = async (token: string) =>
      (await post('/check-create', createLasting(1), { 'X-Auth-Token': token })).status;
    expect([await status('first-0123456789abcdef'), await status('second-0123456789abcdef')]).toEqual([
      204, 401,
    ]);
  });

  it('a scheduling policy, and a folder of them', async () => {
    const folder = temporaryFolder();
    const open = folderOf(0o777);
    file(folder, 'policy.yaml', '', 0o666);
    const text = (path: string) => `[kubernetes]\nscheduling_policies = ${path}`;
    expect(await named(conf(text(folder)))).toContainEqual(
      expect.stringContaining('policy.yaml in it: everyone may write to it'),
    );
    expect(await named(conf(text(open)))).toContainEqual(
      expect.stringContaining('everyone may create files in it'),
    );
  });

  it('a filter of filters_path, and its folder', async () => {
    const folder = filterFolder({ 'mine-filter.js': filterSource('MineFilter') });
    const sources = {
      configFiles: [],
      values: { enforcement: { filters_path: [folder], enabled_filters: ['MineFilter'] } },
    };
    expect(await problemsOf(sources)).toEqual([]);
    chmodSync(join(folder, 'mine-filter.js'), 0o666);
    expect(await problemsOf(sources)).toEqual([
      expect.stringMatching(/cannot be used.*everyone may write to it/),
    ]);
    chmodSync(join(folder, 'mine-filter.js'), 0o644);
    chmodSync(folder, 0o777);
    expect(await problemsOf(sources)).toContainEqual(
      expect.stringMatching(/^error: .*filters_path.*everyone may create files in it/),
    );
  });
});

describe('a folder that everyone may write to', () => {
  it('makes every file below it unsafe, also behind a link', async () => {
    const open = folderOf(0o777);
    mkdirSync(join(open, 'a', 'b'), { recursive: true });
    const path = file(join(open, 'a', 'b'), 'blazar.conf', CHAIN, 0o600);
    const link = join(temporaryFolder(), 'link.conf');
    symlinkSync(path, link);
    const inOpen = join(open, 'link.conf');
    symlinkSync(conf(''), inOpen);
    for (const one of [path, link, inOpen]) {
      expect(await named(one)).toEqual([
        `error: ${one}: everyone may write to the folder ${open} and replace what is in it; chmod o-w`,
      ]);
    }
  });

  it('is safe for a file when it is sticky, as /tmp is, but not as a --config-dir', async () => {
    const sticky = folderOf(0o1777);
    const path = file(sticky, 'blazar.conf', CHAIN, 0o600);
    expect(await named(path)).toEqual([]);
    expect(await problemsOf({ configFiles: [], configDirs: [sticky] })).toContainEqual(
      `error: ${sticky}: everyone may create files in it; remove that permission: chmod o-w`,
    );
  });
});

it('the mode of a device or a missing file does not matter', () => {
  for (const path of ['/dev/null', '/nowhere/x', 'x\0y', '/dev/null/x', '']) {
    expect(whyWritable(path)).toBeUndefined();
  }
});

describe('a secret that everyone may read is a warning:', () => {
  it('in a configuration file, once, at its line, without its value', async () => {
    const path = conf('tokens = hunter2-0123456789abcdef\ntokens_file_of_none = 1', 0o644);
    const [warning, ...others] = (await named(path)).filter((line) => line.startsWith('warning'));
    expect(others).toEqual([]);
    expect(warning).toBe(
      `warning: ${path}:6: [service] tokens: everyone may read the file of this secret; remove that permission: chmod o-r`,
    );
  });

  it('a tokens file and a key, but not a certificate', async () => {
    const folder = temporaryFolder();
    const tokens = file(folder, 'tokens', 'a-0123456789abcdef\n', 0o644);
    const key = file(folder, 'key', '', 0o644);
    expect(await named(conf(`tokens_file = ${tokens}`))).toEqual([
      expect.stringMatching(/^warning: .*:6: \[service\] tokens_file: ".*": everyone may read this secret/),
    ]);
    const tls = `tls_cert_file = ${tlsFixture('server.pem')}\ntls_key_file = ${key}`;
    const warnings = (await named(conf(tls))).filter((line) => line.startsWith('warning'));
    expect(warnings).toEqual([
      expect.stringMatching(/tls_key_file: ".*\/key": everyone may read this secret/),
    ]);
  });

  it('a password in the URL of the ledger, but not the path of an SQLite file', async () => {
    const connection = (url: string) => named(conf(`[ledger]\nconnection = ${url}`, 0o644));
    expect(await connection('postgresql://user:hunter2@db.example.org/blazar')).toHaveLength(1);
    expect(
      await connection('postgresql://db.example.org/blazar?password=hunter2-0123456789abcdef'),
    ).toHaveLength(1);
    expect(await connection('sqlite:///var/lib/x.db')).toEqual([]);
  });

  it('but not a secret that others cannot read, or a file without secrets', async () => {
    expect(await named(conf('tokens = hunter2-0123456789abcdef', 0o640))).toEqual([]);
    expect(await named(conf('', 0o644))).toEqual([]);
  });
});

it('the files in etc have safe modes', async () => {
  for (const name of ['etc/blazar.conf', 'etc/policy-service.conf', 'etc/blazar.conf.sample']) {
    expect((await named(projectFile(name))).filter((line) => line.includes('everyone may'))).toEqual([]);
  }
});
