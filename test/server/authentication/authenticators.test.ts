/** Who may ask what: each protocol has its own way to be sure. */
import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { PodAdmission } from '../../../src/kubernetes/admission/pod-admission.ts';
import { temporaryFile } from '../../support/files.ts';
import {
  ADMISSION,
  creating,
  type KubernetesService,
  type KubernetesSettings,
  policiesForAll,
  runKubernetes,
  VALIDATION,
} from '../../support/kubernetes-service.ts';
import { postHead } from '../../support/raw-http.ts';
import { runServiceOf, runServiceOnFile, type ServiceAnswer } from '../../support/running-service.ts';
import { body } from '../../support/skypilot.ts';
import { PATH, runSkypilot } from '../../support/skypilot-service.ts';

const OF_LEASES = 'of-leases-0123456789abcdef';
const TOKEN = '0123abcd-path-token';
const REVIEW = creating();
const POLICIES = policiesForAll({ everything: { allowed: { schedulerNames: [] } } });
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const basic = (pair: string) => ({ Authorization: `Basic ${Buffer.from(pair).toString('base64')}` });
const guarded = (settings: KubernetesSettings = {}) =>
  runKubernetes(POLICIES, {
    service: { tokens: [OF_LEASES] },
    ...settings,
    kubernetes: settings.kubernetes ?? { tokens: [TOKEN, 'n3xt-0123456789abcdef'] },
  });
const statusAt = async ({ post }: KubernetesService, path: string, headers = {}) =>
  (await post(path, REVIEW, headers)).status;

describe('[kubernetes] tokens', () => {
  it('are asked for at both paths, though the service has tokens of its own', async () => {
    const running = await guarded();
    const expected = {
      status: 401,
      json: { message: 'expected a valid token as Authorization: Bearer, or as the last part of the path' },
    };
    for (const path of [ADMISSION, VALIDATION]) {
      expect(await running.post(path, REVIEW), path).toMatchObject(expected);
      expect(await running.post(path, REVIEW, { 'X-Auth-Token': OF_LEASES })).toMatchObject(expected);
      expect(await running.post(path, REVIEW, { 'X-Auth-Token': TOKEN })).toMatchObject(expected);
      expect(await running.post(path, REVIEW, bearer(OF_LEASES))).toMatchObject(expected);
    }
    expect((await running.post('/check-create', {}, { 'X-Auth-Token': TOKEN })).status).toBe(401);
    expect((await running.post('/check-create', {}, bearer(TOKEN))).status).toBe(401);
  });

  it('come as a bearer token, from the kubeconfig for webhooks', async () => {
    const running = await guarded();
    for (const right of [
      bearer(TOKEN),
      bearer('n3xt-0123456789abcdef'),
      { Authorization: `bearer  ${TOKEN}` },
    ]) {
      expect(await statusAt(running, `${ADMISSION}?timeout=5s`, right)).toBe(200);
      expect(await statusAt(running, VALIDATION, right)).toBe(200);
    }
    for (const Authorization of [
      '',
      'Bearer',
      'Bearer ',
      TOKEN,
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(1)}`,
      `Basic ${TOKEN}`,
      `Bearer ${TOKEN} n3xt-0123456789abcdef`,
      'Bearer __proto__',
    ]) {
      expect(await statusAt(running, ADMISSION, { Authorization }), Authorization).toBe(401);
    }
  });

  it('come as the last part of the path, where an API server has no kubeconfig for webhooks', async () => {
    const running = await guarded();
    for (const right of [
      `${ADMISSION}/${TOKEN}`,
      `${ADMISSION}/n3xt-0123456789abcdef?timeout=5s`,
      `${VALIDATION}/${TOKEN}`,
    ]) {
      expect(await statusAt(running, right), right).toBe(200);
    }
    for (const wrong of [`${TOKEN}x`, OF_LEASES, TOKEN.toUpperCase(), '__proto__', 'undefined', '%00']) {
      expect(await statusAt(running, `${ADMISSION}/${wrong}`), wrong).toBe(401);
    }
    for (const nowhere of [
      `${ADMISSION}/`,
      `${ADMISSION}//${TOKEN}`,
      `${ADMISSION}/${TOKEN}/`,
      `${ADMISSION}/x/${TOKEN}`,
      `/kubernetes/${TOKEN}`,
      `/kubernetes/${TOKEN}/admission`,
      `${ADMISSION}${TOKEN}`,
      `/Kubernetes/admission/${TOKEN}`,
    ]) {
      expect(await statusAt(running, nowhere), nowhere).toBe(404);
    }
    // As a query parameter the API server would refuse it.
    expect(await statusAt(running, `${ADMISSION}?token=${TOKEN}`)).toBe(401);
  });

  it('are looked at before the body, and before anything is decided', async () => {
    const { request, raw } = await guarded();
    expect(await raw(`${postHead(ADMISSION, 999)}{`)).toMatch(/^HTTP\/1\.1 401 /);
    expect((await request('/metrics')).text).not.toMatch(/decisions_total\{operation="kubernetes/);
  });

  it('without them, what stands behind the path leads nowhere', async () => {
    const running = await runKubernetes(POLICIES);
    expect(await statusAt(running, ADMISSION)).toBe(200);
    expect(await statusAt(running, `${ADMISSION}/${TOKEN}`)).toBe(404);
  });
});

describe('a token in a path', () => {
  it('reaches no answer, log, metric or decision', async () => {
    const log = temporaryFile('decisions.jsonl', '');
    const running = await guarded({ service: { decision_log: log, log_level: 'debug' } });
    vi.spyOn(PodAdmission.prototype, 'admit').mockImplementationOnce(() => {
      throw new Error('a fault');
    });
    const answers: ServiceAnswer[] = [];
    // The first is the fault; then right, no review, mistyped in the ways in which one mistypes, and wrong methods.
    for (const [path, sent, method] of [
      [`${ADMISSION}/${TOKEN}`, REVIEW, 'POST'],
      [`${ADMISSION}/${TOKEN}`, REVIEW, 'POST'],
      [`${VALIDATION}/${TOKEN}`, {}, 'POST'],
      [`${ADMISSION}/${TOKEN}/`, REVIEW, 'POST'],
      [`/kubernetes/admision/${TOKEN}`, REVIEW, 'POST'],
      [`/${TOKEN}`, REVIEW, 'POST'],
      [`${ADMISSION}/x${TOKEN}`, REVIEW, 'POST'],
      [`${ADMISSION}/${TOKEN}`, REVIEW, 'PUT'],
      [`/check-create/${TOKEN}`, REVIEW, 'PUT'],
    ] as const) {
      const init = { method, body: JSON.stringify(sent), headers: { 'Content-Type': 'application/json' } };
      answers.push(await running.request(path, init));
    }
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400, 404, 404, 404, 401, 405, 404]);
    expect(answers[0]?.text).toContain('"allowed":false');
    answers.push(await running.request('/metrics'), await running.request('/openapi.json'));
    const seen = answers.map(({ text, headers }) => text + JSON.stringify([...headers])).join('\n');
    expect(seen).not.toContain(TOKEN);
    expect(JSON.stringify(running.logger.lines)).toContain('a fault');
    expect(JSON.stringify(running.logger.lines)).not.toContain(TOKEN);
    await running.service.close();
    expect(readFileSync(log, 'utf8')).toContain('kubernetes.admission');
    expect(readFileSync(log, 'utf8')).not.toContain(TOKEN);
    expect(JSON.stringify(running.service.authenticators)).not.toContain(TOKEN);
    expect(answers.at(-2)?.text).toContain(`http_requests_total{path="${ADMISSION}",status="200"} 2`);
  });
});

describe('[skypilot] tokens', () => {
  const run = () =>
    runSkypilot(
      { IdlePolicy: '' },
      {
        skypilot: { tokens: [TOKEN, 's:3-0123456789abcdef'] },
        service: { tokens: [OF_LEASES] },
      },
    );

  it('come as the password, as Python sends it from a URL or from .netrc', async () => {
    const { post } = await run();
    for (const pair of [`skypilot:${TOKEN}`, `:${TOKEN}`, 'any one:s:3-0123456789abcdef']) {
      expect((await post(PATH, body(), basic(pair))).status, pair).toBe(200);
      expect((await post(`${PATH}/`, body(), basic(pair))).status, pair).toBe(200);
    }
    for (const headers of [
      ...[`${TOKEN}:`, TOKEN, `skypilot:${TOKEN}x`, `skypilot:${OF_LEASES}`, ':', ''].map(basic),
      ...[`Basic ${TOKEN}`, 'Basic ====', 'Basic', `Basic skypilot:${TOKEN}`].map((Authorization) => ({
        Authorization,
      })),
      bearer(TOKEN),
    ]) {
      expect((await post(PATH, body(), headers)).status, headers.Authorization).toBe(401);
    }
    expect((await post(`${PATH}/`, body())).status, 'behind the slash, too').toBe(401);
  });
});

describe('an open authenticator', () => {
  const start = (host: string, service: object, kubernetes?: object) => {
    const scheduling_policies = [temporaryFile('policies.yaml', POLICIES)];
    return runServiceOf({
      service: { host, ...service },
      ...(kubernetes && { kubernetes: { scheduling_policies, ...kubernetes } }),
    });
  };
  const FOR_LEASES =
    'expected a loopback address, got 0.0.0.0, where everyone may ask for leases, end them and look into the console: set [service] tokens or tokens_file or keystone_auth, or [service] allow_anonymous = true if that is intended';
  const FOR_PODS =
    'expected a loopback address, got 0.0.0.0, where everyone may ask as an API server of Kubernetes: set [kubernetes] tokens or tokens_file or client_ca_file, or [service] allow_anonymous = true if that is intended';

  it('at an address that others reach keeps the service from starting, and each is named', async () => {
    await expect(start('0.0.0.0', {})).rejects.toThrow(FOR_LEASES);
    const both = start('0.0.0.0', {}, {});
    await expect(both).rejects.toThrow(FOR_LEASES);
    await expect(both).rejects.toThrow(FOR_PODS);
    const pods = start('0.0.0.0', { tokens: ['s3cret-0123456789abcdef'] }, {});
    await expect(pods).rejects.toThrow(FOR_PODS);
    await expect(pods).rejects.not.toThrow(FOR_LEASES);
    await expect(start('::', { allow_anonymous: false })).rejects.toThrow('got ::, where everyone may');
  });

  it('does not where it is meant, or where there are tokens, or for a machine of its own', async () => {
    for (const running of [
      await start('0.0.0.0', { allow_anonymous: true }, {}),
      await start(
        '0.0.0.0',
        { tokens: ['s3cret-0123456789abcdef'] },
        { tokens: ['another-0123456789abcdef'] },
      ),
      await start('0.0.0.0', { tokens_file: temporaryFile('tokens', 's3cret-0123456789abcdef\n') }),
      await start('127.0.0.1', {}, {}),
      await start('localhost', {}, {}),
    ]) {
      expect(running.service.url).toMatch(/^http/);
    }
  });

  it('is not opened by a reload either', async () => {
    const running = await runServiceOnFile(
      '[service]\nhost = 0.0.0.0\nport = 0\ntokens = s3cret-0123456789abcdef\n',
    );
    const port = new URL(running.url).port;
    const ask = async () =>
      (await fetch(`http://127.0.0.1:${port}/on-end`, { method: 'POST', body: '{}' })).status;
    const elsewhere = '[service]\nhost = 127.0.0.1\nport = 0\n';
    expect(await running.change(elsewhere), 'the host stays what it is').toBe(false);
    expect(await ask()).toBe(401);
  });
});

it('says of each protocol where it is asked, and what for', async () => {
  const { service, url } = await guarded();
  expect(service.authenticators).toEqual([
    {
      name: 'blazar',
      title: 'Blazar',
      urls: [`${url}/v1/`],
      asks: ['one of [service] tokens, in the header X-Auth-Token'],
    },
    {
      name: 'kubernetes',
      title: 'Kubernetes',
      urls: [url + ADMISSION, url + VALIDATION],
      asks: ['one of [kubernetes] tokens, as Authorization: Bearer, or as the last part of the path'],
    },
  ]);
});
