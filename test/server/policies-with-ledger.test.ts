/** A service whose policies use the ledger, and none of its filters. */
import { expect, it } from 'vitest';
import { requireConfiguration } from '../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import { storageProblems } from '../../src/server/configuration/start-checks.ts';
import { valuesOnly } from '../support/files.ts';
import { giveBudgets, newLedger } from '../support/ledgers.ts';
import { runServiceOf, runServiceOn } from '../support/running-service.ts';
import { readSamples, samplesOf } from '../support/samples.ts';
import { body } from '../support/skypilot.ts';
import { SkypilotApiDouble } from '../support/skypilot-api-server.ts';
import { PATH } from '../support/skypilot-service.ts';

const OPERATOR = { 'X-Auth-Token': 'operator-secret-0123456789abcdef' };

function valuesOf(connection: string, apiServer = 'http://127.0.0.1:9') {
  return {
    ledger: { connection },
    service: {
      port: 0,
      decision_store: 'none',
      metrics_budgets: 10,
      operator_tokens: ['operator-secret-0123456789abcdef'],
    },
    skypilot: { admin_policies: ['UsageBudgetPolicy'], api_server: apiServer, api_server_interval: 5 },
  };
}

it('shows budgets and what launches take of them, in the API, the console and the metrics', async () => {
  const connection = await newLedger();
  await giveBudgets(connection, [{ projectId: 'ml', amount: '100' }]);
  const api = await SkypilotApiDouble.start({ now: () => Date.now() / 1000 });
  const service = await runServiceOf(valuesOf(connection, api.url));
  const launch = {
    task: 'resources: {accelerators: A100:2}\n',
    skypilot_config: 'active_workspace: ml\n',
  };
  expect(await service.post(PATH, body(launch))).toMatchObject({ status: 200 });
  const get = (path: string) => service.request(path, { headers: OPERATOR });
  expect((await get('/v1/projects/ml')).json).toMatchObject({
    unit: 'GPU-hours',
    budgets: [{ project: { id: 'ml' }, taken: expect.stringMatching(/^48/) }],
    open_leases: [{ lease_id: 'skypilot:ml/one' }],
  });
  expect((await get('/v1/budgets')).json).toMatchObject({ items: [{ taken: expect.stringMatching(/^48/) }] });
  expect((await get('/v1/projects/ml/usage')).status).toBe(200);
  const { text: overview } = await get('/');
  expect(overview).toContain('Clusters of SkyPilot');
  expect(overview).toMatch(/ml\/one[\s\S]*href="\/decisions\?outcome=bypassed"/);
  const samples = await readSamples(service.url, 'operator-secret-0123456789abcdef');
  expect(samplesOf(samples, 'budget_taken_hours')).toEqual({
    '{project_id="ml",user_id=""}': expect.closeTo(48, 1),
  });
});

it('does not start, and config validate says so, without the ledger that a policy needs', async () => {
  const sources = valuesOnly(valuesOf('sqlite:///nowhere/at/all/ledger.db'));
  const problem = {
    section: 'ledger',
    option: 'connection',
    message: expect.stringContaining('/nowhere/at/all'),
  };
  await expect(runServiceOn(sources)).rejects.toMatchObject({ problems: [problem] });
  const configuration = await requireConfiguration(sources, SECTIONS);
  expect(await storageProblems(configuration, { ask: true })).toMatchObject([problem]);
});
