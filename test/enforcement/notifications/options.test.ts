import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { Problem } from '../../../src/base/errors.ts';
import { readConfiguration, sectionOf } from '../../../src/enforcement/configuration.ts';
import { notificationsSection } from '../../../src/enforcement/notifications/options.ts';
import { configFile, shown } from '../../config/helpers.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const URL_LINE = 'webhook_url = https://hooks.example.org/a';

const read = (lines: readonly string[]) =>
  readConfiguration(
    { configFiles: [configFile(['[notifications]', ...lines].join('\n'))], environment: {} },
    [notificationsSection],
  );

const ofSection = (problems: readonly Problem[]) =>
  problems.filter(({ section }) => section === 'notifications');

const problemsOf = async (...lines: string[]) => shown(ofSection((await read(lines)).problems));

it('needs only the URL', async () => {
  const configuration = await read([URL_LINE]);
  expect(ofSection(configuration.problems)).toEqual([]);
  expect(sectionOf(configuration, notificationsSection)).toMatchObject({
    budget_thresholds: [80, 95],
    events: ['budget.threshold', 'budget.request', 'lease.refused', 'ledger.corrected', 'skypilot.bypassed'],
    webhook_max_age: 604_800,
    webhook_timeout: 10,
  });
});

it.each([
  'https://user:tiger@hooks.example.org/',
  'https://hooks.example.org/a?code=tiger',
  'https://hooks.example.org/#tiger',
  'ftp://hooks.example.org/tiger',
  'tiger',
])('refuses %s, and does not show it', async (url) => {
  const problems = await problemsOf(`webhook_url = ${url}`);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(/blazar.conf:2: \[notifications\] webhook_url: /);
  expect(problems.join()).not.toContain('tiger');
});

it.each([
  ['budget_thresholds = 0', '[1-9]|100|from 1 to 100'],
  ['budget_thresholds = 80, 101', 'from 1 to 100'],
  ['budget_thresholds = 79.5', 'whole number'],
  ['budget_thresholds = 1,2,3,4,5,6,7,8,9,10,11', 'up to 10'],
  ['events = budget.threshhold', 'budget.threshold'],
  ['source = not a URI', 'URI'],
  ['webhook_client_key_file = /nowhere/tiger.key', 'webhook_client_key_file'],
  [`webhook_secret = ${SECRET.slice(0, 20)}`, 'webhook_secret'],
  ['webhook_secret = tiger', 'webhook_secret'],
  ['webhook_secret_file = /nowhere/at/all', 'webhook_secret_file'],
])('refuses %s', async (line, said) => {
  const problems = await problemsOf(URL_LINE, line);
  expect(problems[0]).toMatch(/blazar\.conf:3/);
  expect(problems.join()).toMatch(new RegExp(said));
  expect(problems.join()).not.toContain(SECRET.slice(6, 20));
});

it('takes a token and secrets from files, and says what is wrong with them without showing them', async () => {
  const file = configFile('tiger\n', 'secret');
  expect(await problemsOf(URL_LINE, `webhook_token_file = ${file}`)).toEqual([]);
  const [wrong] = await problemsOf(URL_LINE, `webhook_secret_file = ${file}`);
  expect(wrong).toContain('expected whsec_ and 24 to 64 bytes in base64');
  expect(wrong).not.toContain('tiger');
  writeFileSync(file, `${SECRET}\n${SECRET}\n`);
  expect(await problemsOf(URL_LINE, `webhook_secret_file = ${file}`)).toEqual([]);
  const both = await problemsOf(URL_LINE, `webhook_secret_file = ${file}`, `webhook_secret = ${SECRET}`);
  expect(both[0]).toContain('got both');
  writeFileSync(file, '');
  expect(await problemsOf(URL_LINE, `webhook_token_file = ${file}`)).toHaveLength(1);
});

it('warns of a token without a URL: nothing would be sent', async () => {
  expect(await problemsOf('webhook_token = tiger')).toEqual([
    expect.stringContaining('nothing is sent: webhook_url is not set'),
  ]);
});
