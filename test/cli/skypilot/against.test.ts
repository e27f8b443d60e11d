import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loginIn, remoteReviewer } from '../../../src/cli/skypilot/against.ts';
import { skypilotReviewCommand } from '../../../src/cli/skypilot/review.ts';
import { decodeRequest } from '../../../src/skypilot/request/wire.ts';
import { captured, runInProcess } from '../../support/command-in-process.ts';
import { temporaryFile } from '../../support/files.ts';
import { listen } from '../../support/listening.ts';
import { refusedWith } from '../../support/run-command.ts';
import { runSkypilot } from '../../support/skypilot-service.ts';
import { tlsFixture } from '../../support/tls.ts';
import { unusedPort } from '../../support/unused-port.ts';

const task = () => temporaryFile('task.yaml', 'run: x\nsecrets: {HF_TOKEN: s3cret-value}\n');
const against = (url: string, ...more: string[]) =>
  runInProcess(skypilotReviewCommand(), [task(), '--against', url, ...more]);

/** A service with this answer. */
async function fake(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${(await listen(createServer(listener))).port}/policy`;
}

const twice = (inner: unknown) => JSON.stringify(JSON.stringify(inner));
const ANSWER = twice({ task: 'run: y\n', skypilot_config: 'active_workspace: default\n' });

it('a service of this project answers as the policies of a configuration do', async () => {
  const service = await runSkypilot(
    {
      AddPolicy: "task.resources = { ...task.resources, labels: { team: 'physics' } };",
      LimitPolicy: "if (task.num_nodes > 1) throw new PolicyRejected('at most one node; s3cret-value');",
    },
    { skypilot: { tokens: ['s3cret-token-0123456789abcdef'] } },
  );
  const url = `${service.url}/skypilot/admin-policy`;
  const name = url.padEnd(Math.max(url.length, 6));
  const allowed = await against(`${url}?token=s3cret-token-0123456789abcdef`, '--check-idempotence');
  expect(allowed).toMatchObject({ code: 0, stderr: '' });
  expect(allowed.stdout).toContain(`\n${name}  changed\n`);
  expect(allowed.stdout).toContain('+    team: physics');

  const ask = async (text: string, address: string) =>
    runInProcess(skypilotReviewCommand(), [temporaryFile('t.yaml', text), '--against', address]);
  const credentials = url.replace('//', '//user:s3cret-token-0123456789abcdef@');
  const rejected = await ask('num_nodes: 2\nsecrets: {A: s3cret-value}\n', credentials);
  expect(rejected).toMatchObject({ code: 1, stderr: '' });
  expect(rejected.stdout).toContain(`${url}  rejected  at most one node; ****\n`);

  const stranger = await ask('run: x\n', `${url}?token=s3cret-wrong`);
  expect(stranger).toMatchObject({ code: 3, stderr: '' });
  expect(stranger.stdout).toMatch(/ {2}failed {2}it answered 401/);
  for (const { stdout, stderr } of [allowed, rejected, stranger]) {
    expect(stdout + stderr).not.toMatch(/s3cret/);
  }
});

it('what is sent is what SkyPilot sends: JSON in a JSON string, with the login of .netrc before that of the address', async () => {
  const seen: { body: string; type: string | undefined; login: string; url: string | undefined }[] = [];
  const url = await fake((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const { authorization = '', 'content-type': type } = request.headers;
      const login = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString();
      seen.push({ body, type, login, url: request.url });
      response.end(ANSWER);
    });
  });
  const netrc = temporaryFile('netrc', 'machine 127.0.0.1 login a password s3cret-netrc\n');
  const address = `${url.replace('//', '//u:p%40ss@')}?token=t0ken&x=1#part`;
  const asked = (environment: Record<string, string>) =>
    captured(
      async () => {
        await skypilotReviewCommand().parseAsync([task(), '--against', address, '--user', '0a:lin'], {
          from: 'user',
        });
      },
      { env: environment },
    );
  expect((await asked({ NETRC: '/nowhere' })).code).toBe(0);
  expect((await asked({ NETRC: netrc })).code).toBe(0);
  expect(seen.map(({ login }) => login)).toEqual(['u:p@ss', 'a:s3cret-netrc']);
  expect(seen[0]).toMatchObject({ type: 'application/json', url: '/policy?token=t0ken&x=1' });
  const outer = JSON.parse(seen[0]?.body ?? '') as unknown;
  expect(typeof outer).toBe('string');
  expect(decodeRequest(outer)).toMatchObject({
    requestName: 'launch',
    user: { id: '0a', name: 'lin' },
    atClientSide: false,
  });
});

describe('an answer that is no answer', () => {
  it.for<[string, RequestListener, string]>([
    [
      'an error',
      (_, response) => response.writeHead(500).end('<html>\nboom s3cret-query'),
      'it answered 500: <html> boom ****',
    ],
    ['nothing', (_, response) => response.end(), 'its answer is not JSON'],
    [
      'JSON in no JSON',
      (_, response) => response.end('"x"'),
      'its answer cannot be used: the body: expected JSON',
    ],
    [
      'YAML that cannot be read',
      (_, response) => response.end(twice({ task: 'a: [', skypilot_config: '' })),
      'its answer cannot be used: task: expected YAML',
    ],
    [
      'a redirect',
      (_, response) => response.writeHead(301, { location: 'https://other/x?token=s3cret' }).end(),
      'it answered 301, a redirect to https://other/x: SkyPilot would follow it without the request',
    ],
    [
      'a redirect to another host',
      (_, response) => response.writeHead(308, { location: 'http://other.example/x' }).end(),
      'a redirect to http://other.example/x: the request is not sent to another host',
    ],
    [
      'a redirect with a token',
      (_, response) => response.writeHead(307, { location: '/policy' }).end(),
      '/policy: it is not followed with a token; name that address instead',
    ],
    [
      'an answer that is cut off',
      (_, response) => {
        response.writeHead(200, { 'content-length': 1000 });
        response.write('"{', () => response.destroy());
      },
      'it closed the connection without an answer',
    ],
    [
      'more than can be read',
      (_, response) => {
        response.on('error', () => {});
        response.end(Buffer.alloc(17 * 1024 * 1024, 'a'));
      },
      'the answer is longer than 16777216 bytes',
    ],
  ])('is a failure: %s', async ([, listener, message]) => {
    const { code, stdout, stderr } = await against(`${await fake(listener)}?token=s3cret-query`);
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
    expect(stdout).toMatch(/ {2}failed /);
    expect(stdout).toContain(message);
    expect(stdout).not.toContain('s3cret');
  });

  it('is a redirect, followed on the same host without a token, to an end', async () => {
    let asked = 0;
    const listener: RequestListener = (request, response) => {
      asked += 1;
      return request.url === '/policy'
        ? response.writeHead(308, { location: '/moved' }).end()
        : response.end(ANSWER);
    };
    expect(await against(await fake(listener))).toMatchObject({ code: 0, stderr: '' });
    expect(asked).toBe(2);
    const loop = await fake((_, response) => response.writeHead(307, { location: '/policy' }).end());
    expect((await against(loop)).stdout).toContain('it redirected more than 5');
  });

  it('does not carry a password to the address of a redirect', async () => {
    const seen: (string | undefined)[] = [];
    const url = await fake((request, response) => {
      seen.push(request.url);
      response.writeHead(308, { location: '/moved' }).end();
    });
    const { code, stdout } = await against(url.replace('//', '//u:s3cret-word@'));
    expect({ code, seen }).toEqual({ code: 3, seen: ['/policy'] });
    expect(stdout).toContain('it is not followed with a token');
    expect(stdout).not.toContain('s3cret');
  });

  it.for<[string, RequestListener]>([
    ['nothing', () => {}],
    ['the beginning of an answer', (_, response) => void response.writeHead(200).write('"{')],
  ])('is a failure when the time of SkyPilot is over: %s', async ([, listener]) => {
    const request = decodeRequest(JSON.stringify({ task: 'run: x\n', skypilot_config: '' }));
    const reviewer = remoteReviewer(await fake(listener), undefined, 0.2);
    onTestFinished(() => reviewer.close());
    expect(await reviewer.review(request)).toMatchObject({
      allowed: false,
      failed: true,
      message: 'no whole answer within 0.2 s',
    });
  });

  it('comes from the service itself, whatever proxy the environment names', async () => {
    const url = await fake((_, response) => response.end(ANSWER));
    const proxy = 'http://127.0.0.1:9';
    const { code } = await captured(
      async () => {
        await skypilotReviewCommand().parseAsync([task(), '--against', url], { from: 'user' });
      },
      { env: { HTTP_PROXY: proxy, http_proxy: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy } },
    );
    expect(code).toBe(0);
  });

  it('is a rejection with 400, whose text is shown on one line', async () => {
    const { code, stdout } = await against(
      await fake((_, response) => response.writeHead(400).end('no\u001b[31m\nGPUs')),
    );
    expect(code).toBe(1);
    expect(stdout).toMatch(/ {2}rejected {2}no\\u001b\[31m GPUs\n$/);
  });

  it('is named in plain words when there is no connection', async () => {
    const url = await fake(() => {});
    expect((await against(`http://127.0.0.1:${await unusedPort()}/`)).stdout).toContain(
      'nothing listens there',
    );
    expect((await against(url.replace('http:', 'https:'))).stdout).toContain('it does not speak TLS');
  });

  it('comes over TLS only from whom an authority vouches for', async () => {
    const certificate = {
      cert: readFileSync(tlsFixture('server.pem')),
      key: readFileSync(tlsFixture('server.key')),
    };
    const server = createTlsServer(certificate, (_, response) => response.end(ANSWER));
    const url = `https://127.0.0.1:${(await listen(server)).port}/`;
    expect(await against(url)).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('signed by an authority that is not trusted here; name that authority'),
    });
    expect((await against(url, '--ca-file', tlsFixture('second-ca.pem'))).code).toBe(3);
    expect(await against(url, '--ca-file', tlsFixture('ca.pem'))).toMatchObject({ code: 0, stderr: '' });
  });
});

it.for<[string[], string]>([
  [['--against', 's3cret'], '--against: expected the address in admin_policy'],
  [['--against', 'http://host/', '--config-file', 'x'], 'leave out --config-file and the like'],
  [['--against', 'http://host/', '--ca-file', '/nowhere'], '--ca-file: /nowhere: there is no such file'],
  [['--ca-file', 'x'], '--ca-file applies to --against'],
])('a mistake %s', async ([args, message]) => {
  const result = await runInProcess(skypilotReviewCommand(), [task(), ...args]);
  expect(result).toEqual(refusedWith(message));
  expect(result.stderr).not.toContain('s3cret');
});

const TEXT = `# machine h login no password no
machine h login a password "x y#z" # a comment
macdef init
machine nope login no
cd a

machine k user b account c password #x
default login d password e
`;

it.for<[string, string, string]>([
  ['h', 'a', 'x y#z'],
  ['k', 'b', '#x'],
  ['nope', 'd', 'e'],
])('reads the entry of %s', ([host, name, password]) => {
  expect(loginIn(TEXT, host)).toEqual({ name, password });
});

it('uses the account if there is no login, and finds nothing in nothing', () => {
  expect(loginIn('machine h account c password p', 'h')).toEqual({ name: 'c', password: 'p' });
  expect(loginIn('', 'h')).toBeUndefined();
  expect(loginIn('machine h', 'h')).toEqual({ name: '', password: '' });
});
