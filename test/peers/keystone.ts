/** A real Keystone, started for a test file, and asked as an administrator and its users ask it. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { errorText } from '../../src/base/errors.ts';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { peerProgram, skipAloud } from '../support/peers.ts';
import { madeOnce } from '../support/shared-folder.ts';

export interface KeystoneAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed if it is JSON. */
  readonly body: unknown;
}

/** What `up.sh` has put into it. */
export interface KeystoneIds {
  readonly projects: Readonly<Record<'service' | 'climate' | 'physics' | 'other', string>>;
  readonly users: Readonly<Record<'blazar' | 'alice' | 'bob' | 'carol' | 'dave', string>>;
  readonly domains: Readonly<Record<'other', string>>;
}

export interface Scope {
  /** Its name, or `null` for a token without a project. */
  readonly project?: string | null;
  /** The domain of the user, and of the project. */
  readonly domain?: string;
  readonly password?: string;
}

export class RealKeystone {
  /** Ends in `/v3`. */
  readonly url: string;
  readonly ids: KeystoneIds;
  readonly #folder: string;
  #process: ChildProcess | undefined;
  #adminToken: string | undefined;

  private constructor(url: string, folder: string) {
    this.url = url;
    this.#folder = folder;
    this.ids = JSON.parse(readFileSync(join(folder, 'ids.json'), 'utf8')) as KeystoneIds;
  }

  /** One of its own, as a copy of one that is filled once. `undefined` = there is none here, which is said aloud. Its tokens are valid for an hour. */
  static async start(): Promise<RealKeystone | undefined> {
    const program = peerProgram('KEYSTONE_PEER');
    if (program === undefined) {
      return undefined;
    }
    try {
      const filled = await madeOnce('keystone', (folder) => fill(program, folder));
      const keystone = RealKeystone.#copyOf(filled);
      await keystone.restart();
      return keystone;
    } catch (thrown) {
      skipAloud('KEYSTONE_PEER', `${program} does not start: ${errorText(thrown)}`);
      return undefined;
    }
  }

  static #copyOf(filled: string): RealKeystone {
    const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-keystone-'));
    cpSync(filled, folder, { recursive: true });
    for (const name of ['keystone.conf', 'wsgi.py']) {
      const file = join(folder, name);
      writeFileSync(file, readFileSync(file, 'utf8').replaceAll(filled, folder));
    }
    // An address that is nobody else's: nothing takes it while it is stopped.
    const url = `http://127.${randomInt(1, 256)}.${randomInt(256)}.${randomInt(1, 255)}:5000/v3`;
    const database = openSqlite(join(folder, 'keystone.db'));
    database.exec(
      `UPDATE endpoint SET url = '${url}' WHERE service_id IN (SELECT id FROM service WHERE type = 'identity')`,
    );
    database.close();
    return new RealKeystone(url, folder);
  }

  /** A token of a user; by default for the project `climate`. Throws where Keystone refuses. */
  async token(user: string, { project = 'climate', domain = 'Default', password = user }: Scope = {}) {
    const scope = project === null ? {} : { scope: { project: { name: project, domain: { name: domain } } } };
    const identity = {
      methods: ['password'],
      password: { user: { name: user, domain: { name: domain }, password } },
    };
    return this.tokenFor({ identity, ...scope });
  }

  /** The token for the `auth` of a request. Throws where Keystone refuses. */
  async tokenFor(auth: object): Promise<string> {
    const answer = await this.ask('POST', '/auth/tokens', { auth }, null);
    const token = answer.headers.get('x-subject-token');
    if (answer.status !== 201 || token === null) {
      throw new Error(`no token: ${answer.status} ${JSON.stringify(answer.body)}`);
    }
    return token;
  }

  async adminToken(): Promise<string> {
    this.#adminToken ??= await this.token('admin', { project: 'admin' });
    return this.#adminToken;
  }

  /** `path`: what follows `/v3`. `token`: by default an administrator's; `null` = none. */
  async ask(
    method: string,
    path: string,
    body?: object,
    token?: string | null,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<KeystoneAnswer> {
    const shown = token === undefined ? await this.adminToken() : token;
    const answer = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        'Content-Type': 'application/json',
        ...(shown === null ? {} : { 'X-Auth-Token': shown }),
        ...headers,
      },
      redirect: 'manual',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true;
    const parsed: unknown = isJson && text !== '' ? JSON.parse(text) : text;
    return { status: answer.status, headers: answer.headers, body: parsed };
  }

  async revoke(token: string): Promise<void> {
    done(await this.ask('DELETE', '/auth/tokens', undefined, undefined, { 'X-Subject-Token': token }));
  }

  /** Revokes all tokens of the user, too. */
  async setPassword(user: keyof KeystoneIds['users'], password: string): Promise<void> {
    done(await this.ask('PATCH', `/users/${this.ids.users[user]}`, { user: { password } }));
  }

  /** Ends the process; everything that it knows stays in its folder. */
  async stop(): Promise<void> {
    const ending = this.#process;
    this.#process = undefined;
    if (ending !== undefined && ending.exitCode === null) {
      const gone = once(ending, 'exit');
      ending.kill();
      await gone;
    }
  }

  /** Starts it again at the same address. */
  async restart(): Promise<void> {
    const { host } = new URL(this.url);
    // By default, a worker of a busy machine is killed when it takes longer than 30 seconds to start.
    const flags = ['--bind', host, '--workers', '1', '--timeout', '600'];
    const args = ['-m', 'gunicorn', ...flags, 'wsgi:application'];
    const child = spawn('/usr/bin/python3', args, { cwd: this.#folder, stdio: 'ignore' });
    this.#process = child;
    const answers = () =>
      fetch(this.url).then(
        ({ status }) => status === 200,
        () => false,
      );
    while (!(await answers())) {
      if (child.exitCode !== null) {
        throw new Error(`Keystone has ended: exit code ${child.exitCode}`);
      }
      await pause(50);
    }
  }

  /** Ends it and removes its folder. */
  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }
}

/** Starts one as its own script does, and stops it, with hashes of passwords that cost nothing: most of an answer's time went to them. */
async function fill(program: string, folder: string): Promise<void> {
  const run = promisify(execFile);
  try {
    await run(program, [folder]);
  } finally {
    const file = join(folder, 'keystone.pid');
    if (existsSync(file)) {
      const pid = Number(readFileSync(file, 'utf8'));
      process.kill(pid);
      while (isAlive(pid)) {
        await pause(20);
      }
    }
  }
  appendFileSync(join(folder, 'keystone.conf'), '[identity]\npassword_hash_rounds = 4\n');
  await run('/usr/bin/python3', ['-c', REHASH, join(folder, 'keystone.db')]);
}

/** Passwords are the names of their users. */
const REHASH = `import bcrypt, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
for id, name in database.execute('SELECT id, name FROM local_user').fetchall():
    hashed = bcrypt.hashpw(name.encode(), bcrypt.gensalt(4)).decode()
    database.execute('UPDATE password SET password_hash = ? WHERE local_user_id = ?', (hashed, id))
database.commit()
`;

function done({ status, body }: KeystoneAnswer): void {
  if (status >= 300) {
    throw new Error(`Keystone has not done it: ${status} ${JSON.stringify(body)}`);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
