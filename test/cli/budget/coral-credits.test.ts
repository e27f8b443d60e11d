/** `budget from-coral-credits` and answers that no test wants of the real one, which test/peers asks. */
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { budgetCommand } from '../../../src/cli/budget.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { drips, endsEarly, hugely, sends } from '../../support/faulty-answers.ts';
import { confFile } from '../../support/files.ts';
import { refused } from '../../support/run-command.ts';
import { startService } from '../../support/services.ts';

const TOKEN = 'a-token-of-coral-credits';
const PROJECT = 'a0b86a98-b0d3-43cb-948e-00689182efd4';
const hours = (resource_hours: unknown, name = 'VCPU') => [{ resource_class: { name }, resource_hours }];
const link = (kind: string, id: number) => `http://only-inside/${kind}/${id}`;
const inProvider = (id: number) => ({ provider: link('resource_provider', id) });

const YEARS = { start: '2026-01-01T00:00:00.6Z', end: '2096-01-01T00:00:00.9Z' };
const COMING = { start: '2095-12-31T00:00:00Z', end: '2096-01-02T00:00:00Z' };
const allocation = { id: 1, name: 'first', ...YEARS, resources: hours(100) };
const consumer = { resource_provider_account: inProvider(1), ...COMING, resources: hours(48) };

type Answers = Readonly<Record<string, unknown>>;
const ANSWERS: Answers = {
  '/resource_provider': [{ id: 1, name: 'cloud' }],
  '/resource_provider_account': [{ account: link('account', 7), ...inProvider(1), project_id: PROJECT }],
  '/account/7': { name: 'team', allocations: [allocation], consumers: [] },
};
const withAccount = (account: object): Answers => ({
  ...ANSWERS,
  '/account/7': { name: 'team', allocations: [allocation], consumers: [], ...account },
});

async function convert(answer: Answers | ((response: ServerResponse) => void), more: readonly string[] = []) {
  const { url, requests } = await startService((response) => {
    const body = typeof answer === 'function' ? '' : JSON.stringify(answer[response.req.url ?? '']);
    (typeof answer === 'function' ? answer : sends(body))(response);
  });
  const address = new URL(url).origin;
  const file = confFile(`${TOKEN}\n`);
  const flags = ['--resource-class', 'VCPU', '--token-file', file, ...more];
  const { code, stdout, stderr } = await runInProcess(budgetCommand(), [
    'from-coral-credits',
    address,
    ...flags,
  ]);
  expect(stdout + stderr).not.toContain(TOKEN);
  const lines = stdout.trim().split('\r\n').slice(1);
  return { code, lines, stderr: stderr.replaceAll(address, 'URL'), requests };
}

const ID = PROJECT.replaceAll('-', '');
const PERIOD = '2026-01-01T00:00:00Z,2096-01-01T00:00:00Z';

describe('budget from-coral-credits', () => {
  it('prints what is left, and what leases that are to come take in the time of the allocation', async () => {
    const { code, lines, stderr, requests } = await convert(withAccount({ consumers: [consumer] }));
    expect({ code, lines, stderr }).toEqual({ code: 0, lines: [`${ID},,${PERIOD},124,24,100`], stderr: '' });
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(Array(3).fill(`Bearer ${TOKEN}`));
  });

  it.each([
    ['that have ended', { start: '2026-01-02T00:00:00Z', end: '2026-01-03T00:00:00Z' }],
    ['that were deleted before they began', { start: COMING.start, end: COMING.start }],
    ['of another cloud', { resource_provider_account: inProvider(2) }],
    ['of other resources', { resources: hours(48, 'MEMORY_MB') }],
  ])('counts nothing of leases %s', async (_, changes) => {
    const { lines } = await convert(withAccount({ consumers: [{ ...consumer, ...changes }] }));
    expect(lines).toEqual([`${ID},,${PERIOD},100,0,100`]);
  });

  it('reads the id of a project that is a UUID of no known version', async () => {
    const [project] = ANSWERS['/resource_provider_account'] as [object];
    const other = { ...project, project_id: '11111111-1111-1111-1111-111111111111' };
    const { lines } = await convert({ ...ANSWERS, '/resource_provider_account': [other] });
    expect(lines).toEqual([`${'1'.repeat(32)},,${PERIOD},100,0,100`]);
  });

  it('leaves out allocations that have ended', async () => {
    const over = { ...allocation, id: 2, start: '2025-01-01T00:00:00Z', end: '2026-01-01T00:00:00Z' };
    const { lines, stderr } = await convert(withAccount({ allocations: [over, allocation] }));
    expect({ lines, stderr }).toEqual({ lines: [`${ID},,${PERIOD},100,0,100`], stderr: '' });
  });

  it('warns of allocations that overlap, and prints both', async () => {
    const allocations = [allocation, { ...allocation, id: 2, name: 'more\nof it', start: '2027-01-01' }];
    const { code, lines, stderr } = await convert(withAccount({ allocations }));
    expect({ code, lines: lines.length }).toEqual({ code: 0, lines: 2 });
    expect(stderr).toMatch(/^warning: account team: the allocations "first" and "more\\nof it" overlap.*\n$/);
  });

  it('warns of an account that pays in several clouds', async () => {
    const [project] = ANSWERS['/resource_provider_account'] as [object];
    const { code, stderr } = await convert({
      ...ANSWERS,
      '/resource_provider_account': [project, { ...project, ...inProvider(2) }],
    });
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: 'warning: account team also pays for leases in other clouds: only cloud is read\n',
    });
  });

  it('wants the provider named if there are several', async () => {
    const two = { ...ANSWERS, '/resource_provider': [1, 2].map((id) => ({ id, name: `cloud ${id}` })) };
    for (const more of [[], ['--provider', 'cloud 3'], ['--provider', '__proto__']]) {
      expect(await convert(two, more)).toMatchObject({
        code: 2,
        stderr: 'error: --provider: expected one of "cloud 1", "cloud 2"\n',
      });
    }
    expect(await convert(two, ['--provider', 'cloud 1'])).toMatchObject({ code: 0 });
  });

  it.each([
    [
      'a class that nobody has',
      withAccount({ allocations: [{ ...allocation, resources: hours(1, 'GPU') }] }),
    ],
    ['no project', { ...ANSWERS, '/resource_provider_account': [] }],
  ])('prints no file for %s', async (_, answers) => {
    expect(await convert(answers)).toMatchObject({
      code: 2,
      lines: [],
      stderr:
        'error: no project of cloud has credits of the class VCPU in an allocation that has not ended\n',
    });
  });

  it.each([
    ['403', sends(`"${TOKEN}"`, 403), 2, /does not accept the token \(403\)$/],
    ['500', sends(TOKEN, 500), 3, /answered 500, but not as coral-credits does; is/],
    ['a redirect', sends('', 302, { location: 'http://127.0.0.1:1/' }), 3, /answered 302, but not as/],
    ['no JSON', sends(`<html>${TOKEN}`), 3, /answered 200, but not as coral-credits does/],
    ['another list', sends('[{"id":"one"}]'), 3, /not as coral-credits does \(0\.id: .*number.*\); is/],
    ['an answer that breaks off', (response: ServerResponse) => endsEarly(response, '[{'), 3, /: \S+/],
    ['an answer without an end', (response: ServerResponse) => drips(response, '['), 3, /within 1 s$/],
    ['100 MiB', hugely, 3, /the answer is longer than 67108864 bytes$/],
  ])('says what is wrong with %s, in one line', async (_, answer, code, message) => {
    const result = await convert(answer, ['--timeout', '1'.padEnd(answer === hugely ? 3 : 1, '0')]);
    expect(result).toMatchObject({ code, lines: [] });
    expect(result.stderr.split('\n')).toHaveLength(2);
    expect(result.stderr.trim()).toMatch(/^error: URL/);
    expect(result.stderr.trim()).toMatch(message);
  });

  it.each<[string, Answers]>([
    ['a number that is none', withAccount({ allocations: [{ ...allocation, resources: hours('many') }] })],
    ['very many allocations', withAccount({ allocations: Array(1001).fill(allocation) })],
    ['a date that is none', withAccount({ allocations: [{ ...allocation, end: 'soon' }] })],
    ['a project that is none', { ...ANSWERS, '/resource_provider_account': [{ project_id: '=1+1' }] }],
    [
      'a link that leads elsewhere',
      {
        ...ANSWERS,
        '/resource_provider_account': [
          { account: 'http://x/account/7/../../admin', ...inProvider(1), project_id: PROJECT },
        ],
      },
    ],
  ])('refuses %s', async (_, answers) => {
    const { code, lines, stderr } = await convert(answers);
    expect({ code, lines }).toEqual({ code: 3, lines: [] });
    expect(stderr).toMatch(/not as coral-credits does \(.*\); is this its address\?\n$/);
  });

  it.each([
    [['http://user:secret@127.0.0.1:1'], /^error: url: expected an http or https URL without credentials/],
    [
      ['http://127.0.0.1:1'],
      /^error: expected a token of coral-credits: --token-file or \$CORAL_CREDITS_TOKEN\n$/,
    ],
    [['http://127.0.0.1:1', '--token-file', '/no/such/file'], /^error: --token-file: \/no\/such\/file: /],
  ])('says what is wrong with %j', async (args, message) => {
    const flags = ['from-coral-credits', ...args, '--resource-class', 'VCPU'];
    const result = await runInProcess(budgetCommand(), flags);
    expect(result).toEqual(refused(message));
    expect(result.stderr).not.toContain('secret');
  });
});
