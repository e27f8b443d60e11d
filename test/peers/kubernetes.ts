/** A real Kubernetes control plane, started for a test file. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { peerProgram, skipAloud } from '../support/peers.ts';
import { type ApiServerProcess, apiServerProcess } from './api-server-process.ts';
import { type CreateOptions, type Creation, objectCreator } from './created-objects.ts';

export interface Cluster extends ApiServerProcess {
  /** Its files: keys, certificates, kubeconfigs. */
  readonly folder: string;
  /** Runs kubectl as the administrator, or with the kubeconfig of somebody else. */
  kubectl(
    args: readonly string[],
    options?: { readonly stdin?: string; readonly as?: string },
  ): Promise<Answer>;
  /** As kubectl would, without a process. */
  create(object: object, options?: CreateOptions): Promise<Creation>;
  /** Applies objects. Throws where one is refused. */
  apply(objects: readonly object[]): Promise<void>;
  /** Reads what kubectl prints as JSON. Throws where it fails. */
  get(...args: readonly string[]): Promise<unknown>;
  /** A kubeconfig for a certificate of a user and a group. */
  user(name: string, group: string): string;
  stop(): void;
}

export interface Answer {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `flags`: more of them for the API server. `undefined` = there is no cluster here, which is said aloud. */
export function startCluster({ flags = '' }: { readonly flags?: string } = {}): Cluster | undefined {
  const program = peerProgram('KUBERNETES_PEER');
  if (program === undefined) {
    return undefined;
  }
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-kubernetes-'));
  const run = (command: string, args: readonly string[], stdin = ''): Answer =>
    spawnSync(command, args, {
      encoding: 'utf8',
      input: stdin,
      cwd: folder,
      env: { ...process.env, ...(flags !== '' && { EXTRA_APISERVER_FLAGS: flags }) },
      maxBuffer: 64 * 1024 * 1024,
    });
  const apiServer = apiServerProcess(folder);
  const creator = objectCreator(folder);
  const stop = () => {
    creator.close();
    // What is frozen does not end.
    apiServer.thaw();
    run(join(dirname(program), 'down.sh'), [folder]);
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  };
  const started = run(program, [folder]);
  if (started.status !== 0) {
    skipAloud('KUBERNETES_PEER', `${program} does not start: ${started.stderr.trim().slice(-300)}`);
    stop();
    return undefined;
  }
  const kubectl: Cluster['kubectl'] = (args, { stdin = '', as = join(folder, 'admin.conf') } = {}) =>
    runAside('kubectl', ['--kubeconfig', as, ...args], folder, stdin);
  const orThrow = (answer: Answer): string => {
    if (answer.status !== 0) {
      throw new Error(answer.stderr);
    }
    return answer.stdout;
  };
  return {
    ...apiServer,
    folder,
    kubectl,
    create: creator.create,
    stop,
    apply: async (objects) => {
      const list = { apiVersion: 'v1', kind: 'List', items: objects };
      const apply = () => kubectl(['apply', '--validate=false', '-f', '-'], { stdin: JSON.stringify(list) });
      let answer = await apply();
      // The cluster's controllers made the account "default" of a namespace between kubectl's look and its request: then there is one to change.
      while (answer.stderr.includes('(AlreadyExists)')) {
        answer = await apply();
      }
      orThrow(answer);
    },
    get: async (...args) => JSON.parse(orThrow(await kubectl([...args, '-o', 'json']))) as unknown,
    user: (name, group) => {
      const id = name.replaceAll(/[^a-z0-9]/g, '-');
      orThrow(run('sh', ['-euc', CERTIFICATE, 'sh', id, `/O=${group}/CN=${name}`]));
      return join(folder, `${id}.conf`);
    },
  };
}

/** Meanwhile this process can answer what the API server asks it. */
async function runAside(
  command: string,
  args: readonly string[],
  cwd: string,
  stdin: string,
): Promise<Answer> {
  const child = spawn(command, args, { cwd, stdio: 'pipe' });
  child.stdin.on('error', () => undefined).end(stdin);
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  });
  const [stdout, stderr, status] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { status, stdout, stderr };
}

const CERTIFICATE = `
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -subj "$2" -out "$1.csr" 2>/dev/null
echo extendedKeyUsage=clientAuth >"$1.ext"
openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out "$1.crt" -extfile "$1.ext" 2>/dev/null
sed "s#/admin\\.crt#/$1.crt#; s#/admin\\.key#/$1.key#" admin.conf >"$1.conf"
`;
