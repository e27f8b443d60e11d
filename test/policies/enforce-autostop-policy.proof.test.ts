/** EnforceAutostopPolicy for every kind of request and cluster. */
import type { ServerResponse } from 'node:http';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createSharedServices } from '../../src/enforcement/services.ts';
import { SkypilotApiServer } from '../../src/skypilot/index.ts';
import { ALLOWED, REJECTED, rejectedWith, UNCHECKED } from '../support/decisions.ts';
import { loadLibraries, startService, startUnresponsiveService } from '../support/services.ts';
import {
  type ApiServerOptions,
  type ClusterSetup,
  type Disturbance,
  resultOf,
  SkypilotApiDouble,
} from '../support/skypilot-api-server.ts';
import { askTwice, chainOf, TASK, taskWith } from './helpers.ts';

const SOON = { timeout: 120_000, interval: 5 };

beforeAll(loadLibraries, 60_000);

const up = (autostop: number): ClusterSetup => ({ name: 'c1', autostop });

/** An answer in place of that of the server. */
const at =
  (path: '/status' | '/api/get', answer: (response: ServerResponse) => void): Disturbance =>
  (response, asked) => {
    if (asked === path) {
      answer(response);
    }
    return asked === path;
  };
const atStatus = (answer: (response: ServerResponse) => void) => at('/status', answer);
const atResult = (answer: (response: ServerResponse) => void) => at('/api/get', answer);
const ending = (status: string, records: unknown) => (response: ServerResponse) =>
  void response.end(JSON.stringify(resultOf(status, records)));

async function apiServer(
  clusters: readonly ClusterSetup[],
  disturb?: Disturbance,
  options: Partial<ApiServerOptions> = {},
) {
  const server = await SkypilotApiDouble.start({ now: () => 1766, ...options });
  for (const cluster of clusters) {
    server.launch(cluster);
  }
  server.disturb = disturb;
  return server;
}

const polls = (server: SkypilotApiDouble) => server.asked.filter((one) => one === 'GET /api/get');

async function enforcing(
  clusters: readonly ClusterSetup[],
  disturb?: Disturbance,
  options: Readonly<Record<string, unknown>> = {},
) {
  const server = await apiServer(clusters, disturb);
  const chain = await chainOf(['EnforceAutostopPolicy'], {
    enforce_autostop_api_server: server.url,
    ...options,
  });
  return { server, ...chain };
}

describe('EnforceAutostopPolicy allows', () => {
  it.each([{ idleMinutesToAutostop: 30 }, { idleMinutesToAutostop: 0 }, { down: true }])(
    'a launch with autostop on the command line, without asking the server: %j',
    async (options) => {
      const { ask, server } = await enforcing([]);
      expect(await askTwice(ask, { options })).toMatchObject({ changed: false, task_: TASK });
      expect(server.asked).toEqual([]);
    },
  );

  it.each([
    '{autostop: 1h}',
    '{autostop: {idle_minutes: 0}}',
    '{any_of: [{infra: aws, autostop: 5}, {infra: gcp, autostop: 10m}]}',
  ])('a launch whose task sets it: %s', async (resources) => {
    const { ask, server } = await enforcing([]);
    await askTwice(ask, { task: taskWith(resources) });
    expect(server.asked).toEqual([]);
  });

  it.each(['launch', 'exec'])('a %s on a cluster that is up and stops already', async (name) => {
    const { ask, server } = await enforcing([up(10)]);
    await askTwice(ask, { name });
    expect(server.received[0]?.body).toMatchObject({
      cluster_names: ['c1'],
      refresh: 'AUTO',
      all_users: true,
    });
    expect(polls(server)).toHaveLength(2);
  });

  it('requests without options, and those that start no cluster', async () => {
    const { ask, server } = await enforcing([]);
    expect(await ask({ name: 'jobs.launch', options: null })).toMatchObject(ALLOWED);
    for (const name of ['validate', 'optimize', 'jobs.launch_cluster', 'serve.launch_controller']) {
      expect(await ask({ name })).toMatchObject(ALLOWED);
    }
    expect(server.asked).toEqual([]);
  });
});

describe('EnforceAutostopPolicy rejects', () => {
  const MUST_SET = expect.stringContaining('Autostop must be set: add --idle-minutes-to-autostop 30');

  it.each<[when: string, clusters: readonly ClusterSetup[]]>([
    ['there is no such cluster', []],
    ['the cluster is up without autostop', [up(-1)]],
    ['the cluster is being built without autostop', [{ ...up(-1), status: 'INIT' }]],
    ['the cluster is stopped', [{ ...up(10), status: 'STOPPED' }]],
  ])('a launch without autostop when %s', async (_when, clusters) => {
    const { ask } = await enforcing(clusters);
    expect(await ask()).toMatchObject(rejectedWith(MUST_SET));
  });

  it('a launch without autostop when only clusters with similar names have it', async () => {
    const { ask } = await enforcing([{ ...up(10), name: 'c11' }]);
    expect(await ask()).toMatchObject(rejectedWith(MUST_SET));
  });

  it('a launch without a cluster name, without asking the server', async () => {
    const { ask, server } = await enforcing([up(10)]);
    expect(await ask({ options: { clusterName: null } })).toMatchObject(rejectedWith(MUST_SET));
    expect(server.asked).toEqual([]);
  });

  it('a request with an unknown name, as a later SkyPilot may have', async () => {
    const { ask } = await enforcing([]);
    expect(await ask({ name: 'launch.v2' })).toMatchObject(rejectedWith(MUST_SET));
  });

  it('a launch whose options SkyPilot does not send', async () => {
    const { ask } = await enforcing([]);
    expect(await ask({ options: null })).toMatchObject(rejectedWith(MUST_SET));
    expect(await ask({ name: 'exec', options: null })).toMatchObject(REJECTED);
  });

  it('a dry run too', async () => {
    const { ask } = await enforcing([]);
    expect(await ask({ options: { dryrun: true } })).toMatchObject(rejectedWith(MUST_SET));
  });

  it('alternatives of which one has none', async () => {
    const { ask } = await enforcing([]);
    const task = taskWith('{any_of: [{infra: aws, autostop: 5}, {infra: gcp}]}');
    expect(await ask({ task })).toMatchObject(rejectedWith(MUST_SET));
  });

  it.each([
    ['{autostop: false}', { idleMinutesToAutostop: 5 }],
    ['{any_of: [{autostop: 5}, {autostop: false}]}', {}],
    ['{}', { idleMinutesToAutostop: -1 }],
  ])('autostop that is turned off, even if the cluster has it: %s %j', async (resources, options) => {
    const { ask } = await enforcing([up(10)]);
    expect(await ask({ task: taskWith(resources), options })).toMatchObject(
      rejectedWith('Autostop must not be turned off.'),
    );
  });

  it.each([
    ['{infra: lambda, autostop: 5}', {}],
    ['{any_of: [{infra: gcp, autostop: {down: true}}, {infra: aws, use_spot: true, autostop: 5}]}', {}],
    ['{infra: runpod}', { idleMinutesToAutostop: 5 }],
  ])(
    'autostop of a cluster that SkyPilot cannot stop, unless it is torn down: %s',
    async (resources, options) => {
      const { ask } = await enforcing([]);
      expect(await ask({ task: taskWith(resources), options })).toMatchObject(
        rejectedWith(expect.stringContaining('Autostop must tear the cluster down')),
      );
      const task = taskWith(resources.replaceAll('autostop: 5', 'autostop: {idle_minutes: 5, down: true}'));
      expect(await ask({ task, options: { idleMinutesToAutostop: 5, down: true } })).toMatchObject(ALLOWED);
    },
  );

  it('sky exec on a cluster without autostop, whatever the task says', async () => {
    const { ask } = await enforcing([up(-1)]);
    expect(await ask({ name: 'exec', task: taskWith('{autostop: 5}') })).toMatchObject(
      rejectedWith('The cluster must have autostop: set it with sky autostop.'),
    );
  });
});

describe('EnforceAutostopPolicy and its API server', () => {
  it.each(['PENDING', 'WAITING', 'RUNNING'])('ask again while the request is %s', async (unfinished) => {
    let poll = 0;
    const { ask, server } = await enforcing([up(5)], (response, path) => {
      poll += path === '/api/get' ? 1 : 0;
      return poll === 1 && atResult(ending(unfinished, null))(response, path);
    });
    expect(await ask()).toMatchObject(ALLOWED);
    expect(polls(server)).toHaveLength(2);
  });

  it('understand the header of SkyPilot before 0.10', async () => {
    const server = await apiServer([up(5)], undefined, { idHeader: 'X-Request-ID' });
    const { ask } = await chainOf(['EnforceAutostopPolicy'], { enforce_autostop_api_server: server.url });
    expect(await ask()).toMatchObject(ALLOWED);
  });

  it('work with a path and a token', async () => {
    const server = await apiServer([up(5)]);
    const { ask } = await chainOf(['EnforceAutostopPolicy'], {
      enforce_autostop_api_server: `${server.url}/`,
      enforce_autostop_api_token: 'sky_secret',
    });
    expect(await ask()).toMatchObject(ALLOWED);
    expect(server.received[0]?.headers.authorization).toBe('Bearer sky_secret');
    const behind = await startService((response) => response.writeHead(404).end());
    const other = await chainOf(['EnforceAutostopPolicy'], {
      enforce_autostop_api_server: `${behind.url}/sky/`,
    });
    expect(await other.ask()).toMatchObject({ failed: true });
    expect(behind.requests[0]?.path).toBe('/check-create/sky/status');
  });

  const failing: [what: string, disturb: Disturbance, cause: RegExp][] = [
    [
      'refuses the question',
      atStatus((response) => response.writeHead(401).end('who are you')),
      /expected 200 from the API server for POST \/status, got 401/,
    ],
    [
      'sends somewhere else',
      atStatus((response) => response.writeHead(307, { location: 'http://127.0.0.1:1/status' }).end()),
      /got 307/,
    ],
    ['drops the connection', atStatus((response) => response.destroy()), /\/status/],
    ['gives no id', atStatus((response) => response.end('null')), /no usable id/],
    [
      'gives an id that is none',
      atStatus((response) => response.writeHead(200, { 'X-Skypilot-Request-ID': '../x&y=1' }).end()),
      /no usable id/,
    ],
    [
      'has failed',
      atResult((response) =>
        response.writeHead(500).end(JSON.stringify({ detail: resultOf('FAILED', null) })),
      ),
      /got 500/,
    ],
    ...['FAILED', 'CANCELLED', 'DONE'].map((status): (typeof failing)[number] => [
      `says ${status}`,
      atResult(ending(status, [up(5)])),
      /could not determine/,
    ]),
    ['answers with a page', atResult((response) => response.end('<html>')), /unknown form/],
    ['has no result at all', atResult((response) => response.end('{"status":"SUCCEEDED"}')), /unknown form/],
    [
      'has an autostop that is no number',
      atResult(ending('SUCCEEDED', [{ name: 'c1', status: 'UP', autostop: '5' }])),
      /unknown form/,
    ],
    [
      'answers with too much',
      atResult(ending('SUCCEEDED', [{ ...up(5), handle: 'x'.repeat(2 ** 21) }])),
      /size/,
    ],
    [
      'breaks off in the middle',
      atResult((response) => {
        response.writeHead(200, { 'content-length': 9999 }).write('{"status":');
        setTimeout(() => response.destroy(), 20);
      }),
      /\/api\/get/,
    ],
  ];

  it.each(failing)('fail when it %s: the request is refused without the cause', async (...args) => {
    const [, disturb, cause] = args;
    const { ask, logger } = await enforcing([up(5)], disturb, {
      enforce_autostop_api_token: 'sky_secret',
    });
    expect(await ask()).toMatchObject({
      allowed: false,
      failed: true,
      message: 'The request could not be checked. Please try again later, or ask the operator.',
    });
    const [line] = logger.lines.filter(({ level }) => level === 'error');
    expect(line?.fields.error).toMatch(cause);
    expect(JSON.stringify(logger.lines)).not.toContain('sky_secret');
  });

  it('fail at the timeout, however slow it is', async () => {
    const slow: readonly Disturbance[] = [
      atStatus(() => {}),
      atResult(() => {}),
      atResult(ending('RUNNING', null)),
      atResult((response) => {
        const drops = setInterval(() => response.write(' '), 50);
        response.on('close', () => clearInterval(drops));
      }),
    ];
    const short = { enforce_autostop_timeout: 1 };
    const { url } = await startUnresponsiveService();
    const chains = await Promise.all([
      chainOf(['EnforceAutostopPolicy'], { enforce_autostop_api_server: url, ...short }),
      ...slow.map((disturb) => enforcing([up(5)], disturb, short)),
    ]);
    for (const answer of await Promise.all(chains.map(({ ask }) => ask()))) {
      expect(answer).toMatchObject(UNCHECKED);
    }
  });

  it('give up after twenty polls', async () => {
    const server = await apiServer([up(5)], atResult(ending('RUNNING', null)));
    const api = new SkypilotApiServer(
      { url: server.url, token: '', timeout: 20, pollPause: 0 },
      createSharedServices({}),
    );
    onTestFinished(() => api.close());
    await expect(api.cluster('c1', {})).rejects.toThrow('no result after 20 requests');
    expect(polls(server)).toHaveLength(20);
  });

  it('stop when the caller gives up', async () => {
    const server = await apiServer(
      [up(5)],
      atResult(() => {}),
    );
    const api = new SkypilotApiServer({ url: server.url, token: '', timeout: 20 }, createSharedServices({}));
    onTestFinished(() => api.close());
    const caller = new AbortController();
    const asked = api.cluster('c1', { signal: caller.signal });
    await vi.waitFor(() => expect(polls(server)).toHaveLength(1), SOON);
    caller.abort(new Error('nobody waits'));
    await expect(asked).rejects.toThrow('nobody waits');
  });
});
