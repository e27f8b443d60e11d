/** The policy service with `[keystone] resolve_names`: its page, its decision log and its metrics. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { sectionText } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { jsonLines } from '../support/json-lines.ts';
import { giveBudgets, newLedger } from '../support/ledgers.ts';
import { changedAnswer, IDS, recorded, recordedKeystone } from '../support/recorded-identities.ts';
import { createLasting } from '../support/requests.ts';
import { runServiceOnFile } from '../support/running-service.ts';
import { visitService } from './console/visitor.ts';

it('shows names with ids on the page and in the decision log, and counts those that are missing', async () => {
  const keystone = await recordedKeystone();
  keystone.answer(`GET /v3/users/${IDS.dave}`, changedAnswer('users-dave', { name: '<b>\u202edave' }));
  const connection = await newLedger();
  await giveBudgets(connection, [
    { projectId: IDS.climate, userId: IDS.dave, amount: '1', until: '2098-01-01' },
  ]);
  const log = join(temporaryFolder(), 'decisions.jsonl');
  const { url, get, file } = await visitService(
    `[enforcement]\nenabled_filters = MaxLeaseDurationFilter, UsageBudgetFilter\nmax_lease_duration = 60\n[ledger]\nconnection = ${connection}\n[service]\ndecision_log = ${log}\n${sectionText('keystone', keystone.options)}`,
  );
  const check = async (project_id: string, user_id: string) => {
    const { context, lease } = createLasting(86_400);
    const body = JSON.stringify({ context: { ...context, project_id, user_id }, lease });
    const headers = { 'Content-Type': 'application/json' };
    expect((await fetch(`${url}/check-create`, { method: 'POST', body, headers })).status).toBe(403);
  };
  await check(IDS.climate, IDS.dave);
  await check('0'.repeat(32), IDS.alice);

  // They are stored a moment later.
  await expect.poll(async () => (await get('/decisions')).text).toContain(IDS.dave);
  const { html, text } = await get('/decisions');
  expect(text).toContain(`climate@Default ${IDS.climate} <b>[U+202E]dave@other ${IDS.dave}`);
  expect(html).not.toContain('<b>\u202e');
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toContain('blazar_enforcement_names_unresolved_total{kind="project",reason="unknown"} 1');
  await expect
    .poll(() => jsonLines(readFileSync(log, 'utf8')))
    .toMatchObject([
      { project_id: IDS.climate, project_name: 'climate', project_domain: 'Default', user_domain: 'other' },
      { project_name: null, project_domain: null, user_name: 'alice', user_domain: 'Default' },
    ]);

  // A project that has another name now, is found under both, and without Keystone under the one that it had.
  const count = async (account: string) => {
    const api = await fetch(`${url}/v1/decisions?${account.replace('=', '_id=')}`);
    const { items } = (await api.json()) as { items: readonly unknown[] };
    const page = (await get(`/decisions?${account}`)).html.split('/decisions/req-').length - 1;
    expect([api.status, page > 0]).toEqual([200, items.length > 0]);
    const [flag = '', text = ''] = account.split('=');
    const { stdout } = await runProgramInProcess([
      'decisions',
      'tail',
      `--${flag}`,
      text,
      '--format',
      'json',
      '--config-file',
      file,
    ]);
    expect(stdout.split('\n').length - 1).toBe(items.length);
    return items.length;
  };
  expect(await count('project=weather@Default')).toBe(0);
  const { body, ...rest } = recorded('projects-list-climate');
  const [project] = (body as { projects: object[] }).projects;
  keystone.answer('GET /v3/projects?name=climate&domain_id=default', recorded('projects-list-none'));
  keystone.answer('GET /v3/projects?name=weather&domain_id=default', {
    ...rest,
    body: { projects: [{ ...project, name: 'weather' }] },
  });
  expect(await count('project=weather@Default')).toBe(1);
  expect(await count('project=climate@Default')).toBe(1);
  expect(await count('user=alice@Default')).toBe(1);
  await keystone.stop();
  expect(await count('project=weather@Default')).toBe(0);
  expect(await count('project=climate@Default')).toBe(1);
});

it('keeps the limits of names over a reload while Keystone is away, and only those of the same Keystone', async () => {
  const [keystone, other] = await Promise.all([recordedKeystone(), recordedKeystone()]);
  const limits =
    '[service]\nport = 0\n[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 172800\nmax_lease_duration_project_limits = climate@Default:';
  const text = (hours: number, { options }: typeof keystone) =>
    `${limits}${hours * 3600}\n${sectionText('keystone', { ...options, timeout: 1 })}`;
  const { post, change } = await runServiceOnFile(text(1, keystone));
  const { context, lease } = createLasting(86_400);
  const body = { context: { ...context, project_id: IDS.climate, user_id: IDS.alice }, lease };
  const check = async () => (await post('/check-create', JSON.stringify(body))).status;
  await expect.poll(check).toBe(403);

  await Promise.all([keystone.stop(), other.stop()]);
  expect(await change(text(2, keystone))).toBe(true);
  expect(await check()).toBe(403);
  expect(await change(text(25, keystone))).toBe(true);
  expect(await check()).toBe(204);
  expect(await change(text(2, other))).toBe(true);
  expect(await check()).toBe(204);
});
