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

const MAIL = ['smtp_url = smtp://mail.example.org', 'mail_from = a@example.org', 'mail_to = b@example.org'];

it('takes a mail server with or without a webhook, and addresses of hosts without a domain', async () => {
  expect(await problemsOf(...MAIL)).toEqual([]);
  expect(await problemsOf(URL_LINE, ...MAIL)).toEqual([]);
  const local = [
    'smtp_url = smtps://[::1]:2525/',
    'mail_from = root@mailhost',
    'mail_to = root@a, o+b@c.example',
  ];
  const configuration = await read(local);
  expect(ofSection(configuration.problems)).toEqual([]);
  expect(sectionOf(configuration, notificationsSection)).toMatchObject({
    smtp_timeout: 10,
    mail_max_age: 604_800,
    mail_to: ['root@a', 'o+b@c.example'],
  });
});

it.each([
  ...['smtp://blazar:tiger@mail.example.org', 'smtp://mail.example.org/?pass=tiger'],
  ...['smtp://mail.example.org/tiger', 'smtp://tiger mail', 'smtp://mail.example.org:99999'],
  ...['smtp://b\u00fccher.example', 'https://mail.example.org', 'smtp://', 'mail.example.org:25'],
])('refuses the mail server %s, without its password', async (url) => {
  const [problem, ...more] = await problemsOf(`smtp_url = ${url}`, ...MAIL.slice(1));
  expect(more).toEqual([]);
  expect(problem).toMatch(/blazar\.conf:2: \[notifications\] smtp_url: expected smtp:\/\/HOST:PORT/);
  expect(problem).not.toContain(':tiger');
  expect(problem).not.toContain('=tiger');
});

it.each([
  [['mail_to = b@example.org'], 2, 'mail_to: expected smtp_url'],
  [['mail_from = b@example.org'], 2, 'mail_from: expected smtp_url'],
  [['smtp_username = a', 'smtp_password = tiger'], 2, 'smtp_username: expected smtp_url'],
  [MAIL.slice(0, 2), 2, 'smtp_url: expected mail_to'],
  [[MAIL[0] ?? '', MAIL[2] ?? ''], 2, 'smtp_url: expected mail_from'],
  [[...MAIL, 'smtp_username = a'], 5, 'smtp_username: expected smtp_password'],
  [[...MAIL, 'smtp_password = tiger'], 2, 'smtp_url: expected smtp_username'],
  [[...MAIL, 'smtp_username = a', 'smtp_password_file = /nowhere/at/all'], 6, '/nowhere/at/all'],
  [[...MAIL, 'smtp_ca_file = /nowhere/at/all'], 5, '/nowhere/at/all'],
  [[...MAIL, 'smtp_ca_file = /dev/null'], 5, 'smtp_ca_file: /dev/null holds no certificate in PEM'],
  [[...MAIL.slice(0, 2), 'mail_to = b@example.org, tiger'], 4, 'mail_to'],
  [[...MAIL.slice(0, 2), 'mail_to = Ops <b@example.org>'], 4, 'mail_to'],
  [[...MAIL.slice(0, 2), `mail_to = ${Array(51).fill('b@example.org').join()}`], 4, 'mail_to'],
  [
    [...MAIL.slice(0, 1), 'mail_from = a@example.org, b@example.org', 'mail_to = b@example.org'],
    3,
    'mail_from',
  ],
])('refuses %j', async (lines, line, said) => {
  const problems = await problemsOf(...lines);
  expect(problems[0]).toContain(`blazar.conf:${line}: [notifications] `);
  expect(problems.join()).toContain(said);
  expect(problems.join()).not.toContain('got "tiger"');
});

it('takes the password of the mail server from a file, and never shows it', async () => {
  const login = [...MAIL, 'smtp_username = blazar'];
  const file = configFile('#tiger mit \u00dcmlaut\r\n', 'secret');
  expect(await problemsOf(...login, `smtp_password_file = ${file}`)).toEqual([]);
  const both = await problemsOf(...login, `smtp_password_file = ${file}`, 'smtp_password = tiger');
  expect(both).toEqual([expect.stringContaining('smtp_password or smtp_password_file, got both')]);
  for (const content of ['', '\n', 'tiger\n\n', 'tiger\0', 'tiger'.repeat(1000)]) {
    writeFileSync(file, content);
    const problems = await problemsOf(...login, `smtp_password_file = ${file}`);
    expect(problems, JSON.stringify(content)).toHaveLength(1);
    expect(problems[0]).toMatch(/blazar\.conf:6: \[notifications\] smtp_password_file: /);
    expect(problems[0]).not.toContain('tiger');
  }
});

it('warns of a mail server that is told of nothing', async () => {
  expect(await problemsOf(...MAIL, 'events = lease.refused')).toEqual([
    expect.stringContaining('blazar.conf:5: [notifications] events: no mail is sent'),
  ]);
});

it('warns of a token without a URL: nothing would be sent', async () => {
  expect(await problemsOf('webhook_token = tiger')).toEqual([
    expect.stringContaining('nothing is sent: webhook_url is not set'),
  ]);
});
