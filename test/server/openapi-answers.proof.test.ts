/** Every answer that /openapi.json describes is given by a real service, and none that it does not. */
import { writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { it, onTestFinished } from 'vitest';
import type { UsageEnforcement } from '../../src/index.ts';
import { startService } from '../../src/server/service.ts';
import {
  type Answer,
  described,
  expectDescribed,
  mistakenPosts,
  parsedAnswer,
} from '../support/api-answers.ts';
import { leaseDescription, operations } from '../support/api-description.ts';
import { fromBusyService } from '../support/busy-service.ts';
import { confFile, valuesOnly } from '../support/files.ts';
import { filterSource } from '../support/filter-folder.ts';
import { breakLedger, newLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { postHead } from '../support/raw-http.ts';
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
const SHORT = body(60);
const LONG = body(864_000);

/** A request that fits each of the paths: of all their attributes. */
function body(seconds: number): string {
  const { context, lease } = createLasting(seconds);
  return JSON.stringify({ context, current_lease: lease, lease });
}

const post = (url: string, path: string, text: string, headers = {}) =>
  described(url + path, path, { body: text, headers: { ...TOKEN, ...headers } });
const get = (url: string, path: string, more: Parameters<typeof described>[2] = {}) =>
  described(url + path, path, { method: 'GET', ...more });

/** What one service with tokens answers, to all that can be right and wrong with a request. */
async function fromOneService(): Promise<Answer[]> {
  const service = await runService({ service: { tokens: ['secret-0123456789abcdef'] } });
  const { url, raw } = service;
  const lease = (value: object) =>
    JSON.stringify({ context: { user_id: 'u', project_id: 'p' }, current_lease: {}, lease: value });
  const longHeaders = `HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`;
  return Promise.all([
    ...DECISIONS.flatMap((path) => [
      post(url, path, SHORT),
      post(url, path, lease(path.includes('on-end') ? { start_date: 'soon' } : {})),
      post(url, path, SHORT, { 'X-Auth-Token': 'wrong' }),
      ...mistakenPosts(service, path, SHORT, { headers: TOKEN }),
    ]),
    ...CHECKS.map((path) => post(url, path, LONG)),
    ...READ.flatMap((path) => [
      get(url, path, { headers: TOKEN }),
      get(url, path),
      get(url, path, { headers: TOKEN, as: 'PUT' }),
      raw(`GET ${path} ${longHeaders}`).then((answer) => parsedAnswer('get', path, answer)),
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
  return Promise.all([
    ...DECISIONS.map(async (path) => parsedAnswer('post', path, await raw(`${postHead(path, 100)}{`))),
    ...READ.map(async (path) => parsedAnswer('get', path, await raw(`GET ${path} HTTP/1.1\r\nHost: x\r\n`))),
  ]);
}

/** To one token after the other that is not valid. */
async function fromGuesses(): Promise<Answer[]> {
  const { url } = await runService({ service: { tokens: ['secret-0123456789abcdef'] } });
  const answers: Answer[] = [];
  for (let guess = 0; guess <= 10; guess += 1) {
    answers.push(await get(url, '/metrics', { headers: { Authorization: `Bearer guess-${guess}` } }));
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
  const answer = await get(service.url, '/readyz');
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
