/**
 * Credentials from the program in a kubeconfig (client.authentication.k8s.io): `aws eks get-token`,
 * `gke-gcloud-auth-plugin`, `kubelogin`. It is started without a shell and a terminal, with bounded time and
 * output.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { codeOf, errorText } from '../../../base/errors.ts';
import { GrowingBuffer, wholeOf } from '../../../base/growing-buffer.ts';
import type { Logger } from '../../../base/logger.ts';
import { withoutSecrets } from '../../../base/visible-text.ts';
import { showText } from '../../../config/secret.ts';
import { bounded } from '../api/connections.ts';
import { ApiUnreachableError } from '../api/contract.ts';
import { bearer, type ExecPlugin, tlsMistake } from './cluster-access.ts';

export const EXEC_V1 = 'client.authentication.k8s.io/v1';
const EXEC_V1BETA1 = 'client.authentication.k8s.io/v1beta1';

/** `users[].user.exec` of a kubeconfig. */
export const execSchema = z.looseObject(
  {
    apiVersion: z.enum([EXEC_V1, EXEC_V1BETA1], `${EXEC_V1} or ${EXEC_V1BETA1}`),
    command: z.string('a program').min(1, 'a program'),
    args: z.array(z.string('a string'), 'a list of strings').nullish(),
    env: z
      .array(
        z.looseObject({ name: z.string('a name').min(1, 'a name'), value: z.string('a string') }),
        'a list of mappings with name and value',
      )
      .nullish(),
    installHint: z.string('a string').nullish(),
    provideClusterInfo: z.boolean('true or false').nullish(),
    interactiveMode: z
      .enum(['Never', 'IfAvailable'], 'Never or IfAvailable, because the program cannot ask a user')
      .nullish(),
  },
  'a mapping with apiVersion and command',
);

export interface ExecCredential {
  readonly authorization: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** Milliseconds since 1970. `undefined` = usable until the API server refuses it. */
  readonly expiresAt: number | undefined;
}

interface ExecOptions {
  readonly signal: AbortSignal;
  /** For what the program writes to standard error. */
  readonly logger: Pick<Logger, 'info' | 'warn'> | undefined;
  /** Default: 30000. */
  readonly timeoutMs?: number | undefined;
}

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 256 * 1024;
/** They may contain secrets of the service, which the program must not get. */
const OWN_VARIABLE = /^(BLAZAR_ENFORCEMENT_|OS_\w+?__)/;

const credentialSchema = z.object({
  apiVersion: z.string(),
  kind: z.literal('ExecCredential'),
  status: z.object({
    token: z.string().nullish(),
    clientCertificateData: z.string().nullish(),
    clientKeyData: z.string().nullish(),
    expirationTimestamp: z.string().nullish(),
  }),
});

/** Runs the program once. @throws ApiUnreachableError with the place in the kubeconfig, without any output */
export async function execCredential(plugin: ExecPlugin, options: ExecOptions): Promise<ExecCredential> {
  const { command, installHint, place } = plugin;
  try {
    return parseCredential(plugin.apiVersion, await run(plugin, options));
  } catch (thrown) {
    const isMissing = ['ENOENT', 'EACCES'].includes(codeOf(thrown));
    const what = isMissing ? 'there is no such program, or it may not be run' : errorText(thrown);
    const hint = isMissing && installHint !== undefined ? `; ${bounded(installHint)}` : '';
    throw new ApiUnreachableError(`${place}: exec: ${showText(command)}: ${what}${hint}`);
  }
}

/** Its standard output. */
async function run(
  plugin: ExecPlugin,
  { signal, logger, timeoutMs = TIMEOUT_MS }: ExecOptions,
): Promise<string> {
  // In its own process group, so that its child processes end with it.
  const child = spawn(plugin.command, plugin.args, {
    env: environmentOf(plugin),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let stopped: string | undefined;
  const stop = (why: string) => {
    stopped ??= why;
    endGroup(child.pid);
    child.stdout.destroy();
    child.stderr.destroy();
  };
  const close = () => stop('the client was closed');
  const timer = setTimeout(() => stop(`no credential within ${timeoutMs / 1000} s`), timeoutMs);
  signal.addEventListener('abort', close, { once: true });
  const complaints = beginningOf(child.stderr);
  try {
    const ended = once(child, 'exit') as Promise<[number | null, string | null]>;
    const tooLong = () => new Error(`its output is longer than ${MAX_BYTES} bytes`);
    const whole = wholeOf(child.stdout, MAX_BYTES, tooLong);
    const [output, [code, endedBy]] = await Promise.all([whole, ended, complaints]);
    if (code !== 0) {
      throw new Error(code === null ? `it was ended by ${endedBy}` : `it ended with exit code ${code}`);
    }
    return output.toString('utf8');
  } catch (thrown) {
    const why = stopped === undefined ? thrown : new Error(stopped);
    stop(errorText(thrown));
    throw why;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', close);
    const stderr = shownOutput(await complaints, plugin);
    if (stderr !== '') {
      const fields = { kubeconfig: plugin.place, command: plugin.command, stderr };
      const message = 'the credential plugin of the kubeconfig wrote to standard error';
      logger?.[stopped === undefined ? 'info' : 'warn'](fields, message);
    }
  }
}

function environmentOf({ apiVersion, env, cluster }: ExecPlugin): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !OWN_VARIABLE.test(name));
  const spec = { interactive: false, ...(cluster !== undefined && { cluster }) };
  return {
    ...Object.fromEntries(inherited),
    ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
    KUBERNETES_EXEC_INFO: JSON.stringify({ kind: 'ExecCredential', apiVersion, spec }),
  };
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) {
      process.kill(-pid, 'SIGKILL');
    }
  } catch {
    // It has ended.
  }
}

/** Keeps reading longer output: a program would wait forever if no one read it. */
async function beginningOf(stream: Readable): Promise<string> {
  const output = new GrowingBuffer();
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      output.push(chunk.subarray(0, MAX_BYTES - output.length));
    }
  } catch {
    // The program was terminated.
  }
  return output.bytes.toString('utf8');
}

/**
 * On one line. Failing plugins print requests and answers: hides long words that could be tokens, and values
 * of secret names.
 */
function shownOutput(text: string, { env }: ExecPlugin): string {
  const secrets = env.filter(({ name }) => /secret|token|password|key/i.test(name));
  return bounded(
    withoutSecrets(
      text,
      secrets.map(({ value }) => value),
    )
      .replace(/-----BEGIN[\s\S]*?(-----END[^\n]*|$)/g, '****')
      .replace(/((?:secret|token|password|key)\w*["']?\s*[:=]\s*["']?)[^\s"',}]+/gi, '$1****')
      .replace(/[\w.~+=-]{40,}/g, '****')
      .trim(),
  );
}

function parseCredential(apiVersion: string, output: string): ExecCredential {
  const { status } = parseOutput(apiVersion, output);
  const token = status.token || undefined;
  const cert = status.clientCertificateData || undefined;
  const key = status.clientKeyData || undefined;
  if (token === undefined && cert === undefined && key === undefined) {
    throw new Error('its answer has neither a token nor a client certificate');
  }
  const mistake = tlsMistake({ ca: undefined, cert, key, servername: undefined });
  if (mistake !== undefined) {
    throw new Error(mistake);
  }
  const expiresAt = Date.parse(status.expirationTimestamp ?? '');
  if (Number.isNaN(expiresAt) && typeof status.expirationTimestamp === 'string') {
    throw new Error('expirationTimestamp: expected a time such as 2026-01-31T12:00:00Z');
  }
  return {
    cert,
    key,
    authorization: token === undefined ? undefined : bearer(token),
    expiresAt: Number.isNaN(expiresAt) ? undefined : expiresAt,
  };
}

function parseOutput(apiVersion: string, output: string): z.infer<typeof credentialSchema> {
  try {
    const parsed = credentialSchema.parse(JSON.parse(output));
    if (parsed.apiVersion === apiVersion) {
      return parsed;
    }
  } catch {
    // Its message could show what was read.
  }
  throw new Error(`its output is not an ExecCredential of ${apiVersion}`);
}
