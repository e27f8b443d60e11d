/** etc/nginx with a real nginx: if the service is down, a real Blazar refuses the request and keeps the lease. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BLAZAR_ENDPOINTS, OWN_PATHS } from '../../src/server/own-paths.ts';
import { temporaryFile } from '../support/files.ts';
import { HAS_NGINX, nginxFile, startNginx } from '../support/nginx.ts';
import { peerProgram } from '../support/peers.ts';
import { policyServer } from '../support/policy-server.ts';
import { postJson } from '../support/post-json.ts';
import { capturedText } from '../support/requests.ts';
import { startTcpService } from '../support/services.ts';
import { unusedPort } from '../support/unused-port.ts';

const blazar = peerProgram('BLAZAR_PEER');

/** Resolves to the URL of nginx, which waits so many seconds for an answer. */
async function startProxy(policyPort: number, patience = 10): Promise<string> {
  const port = await unusedPort();
  const url = `http://127.0.0.1:${port}`;
  const file = nginxFile('policy-service.conf', [
    ['listen 127.0.0.1:8641', `listen 127.0.0.1:${port}`],
    ['server 127.0.0.1:8642', `server 127.0.0.1:${policyPort}`],
    ['proxy_read_timeout 35s', `proxy_read_timeout ${patience}s`],
  ]);
  onTestFinished(await startNginx([file], url));
  return url;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGKILL');
    await once(child, 'close');
  }
}

const ask = (url: string, headers: Record<string, string> = {}) =>
  postJson(`${url}/v1/check-create`, capturedText('check-create-physical-host.json'), headers);

/** Of a path that is sent as it is written. */
const rawStatus = (url: string, path: string) =>
  new Promise<number | undefined>((answered, failed) => {
    const { hostname, port } = new URL(url);
    request({ hostname, port, path }, (answer) => answered(answer.resume().statusCode))
      .on('error', failed)
      .end();
  });

describe.skipIf(!HAS_NGINX)('etc/nginx', () => {
  it('passes on what Blazar asks, and nothing else', async () => {
    const service = await policyServer({ status: 204 });
    const url = await startProxy(Number(new URL(service.url).port));
    const own = BLAZAR_ENDPOINTS.flatMap((name) => [`/${name}`, `/v1/${name}`]);
    const others = OWN_PATHS.filter((path) => !own.includes(path));
    const statusOf = async (path: string) => (await fetch(url + path, { redirect: 'manual' })).status;
    expect(await Promise.all(own.map(statusOf))).toEqual(own.map(() => 204));
    const passedOn = service.requests.length;
    for (const path of [
      ...others,
      '/v1/budgets',
      '/kubernetes/admission/token',
      '/v1/check-create/',
      '/V1/on-end',
    ]) {
      expect([path, await statusOf(path)]).toEqual([path, 404]);
    }
    for (const path of [
      '/check-create/../metrics',
      '/v1/%2e%2e/metrics',
      '//metrics',
      '/%6detrics',
      '/metrics?/on-end',
    ]) {
      expect([path, await rawStatus(url, path)]).toEqual([path, 404]);
    }
    expect(service.requests.length).toBe(passedOn);
  });

  it('keeps the secrets of calendars out of its logs, also while no replica answers', async () => {
    const service = await policyServer({ status: 204 });
    const port = await unusedPort();
    const [access, errors] = [temporaryFile('access.log', ''), temporaryFile('error.log', '')];
    const file = (servers: string) =>
      nginxFile('console.conf', [
        ['listen 443 ssl;', `listen 127.0.0.1:${port};`],
        ['ssl_certificate /etc/nginx/tls/server.pem;', `access_log ${access};`],
        ['ssl_certificate_key /etc/nginx/tls/server.key;', `error_log ${errors};`],
        ['server 127.0.0.1:8642 max_fails=0;', servers],
        ['server 127.0.0.1:8643 max_fails=0;', ''],
      ]);
    for (const [replica, status] of [
      [new URL(service.url).host, 204],
      [`127.0.0.1:${await unusedPort()}`, 502],
    ] as const) {
      const stop = await startNginx([file(`server ${replica};`)], `http://127.0.0.1:${port}`);
      for (const path of ['/calendars/secret.ics', '//calendars/./secret.ics', '/budgets']) {
        expect([path, await rawStatus(`http://127.0.0.1:${port}`, path)]).toEqual([path, status]);
      }
      await stop();
    }
    expect(readFileSync(access, 'utf8')).toMatch(/\/budgets.* 204 .*\/budgets.* 502 /s);
    expect(readFileSync(errors, 'utf8')).toContain('/budgets');
    expect(readFileSync(access, 'utf8') + readFileSync(errors, 'utf8')).not.toContain('secret');
  });

  it('answers 503 if the service does not listen or does not answer', async () => {
    const silent = await startTcpService(() => {});
    for (const port of [await unusedPort(), silent.port]) {
      const answer = await ask(await startProxy(port, 1));
      expect(answer.status).toBe(503);
      expect(await answer.json()).toEqual({ message: expect.stringContaining('could not be checked') });
    }
  });

  it.skipIf(blazar === undefined)('keeps leases of a real Blazar out of ERROR', async () => {
    const service = await policyServer({ status: 204 });
    const policyPort = Number(new URL(service.url).port);
    const behind = await startBlazar(await startProxy(policyPort));
    const direct = await startBlazar(service.url);
    const kept = await behind.create();
    const lost = await direct.create();
    service.server.closeAllConnections();
    service.server.close();
    expect(await behind.extend(kept)).toBe(400);
    expect(await behind.status(kept)).toBe('PENDING');
    // docs/operator.md warns of this.
    expect(await direct.extend(lost)).toBe(500);
    expect(await direct.status(lost)).toBe('ERROR');
  });
});

async function startBlazar(policy: string) {
  const child = spawn('/usr/bin/python3', [blazar ?? '', '--policy-url', `${policy}/v1/`], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  onTestFinished(() => ended(child));
  let url = '';
  for await (const line of createInterface(child.stdout)) {
    url = /^Listening on (\S+)$/.exec(line)?.[1] ?? '';
    if (url !== '') {
      break;
    }
  }
  const call = async (method: string, path: string, body?: object) => {
    const headers = {
      'X-Auth-Token': 'climate/alice',
      'Content-Type': 'application/json',
      Accept: 'application/json',
    };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const answer = await fetch(`${url}/v1/leases${path}`, init);
    return {
      status: answer.status,
      json: (await answer.json()) as { lease: { id: string; status: string } },
    };
  };
  /** In the format of Blazar's API. */
  const date = (hours: number) =>
    new Date(Date.now() + hours * 3_600_000).toISOString().slice(0, 16).replace('T', ' ');
  return {
    async create(): Promise<string> {
      const reservation = { resource_type: 'physical:host', min: 1, max: 1 };
      const reservations = [{ ...reservation, hypervisor_properties: '', resource_properties: '' }];
      const lease = { name: 'run', start_date: date(1), end_date: date(3), reservations, events: [] };
      const { status, json } = await call('POST', '', { ...lease, before_end_date: '' });
      expect(status).toBe(201);
      return json.lease.id;
    },
    extend: async (id: string) => (await call('PUT', `/${id}`, { end_date: date(4) })).status,
    status: async (id: string) => (await call('GET', `/${id}`)).json.lease.status,
  };
}
