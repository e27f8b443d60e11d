/** A real Keystone, started for a test file, and asked as an administrator and its users ask it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { peerProgram, skipAloud } from '../support/peers.ts';

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
  readonly folder: string;
  readonly ids: KeystoneIds;
  #restarted: ChildProcess | undefined;
  #adminToken: string | undefined;

  private constructor(url: string, folder: string) {
    this.url = url;
    this.folder = folder;
    this.ids = JSON.parse(readFileSync(join(folder, 'ids.json'), 'utf8')) as KeystoneIds;
  }

  /**
   * `undefined` = there is none here, which is said aloud. `tokenSeconds`: how long its tokens are valid; default 3600. Less than 30 is too short
   * for filling it: use `setTokenSeconds`. `blazarUrl`: what its catalog says of Blazar.
   */
  static start({
    tokenSeconds = 3600,
    blazarUrl,
  }: {
    tokenSeconds?: number;
    blazarUrl?: string;
  } = {}): RealKeystone | undefined {
    const program = peerProgram('KEYSTONE_PEER');
    if (program === undefined) {
      return undefined;
    }
    const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-keystone-'));
    const started = spawnSync(program, [folder], {
      encoding: 'utf8',
      env: {
        ...process.env,
        TOKEN_SECONDS: String(tokenSeconds),
        ...(blazarUrl === undefined ? {} : { BLAZAR_URL: blazarUrl }),
      },
    });
    if (started.status !== 0) {
      skipAloud('KEYSTONE_PEER', `${program} does not start: ${started.stderr.trim().slice(-300)}`);
      spawnSync(join(dirname(program), 'down.sh'), [folder]);
      rmSync(folder, { recursive: true, force: true });
      return undefined;
    }
    return new RealKeystone(started.stdout.trim().split('\n').at(-1) ?? '', folder);
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
    if (token === undefined && answer.status === 401 && this.#adminToken === shown) {
      // It has expired: nothing was done.
      this.#adminToken = undefined;
      return this.ask(method, path, body, await this.adminToken(), headers);
    }
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true;
    const parsed: unknown = isJson && text !== '' ? JSON.parse(text) : text;
    return { status: answer.status, headers: answer.headers, body: parsed };
  }

  /** Resolves to whether it was valid until now: its time may have come first. */
  async revoke(token: string): Promise<boolean> {
    const answer = await this.ask('DELETE', '/auth/tokens', undefined, undefined, {
      'X-Subject-Token': token,
    });
    if (answer.status === 404) {
      return false;
    }
    done(answer);
    return true;
  }

  /** Revokes all tokens of the user, too. */
  async setPassword(user: keyof KeystoneIds['users'], password: string): Promise<void> {
    done(await this.ask('PATCH', `/users/${this.ids.users[user]}`, { user: { password } }));
  }

  /** Ends the process; everything that it knows stays in its folder. */
  async stop(): Promise<void> {
    const pid = this.#pid();
    if (pid === undefined) {
      return;
    }
    process.kill(pid);
    while (isAlive(pid)) {
      await pause(20);
    }
    this.#restarted = undefined;
  }

  /** Starts it again at the same address. */
  async restart(): Promise<void> {
    const { host } = new URL(this.url);
    const args = [
      '-m',
      'gunicorn',
      '--bind',
      host,
      '--workers',
      '1',
      '--pid',
      'keystone.pid',
      'wsgi:application',
    ];
    const child = spawn('/usr/bin/python3', args, { cwd: this.folder, stdio: 'ignore', detached: true });
    child.unref();
    this.#restarted = child;
    for (let attempt = 0; attempt < 6000; attempt += 1) {
      const answers = await fetch(this.url).then(
        ({ status }) => status === 200,
        () => false,
      );
      if (answers) {
        return;
      }
      await pause(100);
    }
    throw new Error('Keystone does not answer ten minutes after its restart');
  }

  /** Makes its tokens valid for so long. Restarts it. */
  async setTokenSeconds(seconds: number): Promise<void> {
    const file = join(this.folder, 'keystone.conf');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^expiration = .*$/m, `expiration = ${seconds}`));
    await this.stop();
    await this.restart();
  }

  /** Ends it and removes its folder. */
  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }

  #pid(): number | undefined {
    if (this.#restarted?.pid !== undefined) {
      return this.#restarted.pid;
    }
    try {
      return Number(readFileSync(join(this.folder, 'keystone.pid'), 'utf8'));
    } catch {
      return undefined;
    }
  }
}

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
