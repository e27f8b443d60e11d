/** A small cloud on this machine: Keystone, the policy service, and a Blazar that asks it. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const COMMAND = new URL('../../dist/src/cli/main.js', import.meta.url).pathname;
const CONFIG = new URL('policy-service.conf', import.meta.url).pathname;
/** The text that this Blazar sends to the policy service. */
const POLICY_TOKEN = 'blazar-to-policy-service';
const START_MS = 60_000;

/** @typedef {{ status: number, body: any }} Answer */

export class Cloud {
  /** @type {string} */ keystoneUrl = '';
  /** @type {string} */ blazarUrl = '';
  /** @type {string} */ policyUrl = '';
  /** @type {Record<string, Record<string, string>>} */ ids = {};
  #folder;
  #peers;
  /** @type {string[]} */ #flags = [];
  /** @type {import('node:child_process').ChildProcess | undefined} */ #policy;
  /** @type {import('node:child_process').ChildProcess | undefined} */ #blazar;
  /** @type {import('node:child_process').ChildProcess | undefined} */ #keystone;
  /** User → token. @type {Map<string, string>} */
  #tokens = new Map();

  /**
   * @param {string} folder where everything is kept
   * @param {{ keystone: string, blazar: string }} peers the programs that start them
   */
  constructor(folder, peers) {
    this.#folder = folder;
    this.#peers = peers;
  }

  /** @param {Record<string, string | number>} options of the policy service, such as `blazar.reconcile_interval` */
  async start(options = {}) {
    await mkdir(this.#folder, { recursive: true });
    const file = (/** @type {string} */ name) => join(this.#folder, name);
    await writeFile(file('tokens'), `${POLICY_TOKEN}\n`, { mode: 0o600 });
    await writeFile(file('keystone-password'), 'blazar\n', { mode: 0o600 });
    const policyPort = await freePort();
    const blazarPort = await freePort();
    this.policyUrl = `http://127.0.0.1:${policyPort}`;
    this.blazarUrl = `http://127.0.0.1:${blazarPort}/v1`;
    const { stdout } = await run(this.#peers.keystone, [file('keystone')], {
      env: { ...process.env, BLAZAR_URL: this.blazarUrl },
    });
    this.keystoneUrl = stdout.trim();
    this.ids = JSON.parse(await readFile(file('keystone/ids.json'), 'utf8'));
    const values = {
      'service.port': policyPort,
      'service.tokens_file': file('tokens'),
      'keystone.auth_url': this.keystoneUrl,
      'keystone.password_file': file('keystone-password'),
      'ledger.connection': `sqlite:///${file('ledger.db')}`,
      'ledger.doubt_folder': file('doubt'),
      ...options,
    };
    this.#flags = [
      '--config-file',
      CONFIG,
      ...Object.entries(values).flatMap(([name, value]) => ['--config', `${name}=${value}`]),
    ];
    await this.command('ledger', 'upgrade');
    await this.startPolicyService();
    const blazar = spawn('/usr/bin/python3', [
      this.#peers.blazar,
      ...['--policy-url', `${this.policyUrl}/v1/`, '--policy-token', POLICY_TOKEN],
      ...['--keystone', this.keystoneUrl, '--port', String(blazarPort), '--hosts', '12'],
    ]);
    this.#blazar = blazar;
    await announced(blazar, /^Listening on /, 'Blazar');
  }

  /** A command of the policy service, with its configuration. Resolves to what it printed. */
  async command(/** @type {string[]} */ ...words) {
    const { stdout } = await run(process.execPath, [COMMAND, ...words, ...this.#flags]);
    return stdout;
  }

  async startPolicyService() {
    this.#policy = spawn(process.execPath, [COMMAND, 'serve', ...this.#flags], {
      stdio: ['ignore', 'ignore', openSync(join(this.#folder, 'policy-service.log'), 'a')],
    });
    await until(() => fetch(`${this.policyUrl}/healthz`).then(({ ok }) => ok), 'the policy service');
  }

  async stopPolicyService() {
    await stopped(this.#policy);
  }

  async stopKeystone() {
    const pid = Number(await readFile(join(this.#folder, 'keystone/keystone.pid'), 'utf8'));
    process.kill(pid);
    await until(async () => !isAlive(pid), 'the end of Keystone');
  }

  async startKeystone() {
    const { host } = new URL(this.keystoneUrl);
    const folder = join(this.#folder, 'keystone');
    const words = ['-m', 'gunicorn', '--bind', host, '--workers', '1', '--pid', 'keystone.pid'];
    this.#keystone = spawn('/usr/bin/python3', [...words, 'wsgi:application'], {
      cwd: folder,
      stdio: 'ignore',
    });
    await until(() => fetch(this.keystoneUrl).then(({ ok }) => ok), 'Keystone');
  }

  async stop() {
    await stopped(this.#blazar);
    await stopped(this.#policy);
    await this.stopKeystone().catch(() => {});
    await stopped(this.#keystone);
  }

  /** A token of a user, whose password is the name. */
  async tokenOf(/** @type {string} */ user, /** @type {string} */ project) {
    const known = this.#tokens.get(user);
    if (known !== undefined) {
      return known;
    }
    const domain = { name: 'Default' };
    const answer = await fetch(`${this.keystoneUrl}/auth/tokens`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        auth: {
          identity: { methods: ['password'], password: { user: { name: user, domain, password: user } } },
          scope: { project: { name: project, domain } },
        },
      }),
    });
    const token = answer.headers.get('x-subject-token');
    if (token === null) {
      throw new Error(`Keystone gave ${user} no token: ${answer.status} ${await answer.text()}`);
    }
    this.#tokens.set(user, token);
    return token;
  }

  /**
   * Asks Blazar as a member of the project climate does.
   * @param {string} user
   * @param {string} method
   * @param {string} path below `/v1`
   * @param {unknown} [body]
   * @returns {Promise<Answer>}
   */
  async ask(user, method, path, body) {
    const token = await this.tokenOf(user, 'climate');
    return asked(`${this.blazarUrl}${path}`, method, body, { 'x-auth-token': token });
  }

  /** What Blazar has really allocated, from its database. */
  async truth() {
    const { body } = await asked(new URL('/_truth', this.blazarUrl).href, 'GET');
    return body;
  }

  /** Has building what is reserved fail, or not. */
  async failNova(/** @type {boolean} */ nova) {
    await asked(new URL('/_fail', this.blazarUrl).href, 'POST', { nova });
  }
}

/** @returns {Promise<Answer>} */
export async function asked(
  /** @type {string} */ url,
  /** @type {string} */ method,
  /** @type {unknown} */ body = undefined,
  /** @type {Record<string, string>} */ headers = {},
) {
  const answer = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: /^[[{]/.test(text) ? JSON.parse(text) : text };
}

function isAlive(/** @type {number} */ pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function until(/** @type {() => Promise<boolean>} */ isSo, /** @type {string} */ what) {
  for (const end = Date.now() + START_MS; Date.now() < end; await pause(100)) {
    if (await isSo().catch(() => false)) {
      return;
    }
  }
  throw new Error(`${what} does not come within a minute`);
}

async function announced(
  /** @type {import('node:child_process').ChildProcessWithoutNullStreams} */ child,
  /** @type {RegExp} */ line,
  /** @type {string} */ what,
) {
  let said = '';
  child.stderr.on('data', (data) => {
    said = `${said}${data}`.slice(-2000);
  });
  for await (const text of createInterface({ input: child.stdout })) {
    if (line.test(text)) {
      child.stdout.resume();
      return;
    }
  }
  throw new Error(`${what} does not start: ${said}`);
}

async function stopped(/** @type {import('node:child_process').ChildProcess | undefined} */ child) {
  if (child !== undefined && child.exitCode === null && child.signalCode === null) {
    const gone = once(child, 'exit');
    child.kill();
    await gone;
  }
}
