import { describe, expect, it } from 'vitest';
import { CHECKS } from '../../src/conformance/run.ts';
import {
  daysLong,
  type Fault,
  rightAnswer,
  smallService,
  TOKEN,
  toBeDaysLong,
} from '../conformance/services.ts';
import { type Element, parseXml } from '../conformance/xml.ts';
import { rows } from '../support/check-command.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { temporaryFile } from '../support/files.ts';
import { policyServer } from '../support/policy-server.ts';
import type { CommandResult } from '../support/run-command.ts';

/** With the right token, from the environment. */
function conformance(url: string, ...flags: string[]): Promise<CommandResult> {
  return runProgramInProcess(['conformance', url, ...flags], { env: { BLAZAR_ENFORCEMENT_TOKEN: TOKEN } });
}

/** Refuses networks with a text that has everything in it that could do harm, the token too. */
const refusesNetworks: Fault = ({ operation, json, token }) =>
  operation === 'create' && json?.lease.reservations[0]?.resource_type === 'network'
    ? { status: 500, body: `x\u001b[2J]]>&<b>\u0000\r\n${token}` }
    : undefined;

const lines = (stdout: string) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('conformance', () => {
  it('prints a row for each check, and exits with 0 when none has failed', async () => {
    const { url } = await smallService();
    const allow = temporaryFile('allow.json', daysLong(1));
    const deny = temporaryFile('deny.json', daysLong(9));
    const update = temporaryFile('update.json', toBeDaysLong(9));
    const { code, stdout, stderr } = await conformance(
      `${url}/`,
      ...['--allow-lease', allow, '--deny-lease', deny, '--deny-update', update, '--deny-commit', deny],
      ...['--commit-create-endpoint', `${url}/commit-create`],
      ...['--commit-update-endpoint', `${url}/commit-update`],
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [head, ...found] = rows(stdout);
    expect(head).toEqual(['CHECK', 'RESULT', 'WHAT IT PROVES']);
    expect(found.slice(0, CHECKS.length)).toEqual(CHECKS.map(({ id, title }) => [id, 'passed', title]));
    expect(stdout).toMatch(new RegExp(`\n\n${CHECKS.length} passed, 0 failed, 0 skipped; \\d+ requests\n$`));
  });

  it('says under a failure what was sent, what came, what was expected and why, and exits with 1', async () => {
    const { url } = await smallService(refusesNetworks);
    const { code, stdout, stderr } = await conformance(url);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const found = rows(stdout);
    const at = found.findIndex(([id]) => id === 'create-network');
    const check = CHECKS.find(({ id }) => id === 'create-network');
    expect(found.slice(at, at + 6)).toEqual([
      ['create-network', 'failed', check?.title],
      [
        '',
        'sent',
        expect.stringMatching(
          /^POST http:\/\/127\.0\.0\.1:\d+\/check-create: a lease of the type network, \d+ bytes; Content-Type: application\/json, User-Agent: blazar-enforcement, X-Auth-Token: \*\*\*\*$/,
        ),
      ],
      ['', 'came', '500 x\\u001b[2J]]>&<b>\\u0000 ****'],
      ['', 'expected', 'the status 204 or 403'],
      ['', 'protocol', check?.protocol],
      ['', 'source', check?.sources.join('; ')],
    ]);
    expect(found.filter(([, result]) => result === 'failed')).toHaveLength(1);
    expect(found.find(([id]) => id === 'deny-lease')).toEqual([
      'deny-lease',
      'skipped',
      '--deny-lease is not given',
    ]);
  });

  it('prints one JSON object a line with exactly the promised fields', async () => {
    const { url } = await smallService(refusesNetworks);
    const { code, stdout, stderr } = await conformance(url, '--format', 'json');
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const found = lines(stdout);
    expect(found.map(({ check }) => check)).toEqual(CHECKS.map(({ id }) => id));
    const names = [
      'check',
      'title',
      'result',
      'reason',
      'problems',
      'exchanges',
      'protocol',
      'sources',
      'milliseconds',
    ];
    for (const line of found) {
      expect(Object.keys(line)).toEqual(names);
    }
    const exchange = {
      sent: {
        method: 'POST',
        url: `${url}/check-create`,
        headers: {
          'Content-Type': 'application/json',
          'User-Agent': 'blazar-enforcement',
          'X-Auth-Token': '****',
        },
        body: 'a lease of the type network',
        bytes: expect.any(Number),
      },
      came: { status: 500, body: 'x\u001b[2J]]>&<b>\u0000\r\n****' },
      milliseconds: expect.any(Number),
    };
    expect(found.find(({ check }) => check === 'create-network')).toMatchObject({
      result: 'failed',
      reason: null,
      problems: [{ expected: 'the status 204 or 403', ...exchange }],
      exchanges: [exchange],
    });
    expect(found.find(({ check }) => check === 'allow-lease')).toMatchObject({
      result: 'skipped',
      reason: '--allow-lease is not given',
      problems: [],
      exchanges: [],
    });
    expect(stdout).not.toContain(TOKEN);
  });

  it('prints a JUnit report with a test case for each check', async () => {
    const { url } = await smallService(refusesNetworks);
    const { code, stdout, stderr } = await conformance(url, '--format', 'junit');
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const report = parseXml(stdout);
    expect(report).toMatchObject({
      name: 'testsuites',
      attributes: { tests: String(CHECKS.length), failures: '1', errors: '0' },
    });
    const [suite, ...others] = report.children;
    expect(others).toEqual([]);
    expect(suite?.attributes).toMatchObject({ name: 'blazar-enforcement conformance', skipped: '8' });
    expect(suite?.children.map(({ attributes }) => attributes.name)).toEqual(
      CHECKS.map(({ id, title }) => `${id}: ${title}`),
    );
    const part = (id: string, name: string) =>
      suite?.children
        .find(({ attributes }: Element) => attributes.name?.startsWith(`${id}: `))
        ?.children.find((child) => child.name === name);
    const failure = part('create-network', 'failure');
    expect(failure?.attributes.message).toContain('expected the status 204 or 403, came 500 ');
    expect(failure?.text).toMatch(
      /^sent: POST .*\ncame: 500 .*\[2J\]\]>&<b>[\s\S]*\nexpected: the status 204 or 403\nprotocol: .+\nsource: .+$/,
    );
    expect(part('create-physical-host', 'system-out')?.text).toMatch(
      /^POST .*check-create: a lease of the type physical:host, .*\n→ 204$/m,
    );
    expect(part('deny-lease', 'skipped')).toBeDefined();
    expect(part('deny-lease', 'system-out')?.text).toBe('skipped: --deny-lease is not given');
    expect(stdout).not.toContain(TOKEN);
  });
});

describe('the endpoints', () => {
  it('are appended to the path of the URL, and a warning counts the leases whose end could not be reported', async () => {
    const { url, requests } = await policyServer((request, response) => {
      response.writeHead(request.url?.includes('on-end') ? 404 : 204).end();
    });
    const { code, stderr } = await conformance(`${url}/v1?site=a`, '--format', 'json');
    expect(new Set(requests.map((request) => request.url))).toEqual(
      new Set(['/v1/check-create?site=a', '/v1/check-update?site=a', '/v1/on-end?site=a']),
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/^warning: the service has allowed \d+ leases whose end could not be reported\n$/);
  });

  it('can each have a URL of its own', async () => {
    const [create, update, end] = [await smallService(), await smallService(), await smallService()];
    const flags = [
      '--create-endpoint',
      `${create.url}/check-create`,
      '--update-endpoint',
      `${update.url}/check-update`,
    ];
    const { code } = await conformance('http://127.0.0.1:1', ...flags, '--end-endpoint', `${end.url}/on-end`);
    expect(code).toBe(0);
    const operations = [create, update, end].map(({ asked }) => [
      ...new Set(asked.map(({ operation }) => operation)),
    ]);
    expect(operations).toEqual([['create'], ['update'], ['end']]);
  });

  it('that are not given are skipped', async () => {
    const { url } = await smallService();
    const env = { BLAZAR_ENFORCEMENT_TOKEN: TOKEN };
    const flags = ['--create-endpoint', `${url}/check-create`, '--format', 'json'];
    const { code, stdout } = await runProgramInProcess(['conformance', ...flags], { env });
    expect(code).toBe(0);
    expect(lines(stdout).find(({ check }) => check === 'end-twice')).toMatchObject({
      result: 'skipped',
      reason: 'there is no endpoint: neither URL nor --end-endpoint is given',
    });
  });
});

it.for([
  ['flags', ['--token', TOKEN, '--bearer', 'b3arer'], {}],
  ['variables', [], { BLAZAR_ENFORCEMENT_TOKEN: TOKEN, BLAZAR_ENFORCEMENT_BEARER: 'b3arer' }],
] as const)('tokens are taken from %s, and not printed', async ([, flags, env]) => {
  const { url } = await smallService((asked) => {
    const right = asked.request.headers.authorization === 'Bearer b3arer' && asked.token === TOKEN;
    return rightAnswer({ ...asked, token: right ? TOKEN : undefined });
  });
  const { code, stdout, stderr } = await runProgramInProcess(['conformance', url, ...flags], { env });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^token-right +passed/m);
  expect(stdout + stderr).not.toMatch(new RegExp(`${TOKEN}|b3arer`));
});
