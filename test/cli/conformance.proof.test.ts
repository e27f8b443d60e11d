/** The command `conformance`: what it prints in each format, and how it exits. Against real HTTP services. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { describe, expect, it } from 'vitest';
import { UsageError } from '../../src/cli/common/output.ts';
import { conformanceCommand } from '../../src/cli/conformance.ts';
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
import { projectFile, temporaryFile } from '../support/files.ts';
import { jsonLines } from '../support/json-lines.ts';
import { listen } from '../support/listening.ts';
import { policyServer } from '../support/policy-server.ts';
import { type CommandResult, printed, refused, runCommand } from '../support/run-command.ts';
import { unusedPort } from '../support/unused-port.ts';

/** With the right token, from the environment. */
function conformance(url: string, ...flags: string[]): Promise<CommandResult> {
  return runProgramInProcess(['conformance', url, ...flags], { env: { BLAZAR_ENFORCEMENT_TOKEN: TOKEN } });
}

/** Refuses networks with a text that has everything in it that could do harm, the token too. */
const refusesNetworks: Fault = ({ operation, json, token }) =>
  operation === 'create' && json?.lease.reservations[0]?.resource_type === 'network'
    ? { status: 500, body: `x\u001b[2J]]>&<b>\u0000\r\n${token}` }
    : undefined;

describe('conformance', () => {
  it('prints a row for each check, and exits with 0 when none has failed', async () => {
    const { url } = await smallService();
    const allow = temporaryFile('allow.json', daysLong(1));
    const deny = temporaryFile('deny.json', daysLong(9));
    const update = temporaryFile('update.json', toBeDaysLong(9));
    const stdout = printed(
      await conformance(
        `${url}/`,
        ...['--allow-lease', allow, '--deny-lease', deny, '--deny-update', update, '--deny-commit', deny],
        ...['--commit-create-endpoint', `${url}/commit-create`],
        ...['--commit-update-endpoint', `${url}/commit-update`],
      ),
    );
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
    expect(found.filter(([, result]) => result === 'failed').map(([id]) => id)).toEqual([
      'create-network',
      'no-token',
    ]);
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
    const found = jsonLines(stdout);
    expect(found.map(({ check }) => check)).toEqual(CHECKS.map(({ id }) => id));
    const names = ['check', 'title', 'result', 'reason', 'problems', 'exchanges', 'protocol', 'sources'];
    for (const line of found) {
      expect(Object.keys(line)).toEqual([...names, 'milliseconds']);
    }
    const exchange = {
      sent: {
        method: 'POST',
        url: `${url}/check-create`,
        body: 'a lease of the type network',
        headers: expect.objectContaining({ 'Content-Type': 'application/json', 'X-Auth-Token': '****' }),
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
      attributes: { tests: String(CHECKS.length), failures: '2', errors: '0' },
    });
    const [suite, ...others] = report.children;
    expect(others).toEqual([]);
    expect(suite?.attributes).toMatchObject({ name: 'blazar-enforcement conformance', skipped: '9' });
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
      /^sent: POST .*\ncame: 500 .*\[2J\]\] >&<b>[\s\S]*\nexpected: the status 204 or 403\nprotocol: .+\nsource: .+$/,
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
    const create = await smallService();
    const update = await smallService();
    const end = await smallService();
    const { code } = await conformance(
      'http://127.0.0.1:1',
      ...['--create-endpoint', `${create.url}/check-create`, '--end-endpoint', `${end.url}/on-end`],
      ...['--update-endpoint', `${update.url}/check-update`],
    );
    expect(code).toBe(0);
    const operations = [create, update, end].map(({ asked }) => [
      ...new Set(asked.map(({ operation }) => operation)),
    ]);
    expect(operations).toEqual([['create'], ['update'], ['end']]);
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

const TLS = (name: string) => projectFile(`test/fixtures/tls/${name}`);

describe('wrong usage', () => {
  const url = 'expected an http or https URL with a host and without credentials';
  const seconds = 'expected a number of seconds above 0 and up to 3600, got';
  const ascii = 'expected ASCII text without line breaks that is not empty';

  it.for([
    [[], 'expected the URL of a policy service, or one of its endpoints'],
    [['nonsense'], `URL: ${url}`],
    [['127.0.0.1:8643'], `URL: ${url}`],
    [['ftp://127.0.0.1/'], `URL: ${url}`],
    [['http:///check'], `URL: ${url}`],
    [['https://user:pa55word@127.0.0.1/'], `URL: ${url}`],
    [['http://h/', '--create-endpoint', ''], `--create-endpoint: ${url}`],
    [['http://h/', '--update-endpoint', 'file:///tmp'], `--update-endpoint: ${url}`],
    [['http://h/', '--end-endpoint', 'on-end'], `--end-endpoint: ${url}`],
    [['http://h/', '--timeout', '0'], `--timeout: ${seconds} "0"`],
    [['http://h/', '--timeout', '1e3'], `--timeout: ${seconds} "1e3"`],
    [['http://h/', '--timeout', '3601'], `--timeout: ${seconds} "3601"`],
    [['http://h/', '--token', ''], `--token (BLAZAR_ENFORCEMENT_TOKEN): ${ascii}`],
    [['http://h/', '--bearer', 's3cret\nX-Other: 1'], `--bearer (BLAZAR_ENFORCEMENT_BEARER): ${ascii}`],
    [
      ['http://h/', '--allow-lease', '/nowhere.json'],
      '/nowhere.json: could not be read: there is no such file',
    ],
    [['http://h/', '--deny-lease', '/'], '/: could not be read: it is a folder'],
    [['http://h/', '--deny-update', '/'], '/: could not be read: it is a folder'],
    [['http://h/', '--commit-create-endpoint', 'commit'], `--commit-create-endpoint: ${url}`],
    [['http://h/', '--commit-update-endpoint', ''], `--commit-update-endpoint: ${url}`],
  ] as [string[], string][])('%j', async ([args, message]) => {
    await expect(conformanceCommand().parseAsync(args, { from: 'user' })).rejects.toThrow(
      new UsageError(message),
    );
  });

  it('is a file that is no check-create, with the field that is wrong', async () => {
    const body = { context: { user_id: 'a', project_id: 'b' }, lease: { start_date: 'tomorrow' } };
    for (const [text, why] of [
      ['{', 'expected JSON'],
      [JSON.stringify(body), 'lease.start_date: expected an ISO 8601 date, got "tomorrow"'],
    ] as const) {
      const file = temporaryFile('lease.json', text);
      const told = await runProgramInProcess(['conformance', 'http://h/', '--deny-lease', file]);
      expect(told).toEqual(refused(`${file}: ${why}`));
    }
  });
});

describe('a service that can not be reached ends with 1 and one line', () => {
  it.for(['table', 'json'])('as %s', async (format) => {
    const url = `http://127.0.0.1:${await unusedPort()}`;
    expect(await runProgramInProcess(['conformance', url, '--format', format])).toEqual(
      refused(/^error: POST http:.*\/check-create: no connection: connect ECONNREFUSED .*\n$/, 1),
    );
  });

  it('because nobody knows who vouches for its certificate; with NODE_EXTRA_CA_CERTS it is tested', async () => {
    const credentials = { cert: readFileSync(TLS('server.pem')), key: readFileSync(TLS('server.key')) };
    const server = createServer(credentials, (request, response) => {
      request.resume().on('end', () => response.writeHead(204).end());
    });
    server.on('tlsClientError', () => {});
    const { port } = await listen(server);
    const url = `https://127.0.0.1:${port}`;
    for (const env of [{}, { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_NO_WARNINGS: '1' }]) {
      expect(await runCommand(['conformance', url], { env })).toEqual(
        refused(/^error: POST https:.*\/check-create: no connection: unable to verify .*\n$/, 1),
      );
    }
    const env = { NODE_EXTRA_CA_CERTS: TLS('ca.pem') };
    const trusted = await runCommand(['conformance', url], { env });
    expect(trusted.stderr).toBe('');
    expect(trusted.stdout).toMatch(/^create-network +passed/m);
  });
});
