/** Every answer that /openapi.json describes is given by a real service, and none that it does not. */
import { writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { it, onTestFinished } from 'vitest';
import type { UsageEnforcement } from '../../src/index.ts';
import { startService } from '../../src/server/service.ts';
import { type Answer, expectDescribed, parsedAnswer } from '../support/api-answers.ts';
import { leaseDescription, operations } from '../support/api-description.ts';
import { fromBusyService } from '../support/busy-service.ts';
import { confFile, valuesOnly } from '../support/files.ts';
import { filterSource } from '../support/filter-folder.ts';
import { breakLedger, newLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { createLasting } from '../support/requests.ts';
import { runApp, runService, runServiceOf } from '../support/running-service.ts';
import { getWhileStopping } from '../support/stopping.ts';
import { ValidatingKeystone } from '../support/validating-keystone.ts';

/** The routes of the API are tried in test/server/api. */
const OWN = operations.filter(({ operation }) => !operation.tags.includes('users'));
const DECISIONS = OWN.filter(({ method }) => method === 'post').map(({ path }) => path);
const CHECKS = DECISIONS.filter((path) => path.includes('/check-'));
const COMMITS = DECISIONS.filter((path) => path.includes('/commit-'));
const READ = OWN.filter(({ method }) => method === 'get').map(({ path }) => path);

const TOKEN = { 'X-Auth-Token': 'secret-0123456789abcdef' };
const JSON_TYPE = { 'Content-Type': 'application/json' };
const SHORT = body(60);
const LONG = body(864_000);

/** A request that fits each of the paths: of all their attributes. */
function body(seconds: number): string {
  const { context, lease } = createLasting(seconds);
  return JSON.stringify({ context, current_lease: lease, lease });
}

/** Sends a request to one of the paths. `as`: by another method than the one it is described with. */
async function send(url: string, path: string, init: RequestInit = {}, as?: string): Promise<Answer> {
  const { method = 'GET' } = init;
  const answer = await fetch(url + path, { redirect: 'manual', ...init, method: as ?? method });
  const { status, headers } = answer;
  return { method: method.toLowerCase(), path, status, headers, text: await answer.text() };
}

function post(url: string, path: string, text: string, headers: Record<string, string> = {}, as?: string) {
  return send(url, path, { method: 'POST', body: text, headers: { ...JSON_TYPE, ...TOKEN, ...headers } }, as);
}

/** What one service with tokens answers, to all that can be right and wrong with a request. */
async function fromOneService(): Promise<Answer[]> {
  const { url, raw } = await runService({ service: { tokens: ['secret-0123456789abcdef'] } });
  const lease = (value: object) =>
    JSON.stringify({ context: { user_id: 'u', project_id: 'p' }, current_lease: {}, lease: value });
  const tooLarge = (path: string) =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: secret-0123456789abcdef\r\nContent-Type: application/json\r\nContent-Length: 8388609\r\n\r\n{`;
  const longHeaders = (method: string, path: string) =>
    `${method} ${path} HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`;
  return Promise.all([
    ...DECISIONS.flatMap((path) => [
      post(url, path, SHORT),
      post(url, path, lease(path.includes('on-end') ? { start_date: 'soon' } : {})),
      post(url, path, '{'),
      post(url, path, SHORT, { 'X-Auth-Token': 'wrong' }),
      post(url, path, SHORT, { 'Content-Type': 'text/plain' }),
      post(url, path, SHORT, { 'Content-Type': 'application/json; charset=latin1' }),
      post(url, path, SHORT, { 'Content-Encoding': 'zstd' }),
      post(url, path, SHORT, {}, 'PUT'),
      raw(tooLarge(path)).then((answer) => parsedAnswer('post', path, answer)),
      raw(longHeaders('POST', path)).then((answer) => parsedAnswer('post', path, answer)),
    ]),
    ...CHECKS.map((path) => post(url, path, LONG)),
    ...READ.flatMap((path) => [
      send(url, path, { headers: TOKEN }),
      send(url, path),
      send(url, path, { headers: TOKEN }, 'PUT'),
      raw(longHeaders('GET', path)).then((answer) => parsedAnswer('get', path, answer)),
    ]),
  ]);
}

async function fromAFilterThatFails(): Promise<Answer[]> {
  const fail = "throw new Error('x');";
  const { url } = await runService({
    filters: { 'broken-filter.js': filterSource('BrokenFilter', { create: fail, update: fail }) },
    enforcement: { enabled_filters: ['BrokenFilter'] },
  });
  return Promise.all(CHECKS.map((path) => post(url, path, SHORT)));
}

/** Of a service whose ledger has room for twenty leases, until it breaks. */
async function fromALedger(): Promise<Answer[]> {
  const connection = await newLedger();
  const { url } = await runServiceOf({
    ledger: { connection, commit: 'request' },
    enforcement: { enabled_filters: ['MaxLeasesFilter'], max_leases_per_project: 20 },
  });
  const answers: Answer[] = [];
  for (let second = 1; second <= 20; second += 1) {
    answers.push(await post(url, '/commit-create', body(second)));
  }
  for (const path of COMMITS.filter((one) => one.includes('create'))) {
    answers.push(await post(url, path, SHORT));
  }
  breakLedger(connection);
  return [...answers, ...(await Promise.all(COMMITS.map((path) => post(url, path, SHORT))))];
}

/** With tokens of Keystone: one without the role, and one about which it does not answer. */
async function fromKeystone(): Promise<Answer[]> {
  const keystone = await ValidatingKeystone.start();
  keystone.tokens.set('gAAAAAB-of-alice', 'member');
  const { url } = await runService({ service: { keystone_auth: true }, keystone: keystone.account });
  const ask = (token: string) =>
    Promise.all(DECISIONS.map((path) => post(url, path, SHORT, { 'X-Auth-Token': token })));
  const forbidden = await ask('gAAAAAB-of-alice');
  const unknown = await ask('gAAAAAB-unknown');
  await keystone.stop();
  return [...forbidden, ...unknown, ...(await ask('gAAAAAB-of-bob'))];
}

async function fromAFault(): Promise<Answer[]> {
  const { url } = await runApp({} as UsageEnforcement);
  return Promise.all(DECISIONS.map((path) => post(url, path, SHORT)));
}

/** There is room for one decision, and it is being made. */
async function whileADecisionIsMade(): Promise<Answer[]> {
  const [first, refused] = await fromBusyService(
    (url) => post(url, '/check-create', SHORT),
    (url) => Promise.all(DECISIONS.map((path) => post(url, path, SHORT))),
  );
  return [first, ...refused];
}

/** The requests begin, and do not end. */
async function fromWaiting(): Promise<Answer[]> {
  const { raw } = await runService({ service: { deadline: 1 } });
  const halfABody = (path: string) =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;
  return Promise.all([
    ...DECISIONS.map(async (path) => parsedAnswer('post', path, await raw(halfABody(path)))),
    ...READ.map(async (path) => parsedAnswer('get', path, await raw(`GET ${path} HTTP/1.1\r\nHost: x\r\n`))),
  ]);
}

/** To one token after the other that is not valid. */
async function fromGuesses(): Promise<Answer[]> {
  const { url } = await runService({ service: { tokens: ['secret-0123456789abcdef'] } });
  const answers: Answer[] = [];
  for (let guess = 0; guess <= 10; guess += 1) {
    answers.push(await send(url, '/metrics', { headers: { Authorization: `Bearer guess-${guess}` } }));
  }
  for (const path of DECISIONS) {
    answers.push(await post(url, path, SHORT, { 'X-Auth-Token': 'another' }));
  }
  return answers;
}

/** Of a service that was told to read a configuration with a mistake in its third line. */
async function fromAReload(): Promise<Answer[]> {
  const configuration = (days: string) =>
    `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = ${days}\n[service]\nport = 0\n`;
  const file = confFile(configuration('172800'));
  const service = await startService({ environment: {}, configFiles: [file] }, { logger: recordingLogger() });
  onTestFinished(() => service.close());
  writeFileSync(file, configuration('one day'));
  await service.reload();
  const answer = await send(service.url, '/readyz');
  return [{ ...answer, text: answer.text.replace(dirname(file), '/etc/blazar') }];
}

async function fromAStop(): Promise<Answer[]> {
  const service = await startService(valuesOnly({ service: { port: 0 } }), { logger: recordingLogger() });
  return [parsedAnswer('get', '/readyz', await getWhileStopping(service, '/readyz'))];
}

it('gives every answer that is described, as it is described, and no other', async () => {
  const groups = await Promise.all([
    fromOneService(),
    fromAFilterThatFails(),
    fromALedger(),
    fromKeystone(),
    fromAFault(),
    whileADecisionIsMade(),
    fromWaiting(),
    fromGuesses(),
    fromAReload(),
    fromAStop(),
  ]);
  expectDescribed(leaseDescription, groups.flat(), (path) => OWN.some((one) => one.path === path));
});
