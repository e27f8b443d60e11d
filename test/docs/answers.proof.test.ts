/** The answers over HTTP that the pages describe, checked against real services. */
import { writeFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import type { UsageEnforcement } from '../../src/index.ts';
import { startService } from '../../src/server/service.ts';
import { loadValues } from '../filters/loaded.ts';
import { fromBusyService } from '../support/busy-service.ts';
import { confFile } from '../support/files.ts';
import { filterSource } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { type Answer, policyServer } from '../support/policy-server.ts';
import { createLasting, createPhysicalHost, updateExtend } from '../support/requests.ts';
import { runApp, runService } from '../support/running-service.ts';
import { getWhileStopping } from '../support/stopping.ts';
import { ValidatingKeystone } from '../support/validating-keystone.ts';
import { pageNamed, tableUnder } from './markdown.ts';
import { matchesShown } from './shown.ts';

const page = pageNamed('docs/reference/protocol.md');
const TEN_DAYS = 864_000;

/** The text of a cell that is a code span, or the cell. */
const content = (cell = '') => cell.replace(/^`(.*)`$/, '$1');

const TOKEN = { 'X-Auth-Token': 'secret-0123456789abcdef' };
const JSON_TYPE = { 'Content-Type': 'application/json' };
const FITS = JSON.stringify(createPhysicalHost());

const post = (url: string, body: string, headers: Record<string, string>) =>
  fetch(url, { method: 'POST', body, headers });

async function refusedByAFullHouse(): Promise<Response> {
  const ask = (url: string) => post(`${url}/check-create`, FITS, JSON_TYPE);
  const [, refused] = await fromBusyService(ask, ask);
  return refused;
}

/** Compares status and body of each answer with these columns of the rows. */
async function expectShown(answers: Response[], rows: string[][], status: number, body: number) {
  expect(answers.map((answer) => String(answer.status))).toEqual(rows.map((row) => content(row[status])));
  for (const [index, answer] of answers.entries()) {
    const shown = content(rows[index]?.[body]);
    const text = await answer.text();
    expect(matchesShown(text, shown), `${text} for ${shown}`).toBe(true);
  }
}

it('docs/reference/protocol.md says what the policy service answers', async () => {
  const { url: base, raw } = await runService({ service: { tokens: ['secret-0123456789abcdef'] } });
  const { url: broken } = await runService({
    filters: { 'broken-filter.js': filterSource('BrokenFilter', { create: 'throw new Error("x");' }) },
    enforcement: { enabled_filters: ['BrokenFilter'] },
  });
  const keystone = await ValidatingKeystone.start();
  keystone.tokens.set('gAAAAAB-of-alice', 'member');
  const { url: asking } = await runService({ service: { keystone_auth: true }, keystone: keystone.account });
  const withToken = (token: string) =>
    post(`${asking}/check-create`, FITS, { 'X-Auth-Token': token, ...JSON_TYPE });
  const { url: faulty } = await runApp({} as UsageEnforcement);
  const { raw: rawToHasty } = await runService({ service: { deadline: 1 } });
  const url = `${base}/check-create`;
  const { context, currentLease: current_lease, lease } = updateExtend();
  const update = (changes: object, current = current_lease) => {
    const body = JSON.stringify({ context, current_lease: current, lease: { ...lease, ...changes } });
    return post(`${base}/check-update`, body, { ...TOKEN, ...JSON_TYPE });
  };
  const long = `GET / HTTP/1.1\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`;

  const fromGuesses = async () => {
    const { url: guessed } = await runService({ service: { tokens: ['secret-0123456789abcdef'] } });
    const guess = () => post(`${guessed}/check-create`, FITS, { 'X-Auth-Token': 'wrong', ...JSON_TYPE });
    for (let count = 0; count < 10; count += 1) {
      await guess();
    }
    return guess();
  };

  const answers = [
    await post(url, FITS, { ...TOKEN, ...JSON_TYPE }),
    await post(url, '{"context":{"user_id":"a","project_id":"b"},"lease":{}}', { ...TOKEN, ...JSON_TYPE }),
    await update({ events: [] }),
    await update({ user_id: 'prof' }),
    await update({ start_date: '2026-12-05T09:00:00' }),
    await update({}, JSON.parse(JSON.stringify(current_lease).replaceAll('"active"', '"deleted"'))),
    await update({ reservations: [{ ...lease.reservations?.[0], resource_properties: [] }] }),
    await post(url, '{', { ...TOKEN, ...JSON_TYPE }),
    await post(url, JSON.stringify(Array(300_001).fill(0)), { ...TOKEN, ...JSON_TYPE }),
    await post(url, FITS, JSON_TYPE),
    await withToken('gAAAAAB-unknown'),
    await withToken('gAAAAAB-of-alice'),
    await post(url, JSON.stringify(createLasting(TEN_DAYS)), { ...TOKEN, ...JSON_TYPE }),
    await post(`${broken}/v1/check-create`, FITS, JSON_TYPE),
    await post(`${base}/check`, FITS, JSON_TYPE),
    await fetch(url, { headers: TOKEN }),
    answerOf(await rawToHasty('POST /check-create HTTP/1.1\r\n')),
    await post(url, ' '.repeat(8 * 1024 * 1024 + 1), { ...TOKEN, ...JSON_TYPE }),
    await post(url, FITS, { ...TOKEN, 'Content-Type': 'text/plain' }),
    await post(url, FITS, { ...TOKEN, 'Content-Type': 'application/json; charset=latin1' }),
    await post(url, FITS, { ...TOKEN, ...JSON_TYPE, 'Content-Encoding': 'zstd' }),
    await fromGuesses(),
    answerOf(await raw(long)),
    await post(`${faulty}/check-create`, FITS, JSON_TYPE),
    await refusedByAFullHouse(),
    await keystone.stop().then(() => withToken('gAAAAAB-of-bob')),
  ];
  await expectShown(answers, tableUnder(page, 'What the policy service answers'), 0, 2);
});

it('docs/reference/protocol.md says which headers tell what', async () => {
  const rows = tableUnder(page, 'Headers').map(([name, of]) => `${content(name)} of ${of}`);
  expect(rows).toEqual([
    'X-Openstack-Request-Id of requests',
    'X-Openstack-Request-Id of answers',
    'X-Enforcement-Generation of `204`, `403`',
    'Retry-After of `429`, `503`',
    'Allow of `405`',
    'WWW-Authenticate of `401`',
  ]);
  const { url } = await runService();
  const check = (body: string, headers = {}) =>
    post(`${url}/check-create`, body, { ...JSON_TYPE, ...headers });
  const id = 'req-7b1c5f2e-94a1-4a5e-9d5b-2f2c3f1d8e60';
  const told = ({ status, headers }: Response) => ({
    status,
    id: headers.get('X-Openstack-Request-Id'),
    generation: headers.get('X-Enforcement-Generation'),
    retry: headers.get('Retry-After'),
    allow: headers.get('Allow'),
    challenge: headers.get('WWW-Authenticate'),
  });
  const given = expect.stringMatching(/^req-[0-9a-f-]{36}$/);
  const nothing = { id: given, generation: null, retry: null, allow: null, challenge: null };
  const auth_url = 'http://127.0.0.1:9/v3';
  const account = { auth_url, username: 'blazar', password: 'blazar', project_name: 'service' };
  const asking = await runService({ service: { keystone_auth: true }, keystone: account });
  expect([
    told(await check(FITS, { 'X-Openstack-Request-Id': id })),
    told(await check(FITS, { 'X-Openstack-Request-Id': 'mine' })),
    told(await check(JSON.stringify(createLasting(TEN_DAYS)))),
    told(await check('{')),
    told(await refusedByAFullHouse()),
    told(await fetch(`${url}/check-create`)),
    told(await post(`${asking.url}/check-create`, FITS, JSON_TYPE)),
  ]).toEqual([
    { ...nothing, status: 204, id, generation: '1' },
    { ...nothing, status: 204, generation: '1' },
    { ...nothing, status: 403, generation: '1' },
    { ...nothing, status: 400 },
    { ...nothing, status: 503, retry: '1' },
    { ...nothing, status: 405, allow: 'POST' },
    { ...nothing, status: 401, challenge: `Keystone uri="${auth_url}"` },
  ]);
});

it('docs/reference/protocol.md says how the service tells how it is', async () => {
  const conf = (duration: string) =>
    `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = ${duration}\n[service]\nport = 0\ntokens = secret-0123456789abcdef\n`;
  const file = confFile(conf('172800'));
  const start = () => startService({ environment: {}, configFiles: [file] }, { logger: recordingLogger() });
  const stopping = answerOf(await getWhileStopping(await start(), '/readyz'));
  const service = await start();
  onTestFinished(() => service.close());
  const get = (path: string) => fetch(service.url + path);
  const health = await get('/healthz');
  const ready = await get('/readyz');
  writeFileSync(file, conf('one day'));
  await service.reload();
  const notValid = await get('/readyz');
  const metrics = await get('/metrics');
  const [firstLine = ''] = (await metrics.text()).split('\n');
  const guesses: Response[] = [];
  for (let guess = 0; guess <= 10; guess += 1) {
    guesses.push(
      await fetch(`${service.url}/metrics`, { headers: { Authorization: `Bearer guess-${guess}` } }),
    );
  }
  const [wrong = metrics] = guesses;
  const tooMany = guesses.at(-1) ?? metrics;

  const rows = tableUnder(page, 'Health and metrics');
  expect(rows.map(([path]) => content(path))).toEqual([
    '/healthz',
    '/readyz',
    '/readyz',
    '/readyz',
    '/metrics',
    '/metrics',
    '/metrics',
    '/openapi.json',
  ]);
  const answers = [
    health,
    ready,
    notValid,
    stopping,
    new Response(firstLine, metrics),
    wrong,
    tooMany,
    await get('/openapi.json'),
  ];
  await expectShown(answers, rows, 1, 3);
});

/** An answer as it came over the connection. */
function answerOf(raw: string): Response {
  const [head = '', body = ''] = raw.split('\r\n\r\n');
  return new Response(body, { status: Number(head.split(' ')[1]) });
}

it('docs/policy-service-author.md says what the filter makes of an answer', async () => {
  const external = await policyServer({ status: 204 });
  const waiting = async (seconds: number) => {
    const { enforcement } = await loadValues({
      enabled_filters: ['ExternalServiceFilter'],
      external_service_base_endpoint: external.url,
      external_service_timeout: seconds,
      external_service_breaker_failures: 0,
    });
    return enforcement;
  };
  const patient = await waiting(60);
  const hasty = await waiting(1);

  const rows = tableUnder(pageNamed('docs/policy-service-author.md'), 'What the filter makes of your answer');
  const statuses = ['204', '204', '403', '403', '200', '302', '401', '500', undefined];
  expect(rows.map(([answer = '']) => /^`(\d+)`/.exec(answer)?.[1])).toEqual(statuses);
  // Node.js sends no body with a 204. It sends the length.
  const headersOf = (body: string) => ({
    Location: `${external.url}/elsewhere`,
    'Content-Length': String(body.length),
  });
  for (const [answer = '', lease, message] of rows) {
    const [, status, , body] = /^`(\d+)`( and `(.*)`)?/.exec(answer) ?? [];
    // The last row is about answers that are too late and answers that are too long.
    const variants: [Answer, UsageEnforcement][] =
      status === undefined
        ? [
            [() => {}, hasty],
            [{ status: 500, body: 'x'.repeat(64 * 1024 + 1) }, patient],
          ]
        : [[{ status: Number(status), body: body ?? '', headers: headersOf(body ?? '') }, patient]];
    for (const [variant, enforcement] of variants) {
      external.answer = variant;
      const decision = await enforcement.checkCreate(createPhysicalHost());
      const word = decision.failed ? 'failed' : decision.allowed ? 'allowed' : 'rejected';
      expect({ answer, lease: word, message: decision.message ?? '' }).toEqual({ answer, lease, message });
    }
  }
});
