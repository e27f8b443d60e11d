import { expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import { readConfiguration } from '../../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { confFile, sectionText, temporaryFile } from '../../support/files.ts';
import { giveBudgets, newLedger } from '../../support/ledgers.ts';
import { runServiceOnFile } from '../../support/running-service.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';

const SCRAPER = 'of-prometheus-0123456789abcdef';
const TOKENS =
  'tokens = of-blazar-0123456789abcdef\noperator_tokens = of-operator-0123456789abcdef\nreader_tokens = of-reader-0123456789abcdef\n';

async function fixture(service: string, sections = '') {
  const connection = await newLedger();
  await giveBudgets(connection, [{ amount: '30', projectId: 'secret-project', userId: 'secret-user' }], {
    now: () => new Date().toISOString(),
  });
  const { request, logger } = await runServiceOnFile(
    `[enforcement]\nenabled_filters = UsageBudgetFilter\n[service]\nport = 0\n${service}[ledger]\nconnection = ${connection}\n${sections}`,
  );
  const read = async (headers: Record<string, string> = {}) => {
    const { status, text, json } = await request('/metrics', { headers });
    return { status, json, isOpen: text.includes('ledger_budgets{'), names: text.includes('secret-') };
  };
  return { request, read, logger };
}

const WITHOUT = { status: 200, json: undefined, isOpen: true, names: false };
const WITH = { ...WITHOUT, names: true };
const WRONG = { status: 401, json: { message: expect.stringMatching(/^expected one of/) } };

it('no single budget is shown by default, with any token', async () => {
  const { read } = await fixture(`metrics_tokens = of-prometheus-0123456789abcdef\n${TOKENS}`);
  for (const token of [SCRAPER, 'of-reader-0123456789abcdef', 'of-operator-0123456789abcdef']) {
    expect(await read({ 'X-Auth-Token': token })).toEqual(WITHOUT);
  }
});

it('without a token everything but single budgets is shown', async () => {
  const { read, request } = await fixture(
    `metrics_budgets = 10\nmetrics_tokens = of-prometheus-0123456789abcdef\n`,
  );
  // Another reader must not leave them for those without a token.
  expect(await read({ 'X-Auth-Token': SCRAPER })).toEqual(WITH);
  expect(await read()).toEqual(WITHOUT);
  expect(await read({ Cookie: 'session=of-prometheus-0123456789abcdef' })).toEqual(WITHOUT);
  const { text } = await request('/metrics');
  expect(text).not.toMatch(/budget_(amount|taken|left)_hours|budgets_omitted|project_id|user_id/);
});

it.for([
  SCRAPER,
  'from-a-file-0123456789abcdef',
  'of-reader-0123456789abcdef',
  'of-operator-0123456789abcdef',
  'of-blazar-0123456789abcdef',
])('the token %s shows single budgets, in either header', async (token) => {
  const file = temporaryFile('metrics', '# Prometheus\nfrom-a-file-0123456789abcdef\n');
  const { read } = await fixture(
    `metrics_budgets = 10\nmetrics_tokens = of-prometheus-0123456789abcdef\nmetrics_tokens_file = ${file}\n${TOKENS}`,
  );
  expect(await read({ 'X-Auth-Token': token })).toEqual(WITH);
  expect(await read({ Authorization: `Bearer ${token}` })).toEqual(WITH);
});

it('another token is refused, also if none is configured, and is not logged', async () => {
  for (const service of [
    'metrics_budgets = 10\nmetrics_tokens = of-prometheus-0123456789abcdef\n',
    'metrics_budgets = 10\n',
  ]) {
    const { read, logger } = await fixture(service);
    expect(await read({ 'X-Auth-Token': 'wrong-guess' })).toMatchObject(WRONG);
    expect(await read({ Authorization: 'Bearer wrong-guess' })).toMatchObject(WRONG);
    const both = { 'X-Auth-Token': SCRAPER, Authorization: 'Bearer wrong-guess' };
    expect(await read(both)).toMatchObject({ status: 401, names: false });
    expect(await read()).toEqual(WITHOUT);
    expect(JSON.stringify(logger.lines)).toContain('request refused');
    expect(JSON.stringify(logger.lines)).not.toMatch(/wrong-guess|of-prometheus-0123456789abcdef/);
  }
});

it('a token for metrics permits nothing else, and Keystone does not hear of it', async () => {
  const keystone = await ValidatingKeystone.start();
  const { request } = await fixture(
    'metrics_budgets = 10\nmetrics_tokens = of-prometheus-0123456789abcdef\nkeystone_auth = true\n',
    sectionText('keystone', keystone.account),
  );
  const headers = { 'X-Auth-Token': SCRAPER, 'Content-Type': 'application/json' };
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const asked = [
    await request('/check-create', { method: 'POST', headers, body: '{}' }),
    await request('/v1/budgets', { headers }),
    await request('/configuration', { headers }),
    await request('/login', { method: 'POST', headers: form, body: 'token=of-prometheus-0123456789abcdef' }),
  ];
  expect(asked.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
  expect(keystone.asked).toEqual([]);
});

it('metrics_budgets that nobody could see is warned of, with its line', async () => {
  const warnings = async (...lines: string[]) => {
    const conf = confFile(`[service]\nmetrics_budgets = 10\n${lines.join('\n')}\n`);
    const { problems } = await readConfiguration({ environment: {}, configFiles: [conf] }, SECTIONS);
    const found = problems.filter(({ option }) => option === 'metrics_budgets');
    return found.map((problem) => formatProblem(problem).replace(conf, 'CONF'));
  };
  expect(await warnings()).toEqual([
    expect.stringMatching(/^CONF:2: \[service\] metrics_budgets: without metrics_tokens/),
  ]);
  expect(await warnings('metrics_tokens = of-prometheus-0123456789abcdef')).toEqual([]);
});
