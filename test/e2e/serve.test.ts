import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { capturedFile, confFile, projectFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { type CommandOptions, runCommand, startCommand } from '../support/run-command.ts';

const CONF = projectFile('etc/policy-service.conf');
const HAS_CURL = spawnSync('curl', ['--version']).status === 0;

async function serve(args: readonly string[], options: CommandOptions = {}) {
  const running = startCommand(['serve', ...args], options);
  onTestFinished(async () => {
    running.process.kill('SIGKILL');
    await running.ended;
  });
  const [, url = ''] = await running.printed(/^Listening on (http:\S+)\n[\s\S]*\n\n$/m);
  const post = (path: string, file: string, headers: Record<string, string> = {}) =>
    fetch(url + path, {
      method: 'POST',
      body: readFileSync(file),
      headers: { 'Content-Type': 'application/json', ...headers },
    });
  return { ...running, url, post };
}

/** The lines from `curl` to the next empty one, as somebody would mark and paste them. */
function pasted(stdout: string): string {
  return /^ *curl [\s\S]*?(?=\n\n)/m.exec(stdout)?.[0] ?? '';
}

function runInShell(line: string): string {
  return spawnSync('sh', ['-c', line], { encoding: 'utf8', timeout: 10_000 }).stdout;
}

describe('serve', () => {
  it('answers the requests of a real Blazar', async () => {
    const { post, url } = await serve(['--config-file', CONF, '--port', '0']);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await post('/check-create', capturedFile('check-create-physical-host'))).status).toBe(204);
    const rejected = await post('/v1/check-create', capturedFile('check-create-gpu-and-floating-ip'));
    expect(rejected.status).toBe(403);
    expect(await rejected.json()).toEqual({ message: expect.stringContaining('777600 seconds (9 days)') });
    expect((await post('/check-update', capturedFile('check-update-extend'))).status).toBe(403);
    expect((await post('/on-end', capturedFile('on-end-active'))).status).toBe(204);
  });

  it.skipIf(!HAS_CURL)('prints a curl line that works as it is pasted into a shell', async () => {
    const { output, url } = await serve(['--config-file', CONF, '--port', '0']);
    const line = pasted(output().stdout);
    expect(line).toContain(`${url}/check-create`);
    const answer = runInShell(line);
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(answer).toContain('{"message":"The lease is 864000 seconds (10 days) long;');
  });

  it.skipIf(!HAS_CURL)('prints a curl line that leaves room for the token, and never a token', async () => {
    const env = { OS_SERVICE__TOKENS: 's3cret,n3xt' };
    const { output } = await serve(['--config-file', CONF, '--port', '0'], { env });
    const line = pasted(output().stdout);
    expect(runInShell(line)).toMatch(/^HTTP\/1\.1 401 /);
    expect(runInShell(line.replace('YOUR-TOKEN', 'n3xt'))).toMatch(/^HTTP\/1\.1 403 /);
    expect(output().stdout + output().stderr).not.toMatch(/s3cret|n3xt/);
  });

  it('says who may ask what, and never a token', async () => {
    const policy = projectFile('examples/admin-policies/disable-public-ip-policy.js');
    const conf = confFile(
      `[service]\nport = 0\ntokens = s3cret\n[skypilot]\nadmin_policies = ${policy}#DisablePublicIpPolicy\n[kubernetes]\nscheduling_policies = ${projectFile('etc/kubernetes/policies.yaml')}\ntokens = n3xt\n`,
    );
    const { output, url } = await serve(['--config-file', conf]);
    const { stdout, stderr } = output();
    expect(stdout).toContain(
      [
        `Listening on ${url}`,
        '',
        `  Blazar      ${url}/v1/`,
        '              asks for one of [service] tokens, in the header X-Auth-Token',
        `  SkyPilot    ${url}/skypilot/admin-policy`,
        '              OPEN: everyone who reaches this address may ask',
        `  Kubernetes  ${url}/kubernetes/admission`,
        `              ${url}/kubernetes/validation`,
        '              asks for one of [kubernetes] tokens, as Authorization: Bearer, or as the last part of the path',
        '',
      ].join('\n'),
    );
    expect(stdout + stderr).not.toMatch(/s3cret|n3xt/);
  });

  it('does not start where a protocol is open to others, as config validate says', async () => {
    const conf = confFile('[service]\nport = 0\n');
    const expected = {
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /^(warning: .*\n)*error: .*\[service\] host: expected a loopback address, got 0\.0\.0\.0, where everyone may ask for leases.*\n$/,
      ),
    };
    const env = { OS_SERVICE__HOST: '0.0.0.0' };
    expect(await runCommand(['serve', '--config-file', conf, '--host', '0.0.0.0'])).toMatchObject(expected);
    expect(await runCommand(['config', 'validate', '--config-file', conf], { env })).toMatchObject(expected);
    expect(await runCommand(['config', 'validate', '--config-file', conf])).toMatchObject({ code: 0 });
  });

  it('is what npm start runs, with a configuration of the project', async () => {
    const { scripts } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    const [node, main, command, ...args] = (scripts.start as string).split(' ');
    expect([node, main, command]).toEqual(['node', 'dist/src/cli/main.js', 'serve']);
    expect(args).toEqual(['--config-file', 'etc/policy-service.conf']);
    const { url } = await serve([...args, '--port', '0'], { cwd: projectFile('.') });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it.for(['SIGTERM', 'SIGINT'] as const)('ends with 0 at %s', async (signal) => {
    const { process, ended, url } = await serve(['--config-file', CONF, '--port', '0']);
    await (await fetch(`${url}/healthz`)).text();
    process.kill(signal);
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('answers what is under way before it ends', async () => {
    const folder = filterFolder({
      'slow-filter.js': filterSource('SlowFilter', {
        create: "return new Promise((go) => setTimeout(() => go(reject('after a while')), 500));",
      }),
    });
    const { process, ended, post } = await serve([
      ...['--port', '0', '--config', `enforcement.filters_path=${folder}`],
      ...['--config', 'enforcement.enabled_filters=SlowFilter'],
    ]);
    const underWay = post('/check-create', capturedFile('check-create-physical-host'));
    await new Promise((go) => setTimeout(go, 200));
    process.kill('SIGTERM');
    const answer = await underWay;
    expect({ status: answer.status, body: await answer.json() }).toEqual({
      status: 403,
      body: { message: 'after a while' },
    });
    expect((await ended).code).toBe(0);
  });

  it('logs why a filter failed as a line of JSON, and answers in a generic sentence', async () => {
    const folder = filterFolder({
      'failing-filter.js': filterSource('FailingFilter', {
        create: "throw new Error('the quota file is gone');",
      }),
    });
    const { post, output } = await serve([
      ...['--port', '0', '--config', `enforcement.filters_path=${folder}`],
      ...['--config', 'enforcement.enabled_filters=FailingFilter'],
    ]);
    const answer = await post('/check-create', capturedFile('check-create-physical-host'));
    expect(answer.status).toBe(403);
    expect(await answer.text()).not.toContain('quota file');
    const lines = output()
      .stderr.trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toContainEqual(
      expect.objectContaining({ filter: 'FailingFilter', error: 'the quota file is gone' }),
    );
  });

  it('prints the warnings of the configuration', async () => {
    const conf = confFile('[service]\nport = 0\n[enforcement]\nmax_lease_duration = 60\n');
    const { output } = await serve(['--config-file', conf]);
    expect(output().stderr).toContain(`warning: ${conf}:4: [enforcement] max_lease_duration: has no effect`);
  });
});

describe('serve does not start', () => {
  it('on a port that is in use: one line, exit code 2', async () => {
    const { url } = await serve(['--config-file', CONF, '--port', '0']);
    const { port } = new URL(url);
    expect(await runCommand(['serve', '--config-file', CONF, '--port', port])).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: [service] cannot listen on 127.0.0.1, port ${port}: the port is in use\n`,
    });
  });

  it('with mistakes in the configuration: all of them, exit code 2', async () => {
    const conf = confFile('[service]\nprot = 1\n[enforcement]\nenabled_filters = NoFilter\n');
    const { code, stdout, stderr } = await runCommand(['serve', '--config-file', conf]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(
      `error: ${conf}:2: [service] prot: unknown option; the nearest right name is "port"`,
    );
    expect(stderr).toContain(
      `error: ${conf}:4: [enforcement] enabled_filters: there is no filter "NoFilter"`,
    );
  });

  it('with a filter that refuses its configuration: one line, exit code 2', async () => {
    const folder = filterFolder({
      'strict-filter.js': filterSource('StrictFilter', {
        extra: "constructor(options, services) { super(options, services); throw new Error('no licence'); }",
      }),
    });
    expect(
      await runCommand([
        ...['serve', '--port', '0', '--config', `enforcement.filters_path=${folder}`],
        ...['--config', 'enforcement.enabled_filters=StrictFilter'],
      ]),
    ).toEqual({
      code: 2,
      stdout: '',
      stderr: 'error: [enforcement] enabled_filters: StrictFilter could not be set up: no licence\n',
    });
  });
});
