/** Reads one kubeconfig as kubectl does: the current context, or a named one. */
import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { ConfigurationError, errorText } from '../../../base/errors.ts';
import { YamlDocument } from '../../../base/yaml/document.ts';
import { isMapping, type Path, YamlError } from '../../../base/yaml/tree.ts';
import { nearestName } from '../../../config/nearest.ts';
import { readTextFile, systemErrorText } from '../../../config/read-file.ts';
import { bearer, type ClusterAccess, type ExecPlugin, parseServer, tlsMistake } from './cluster-access.ts';
import { EXEC_V1, execSchema } from './exec-plugin.ts';

/** A file for hundreds of clusters has fewer. */
const MAX_TOKENS = 100_000;

const text = z.string('a string').min(1, 'a string that is not empty').nullish();
const entries = z
  .array(z.looseObject({ name: z.string('a name') }, 'a mapping with name'), 'a list')
  .nullish();

/** Validates only the clusters, users and contexts in use. Ignores unknown names, as kubectl does. */
const kubeconfigSchema = z.looseObject(
  { 'current-context': z.string('a string').nullish(), clusters: entries, users: entries, contexts: entries },
  'a mapping with clusters, users and contexts',
);

const clusterSchema = z.looseObject(
  {
    server: z.string('an address').min(1, 'an address'),
    'certificate-authority': text,
    'certificate-authority-data': text,
    'insecure-skip-tls-verify': z
      .literal(
        false,
        'nothing: whoever can answer in place of the API server could change every policy; name its certificate-authority',
      )
      .nullish(),
    'tls-server-name': text,
    'proxy-url': z.union([z.literal(''), z.null()], 'nothing: proxies are not supported').optional(),
    extensions: z.array(z.looseObject({ name: z.string('a name') }), 'a list').nullish(),
  },
  'a mapping with server',
);

/** kubectl's source of `spec.cluster.config` in an ExecCredential. */
const EXEC_EXTENSION = 'client.authentication.k8s.io/exec';

const nothing = (message: string) => z.null(message).optional();
const AS = 'nothing: impersonation is not supported; use the account itself';

const userSchema = z.looseObject(
  {
    token: text,
    tokenFile: text,
    'client-certificate': text,
    'client-certificate-data': text,
    'client-key': text,
    'client-key-data': text,
    username: text,
    password: z.string('a string').nullish(),
    exec: execSchema.nullish(),
    'auth-provider': nothing('nothing: Kubernetes has replaced it by exec'),
    as: nothing(AS),
    'as-uid': nothing(AS),
    'as-groups': nothing(AS),
    'as-user-extra': nothing(AS),
  },
  'a mapping',
);

/** In a user with `exec`, these would make the credentials ambiguous. */
const STATIC = [
  'token',
  'tokenFile',
  'client-certificate',
  'client-certificate-data',
  'client-key',
  'client-key-data',
  'username',
] as const;

const contextSchema = z.looseObject(
  { cluster: z.string('a name'), user: z.string('a name').nullish(), namespace: text },
  'a mapping with cluster',
);

/**
 * The access that a kubeconfig describes. Paths in it are relative to its folder.
 * @param context Default: its `current-context`.
 * @throws ConfigurationError with file and line. Messages contain no values of the file but names of
 * contexts, clusters, users and files.
 */
export function readKubeconfig(file: string, context?: string): ClusterAccess {
  return new Kubeconfig(file).access(context);
}

class Kubeconfig {
  readonly #file: string;
  readonly #document: YamlDocument;
  readonly #files = new Set<string>();

  constructor(file: string) {
    this.#file = file;
    this.#files.add(file);
    this.#document = this.#parseFile();
    const [repeated] = this.#document.repetitions();
    if (repeated !== undefined) {
      this.#refuse(`${repeated.name}: duplicate key`, repeated.line);
    }
  }

  access(wanted: string | undefined): ClusterAccess {
    const whole = this.#parse(kubeconfigSchema, this.#document.value, []);
    const name = wanted ?? whole['current-context'] ?? '';
    if (name === '') {
      this.#refuse('current-context: expected the name of a context');
    }
    const context = this.#entry(contextSchema, 'contexts', 'context', whole.contexts, name);
    const { value: cluster, path } = this.#entry(
      clusterSchema,
      'clusters',
      'cluster',
      whole.clusters,
      context.value.cluster,
    );
    const server = this.#at([...path, 'server'], () => parseServer(cluster.server));
    const user =
      context.value.user === undefined || context.value.user === null || context.value.user === ''
        ? undefined
        : this.#entry(userSchema, 'users', 'user', whole.users, context.value.user);
    const tls = {
      ca: this.#pem(cluster, path, 'certificate-authority'),
      cert: user && this.#pem(user.value, user.path, 'client-certificate'),
      key: user && this.#pem(user.value, user.path, 'client-key'),
      servername: cluster['tls-server-name'] ?? undefined,
    };
    const mistake = tlsMistake(tls);
    if (mistake !== undefined) {
      this.#problem(mistake.includes('client') && user !== undefined ? user.path : path, mistake);
    }
    return {
      ...server,
      tls,
      authorization: user && this.#authorization(user.value, user.path),
      namespace: context.value.namespace ?? undefined,
      files: [...this.#files],
      exec: user && this.#exec(user.value, user.path, { ...cluster, ca: tls.ca }),
    };
  }

  #exec(
    { exec, ...user }: z.infer<typeof userSchema>,
    path: Path,
    cluster: z.infer<typeof clusterSchema> & { readonly ca: string | undefined },
  ): ExecPlugin | undefined {
    if (exec === undefined || exec === null) {
      return undefined;
    }
    const at = [...path, 'exec'];
    const other = STATIC.find((name) => typeof user[name] === 'string');
    if (other !== undefined) {
      this.#problem([...path, other], 'expected nothing, because the credentials come from exec');
    }
    if (exec.apiVersion === EXEC_V1 && typeof exec.interactiveMode !== 'string') {
      this.#problem(at, `expected interactiveMode too: Never or IfAvailable; ${EXEC_V1} needs it`);
    }
    const { command, args, env, installHint, apiVersion } = exec;
    const isPath = /[\\/]/.test(command);
    return {
      apiVersion,
      args: args ?? [],
      env: env ?? [],
      installHint: installHint || undefined,
      // As in kubectl, a name without a slash is not searched beside the kubeconfig.
      command: isPath ? resolve(dirname(this.#file), command) : command,
      cluster: exec.provideClusterInfo === true ? clusterInfo(cluster) : undefined,
      place: `${this.#file}:${this.#document.lineOf(at)}`,
    };
  }

  /** As in kubectl, a tokenFile wins over a token, since it may be renewed. */
  #authorization(user: z.infer<typeof userSchema>, path: Path): string | undefined {
    const { token, tokenFile, username, password } = user;
    const hasToken = typeof token === 'string' || typeof tokenFile === 'string';
    if (hasToken && typeof username === 'string') {
      this.#problem([...path, 'username'], 'expected nothing, because a token is set too');
    }
    if (typeof tokenFile === 'string') {
      return this.#at([...path, 'tokenFile'], () => bearer(this.#read(tokenFile).trim()));
    }
    if (typeof token === 'string') {
      return this.#at([...path, 'token'], () => bearer(token));
    }
    return typeof username === 'string'
      ? `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}`
      : undefined;
  }

  /** The text of `NAME-data`, or of the file in `NAME`. As in kubectl, the data wins. */
  #pem(values: Readonly<Record<string, unknown>>, path: Path, name: string): string | undefined {
    const { [`${name}-data`]: data, [name]: file } = values;
    if (typeof data === 'string') {
      return this.#at([...path, `${name}-data`], () => fromBase64(data));
    }
    return typeof file === 'string' ? this.#at([...path, name], () => this.#read(file)) : undefined;
  }

  #parseFile(): YamlDocument {
    try {
      return YamlDocument.parse(readTextFile(this.#file), MAX_TOKENS);
    } catch (thrown) {
      const yaml = thrown instanceof YamlError ? thrown : undefined;
      return this.#refuse(yaml?.reason ?? `could not be read: ${errorText(thrown)}`, yaml?.line);
    }
  }

  #read(named: string): string {
    const path = resolve(dirname(this.#file), named.replace(/^~(?=\/)/, homedir()));
    this.#files.add(path);
    try {
      return readTextFile(path);
    } catch (thrown) {
      throw new Error(`${path}: could not be read: ${systemErrorText(thrown)}`);
    }
  }

  #entry<Schema extends z.ZodType>(
    schema: Schema,
    list: 'clusters' | 'users' | 'contexts',
    kind: 'cluster' | 'user' | 'context',
    all: z.infer<typeof entries>,
    name: string,
  ): { readonly value: z.infer<Schema>; readonly path: Path } {
    const known = (all ?? []).map((entry) => entry.name);
    // As in kubectl, which reads them into a map, the first of a name counts.
    const index = known.indexOf(name);
    if (index === -1) {
      this.#problem([list], `there is no ${kind} ${JSON.stringify(name)}${nearestName(name, known)}`);
    }
    const path = [list, index, kind];
    return { path, value: this.#parse(schema, all?.[index]?.[kind], path) };
  }

  #parse<Schema extends z.ZodType>(schema: Schema, value: unknown, path: Path): z.infer<Schema> {
    const parsed = schema.safeParse(value);
    if (parsed.success) {
      return parsed.data;
    }
    const [issue] = parsed.error.issues;
    const at = [...path, ...((issue?.path ?? []) as Path)];
    return this.#problem(at, `expected ${issue?.message}${isMapping(value) ? '' : ', got something else'}`);
  }

  #at<Result>(path: Path, work: () => Result): Result {
    try {
      return work();
    } catch (thrown) {
      return this.#problem(path, errorText(thrown));
    }
  }

  #problem(path: Path, message: string): never {
    const field = path.filter((step) => typeof step === 'string').at(-1);
    return this.#refuse(field === undefined ? message : `${field}: ${message}`, this.#document.lineOf(path));
  }

  #refuse(message: string, line?: number): never {
    const file = this.#file;
    throw new ConfigurationError([
      line === undefined
        ? { severity: 'error', message: `${file}: ${message}` }
        : { severity: 'error', origin: { kind: 'file', file, line }, message },
    ]);
  }
}

/** `spec.cluster` of the ExecCredential that a program gets. */
function clusterInfo({
  server,
  ca,
  'tls-server-name': name,
  extensions,
}: z.infer<typeof clusterSchema> & { readonly ca: string | undefined }): Record<string, unknown> {
  const config = extensions?.find((one) => one.name === EXEC_EXTENSION)?.extension;
  return {
    server,
    ...(typeof name === 'string' && { 'tls-server-name': name }),
    ...(ca !== undefined && { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
    ...(config !== undefined && { config }),
  };
}

function fromBase64(data: string): string {
  const bare = data.replaceAll(/\s/g, '');
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(bare)) {
    throw new Error('expected base64');
  }
  return Buffer.from(bare, 'base64').toString('utf8');
}
