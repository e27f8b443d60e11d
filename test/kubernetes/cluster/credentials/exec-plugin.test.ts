import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type ApiClientOptions, createApiClient } from '../../../../src/kubernetes/cluster/api/api-client.ts';
import { REVIEWS_PATH } from '../../../../src/kubernetes/cluster/live/access-review.ts';
import { type ApiServerDouble, startApiServerDouble } from '../../../support/api-server-double.ts';
import { recordingLogger } from '../../../support/logger.ts';
import { tlsFixture } from '../../../support/tls.ts';
import { stoppedClocks } from '../stopped-clocks.ts';

const review = { method: 'POST', path: REVIEWS_PATH, body: { spec: {} } } as const;

const V1 = 'client.authentication.k8s.io/v1';
const V1BETA1 = 'client.authentication.k8s.io/v1beta1';

/** What a plugin prints. */
function credential(status: object, apiVersion = V1BETA1): string {
  return JSON.stringify({ kind: 'ExecCredential', apiVersion, status });
}

interface Plugin {
  /** Lines of `sh`. `$dir` is the folder of the kubeconfig, and each run adds a line to `$dir/runs`. */
  readonly script: string;
  readonly exec?: Readonly<Record<string, unknown>>;
  readonly cluster?: Readonly<Record<string, unknown>>;
  readonly options?: ApiClientOptions;
}

/** A client whose kubeconfig names a real program beside it. */
async function pluggedIn({ script, exec = {}, cluster = {}, options = {} }: Plugin) {
  const server = await startApiServerDouble();
  const kubeconfig = server.kubeconfig();
  const folder = dirname(kubeconfig);
  writeFileSync(join(folder, 'log-in'), `#!/bin/sh\ndir='${folder}'\necho run >>"$dir/runs"\n${script}\n`);
  chmodSync(join(folder, 'log-in'), 0o755);
  const written = JSON.parse(readFileSync(kubeconfig, 'utf8'));
  written.users[0].user = { exec: { apiVersion: V1BETA1, command: './log-in', ...exec } };
  Object.assign(written.clusters[0].cluster, cluster);
  writeFileSync(kubeconfig, JSON.stringify(written));
  const logger = recordingLogger();
  const client = createApiClient({ kubeconfig, timeoutMs: 30_000, logger, ...options });
  onTestFinished(() => client.close());
  const runs = () => (existsSync(join(folder, 'runs')) ? readFileSync(join(folder, 'runs'), 'utf8') : '');
  return {
    server,
    client,
    folder,
    kubeconfig,
    logger,
    ask: () => client.request(review),
    runs: () => runs().split('\n').length - 1,
  };
}

function sent({ requests }: ApiServerDouble): (string | undefined)[] {
  return requests.map(({ authorization }) => authorization);
}

describe('a credential plugin of a kubeconfig', () => {
  it.each([V1, V1BETA1])(
    'gives the token, by %s, and runs once for calls at the same time',
    async (version) => {
      const { server, ask, runs } = await pluggedIn({
        script: `echo '${credential({ token: 'token' }, version)}'`,
        exec: { apiVersion: version, interactiveMode: 'Never' },
      });
      await Promise.all([ask(), ask(), ask()]);
      expect(sent(server)).toEqual(Array(3).fill('Bearer token'));
      expect(runs()).toBe(1);
    },
  );

  it('gets its arguments as they are, its variables, and what it may know of the cluster, but no terminal and no option of the service', async () => {
    vi.stubEnv('OS_ENFORCEMENT__TOKEN', 's3cret');
    vi.stubEnv('OS_AUTH_URL', 'https://keystone.example');
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const { ask, folder, server } = await pluggedIn({
      script: `printf '%s\\n' "$@" >"$dir/arguments"; printf %s "$KUBERNETES_EXEC_INFO" >"$dir/info"
printf '%s\\n' "$REGION" "$OS_AUTH_URL" "$OS_ENFORCEMENT__TOKEN" >"$dir/variables"; cat >"$dir/input"
echo '${credential({ token: 'token' })}'`,
      exec: {
        args: ['$(touch "$dir/shell")', '; exit 1', ''],
        env: [{ name: 'REGION', value: 'a b' }],
        provideClusterInfo: true,
      },
      cluster: {
        'tls-server-name': 'localhost',
        extensions: [
          { name: 'other', extension: 1 },
          { name: 'client.authentication.k8s.io/exec', extension: { audience: 'x' } },
        ],
      },
    });
    await ask();
    const written = (name: string) => readFileSync(join(folder, name), 'utf8');
    expect(written('arguments')).toBe('$(touch "$dir/shell")\n; exit 1\n\n');
    expect(existsSync(join(folder, 'shell'))).toBe(false);
    expect(written('variables')).toBe('a b\nhttps://keystone.example\n\n');
    expect(written('input')).toBe('');
    expect(JSON.parse(written('info'))).toEqual({
      kind: 'ExecCredential',
      apiVersion: V1BETA1,
      spec: {
        interactive: false,
        cluster: {
          server: server.url,
          'tls-server-name': 'localhost',
          'certificate-authority-data': readFileSync(tlsFixture('ca.pem')).toString('base64'),
          config: { audience: 'x' },
        },
      },
    });
  });

  it('is run again shortly before its token expires, and not earlier', async () => {
    const clocks = stoppedClocks();
    const expirationTimestamp = new Date(Date.now() + 60_000).toISOString();
    const { server, ask, runs } = await pluggedIn({
      script: `echo '${credential({ token: 'token', expirationTimestamp })}'`,
    });
    await ask();
    clocks.advance(45_000);
    await ask();
    expect(runs()).toBe(1);
    clocks.advance(10_001);
    await ask();
    await expect.poll(runs).toBe(2);
    expect(sent(server)).toEqual(Array(3).fill('Bearer token'));
  });

  it('leaves a token in use until it expires while it runs or fails, and fails the calls afterwards until it works again', async () => {
    const clocks = stoppedClocks();
    const expirationTimestamp = new Date(Date.now() + 60_000).toISOString();
    const { server, ask, folder, logger, kubeconfig } = await pluggedIn({
      script: `while [ -e "$dir/slow" ]; do sleep 0.05; done
[ -e "$dir/broken" ] && exit 3
echo '${credential({ token: 'token', expirationTimestamp })}'`,
    });
    await ask();
    writeFileSync(join(folder, 'broken'), '');
    writeFileSync(join(folder, 'slow'), '');
    clocks.advance(55_000);
    await ask();
    expect(sent(server)).toHaveLength(2);
    rmSync(join(folder, 'slow'));
    const problem = `${kubeconfig}:1: exec: "${folder}/log-in": it ended with exit code 3`;
    const warning = expect.objectContaining({ level: 'warn', fields: { problem } });
    await expect.poll(() => logger.lines).toContainEqual(warning);
    clocks.advance(5_001);
    await expect(ask()).rejects.toMatchObject({
      name: 'ApiUnreachableError',
      message: expect.stringContaining('it ended with exit code 3'),
    });
    await expect(ask()).rejects.toThrow('it ended with exit code 3');
    expect(sent(server)).toHaveLength(2);
  });

  it('is run once more when the API server refuses its token, and not for each call that is refused', async () => {
    const clocks = stoppedClocks();
    const { server, ask, runs } = await pluggedIn({
      script: `[ "$(wc -l <"$dir/runs")" -eq 1 ] && token=old || token=token
echo '${credential({ token: 'TOKEN' })}' | sed "s/TOKEN/$token/"`,
    });
    await ask();
    expect(sent(server)).toEqual(['Bearer old', 'Bearer token']);
    server.tokens.clear();
    for (let call = 0; call < 5; call += 1) {
      await expect(ask()).rejects.toMatchObject({ name: 'ApiError', status: 401 });
    }
    expect(runs()).toBe(2);
    clocks.advance(10_001);
    await expect(ask()).rejects.toMatchObject({ status: 401 });
    expect(runs()).toBe(3);
  });

  it('is named with what is missing and how to install it', async () => {
    const { ask, kubeconfig } = await pluggedIn({
      script: '',
      exec: { command: 'no-such-plugin', installHint: 'Install it\nfrom https://plugins.example' },
    });
    await expect(ask()).rejects.toThrow(
      `${kubeconfig}:1: exec: "no-such-plugin": there is no such program, or it may not be run; Install it from https://plugins.example`,
    );
  });

  it.each<[what: string, script: string, message: string]>([
    ['fails', 'exit 7', 'it ended with exit code 7'],
    ['is killed', 'kill -9 $$', 'it was ended by SIGKILL'],
    ['prints no end of output', 'yes', 'its output is longer than 262144 bytes'],
    ['prints a bare token', 'echo s3cret', `its output is not an ExecCredential of ${V1BETA1}`],
    ['answers by another version', `echo '${credential({ token: 's3cret' }, V1)}'`, 'its output is not an'],
    ['gives nothing', `echo '${credential({ token: '' })}'`, 'its answer has neither a token nor a client'],
    ['gives half a certificate', `echo '${credential({ clientKeyData: 's3cret' })}'`, 'a client key without'],
    ['gives two tokens', `echo '${credential({ token: 's3cret s3cret' })}'`, 'expected a token: ASCII'],
    [
      'gives no time as end',
      `echo '${credential({ token: 's3cret', expirationTimestamp: 'soon' })}'`,
      'expirationTimestamp: expected a time such as',
    ],
  ])('that %s is an error without secrets', async (_what, script, message) => {
    const { ask, server, logger } = await pluggedIn({ script });
    const error = await ask().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'ApiUnreachableError', message: expect.stringContaining(message) });
    expect(JSON.stringify([String(error), logger.lines])).not.toContain('s3cret');
    expect(server.requests).toEqual([]);
  });

  it('that hangs is ended with everything that it has started', async () => {
    const { ask, folder } = await pluggedIn({
      script: 'sleep 600 & echo $! >"$dir/child"; echo $$ >"$dir/parent"; wait',
      options: { execTimeoutMs: 1_000 },
    });
    await expect(ask()).rejects.toThrow('no credential within 1 s');
    await vi.waitFor(() => {
      for (const name of ['parent', 'child']) {
        expect(isRunning(Number(readFileSync(join(folder, name), 'utf8')))).toBe(false);
      }
    });
  });

  it('keeps no call longer than the call may take, and ends with the client', async () => {
    const { ask, client, folder } = await pluggedIn({
      script: 'echo $$ >"$dir/parent"; exec sleep 600',
      options: { timeoutMs: 50 },
    });
    await expect(ask()).rejects.toThrow(/: no answer within 0\.05 s$/);
    await vi.waitFor(() => expect(existsSync(join(folder, 'parent'))).toBe(true), { timeout: 120_000 });
    await vi.waitFor(() => expect(readFileSync(join(folder, 'parent'), 'utf8')).not.toBe(''));
    await client.close();
    const pid = Number(readFileSync(join(folder, 'parent'), 'utf8'));
    await vi.waitFor(() => expect(isRunning(pid)).toBe(false));
  });

  it('has what it writes to standard error logged, without secrets', async () => {
    const jwt = `eyJhbGciOiJIUzI1NiJ9.${'abcDEF123_-'.repeat(5)}`;
    const { ask, logger } = await pluggedIn({
      script: `echo "SSO session expired; token: s3cret, AWS_KEY=$AWS_KEY got $AWS_KEY" >&2
echo 'sent ${jwt} to https://me:hunter2@sso.example' >&2; exit 1`,
      exec: { env: [{ name: 'AWS_KEY', value: 'hunter3' }] },
    });
    await expect(ask()).rejects.toThrow('it ended with exit code 1');
    const [line] = logger.lines.filter(({ fields }) => 'stderr' in fields);
    expect(line).toMatchObject({ level: 'warn', fields: { command: expect.stringMatching(/\/log-in$/) } });
    expect(line?.fields.stderr).toBe(
      'SSO session expired; token: ****, AWS_KEY=**** got **** sent **** to https://****@sso.example',
    );
  });
});

/** A child that has ended and that nobody has waited for is not running. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
