/** The source of a real Blazar, which the project does not contain. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PeerMissing } from '../harness/peer-missing.ts';
import { ROOT } from '../requests.ts';

/** Debian's Python, with the packages of OpenStack. */
const PYTHON = '/usr/bin/python3';
const ARCHIVE = /^blazar-(\w+)\.tar\.xz$/;
const NEEDED = 'import oslo_config, oslo_log, keystoneauth1, stevedore, requests';

export interface BlazarSource {
  readonly python: string;
  /** Contains the package `blazar`. */
  readonly folder: string;
  remove(): void;
}

/**
 * The folder in `BLAZAR_SOURCE`, otherwise the archive beside the program in `BLAZAR_PEER`, by default
 * `shared/peers/blazar/serve.py` beside the project.
 * @throws PeerMissing
 */
export function blazarSource(): BlazarSource {
  proveRuns(NEEDED);
  const named = process.env.BLAZAR_SOURCE;
  if (named !== undefined) {
    if (!existsSync(join(named, 'blazar'))) {
      throw new PeerMissing('BLAZAR_SOURCE names a folder without the package `blazar`');
    }
    return { python: PYTHON, folder: named, remove() {} };
  }
  const archive = foundArchive();
  if (archive === undefined) {
    throw new PeerMissing('the source of openstack/blazar is not here: set BLAZAR_SOURCE to its folder');
  }
  const folder = mkdtempSync(join(tmpdir(), 'bench-blazar-'));
  execFileSync('tar', ['xJf', archive, '-C', folder]);
  return { python: PYTHON, folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The version shown on the page. `undefined` = not found. */
export function blazarVersion(): string | undefined {
  try {
    const python = execFileSync(PYTHON, ['--version'], { encoding: 'utf8' }).trim();
    const commit = ARCHIVE.exec(foundArchive()?.split('/').at(-1) ?? '')?.[1];
    return `openstack/blazar${commit === undefined ? '' : ` ${commit}`} on ${python}`;
  } catch {
    return undefined;
  }
}

function foundArchive(): string | undefined {
  const folder = dirname(
    process.env.BLAZAR_PEER ?? join(ROOT, '..', 'shared', 'peers', 'blazar', 'serve.py'),
  );
  const name = existsSync(folder) ? readdirSync(folder).find((one) => ARCHIVE.test(one)) : undefined;
  return name && join(folder, name);
}

function proveRuns(code: string): void {
  try {
    execFileSync(PYTHON, ['-c', code], { stdio: 'ignore' });
  } catch {
    throw new PeerMissing(`${PYTHON} has not the packages of OpenStack that Blazar needs`);
  }
}
