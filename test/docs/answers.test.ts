/** What the pages say is answered over HTTP, held against the real services. */
import { expect, it, onTestFinished } from 'vitest';
import { UsageEnforcement } from '../../src/index.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { type Answer, policyServer } from '../support/policy-server.ts';
import { createLasting, createPhysicalHost } from '../support/requests.ts';
import { runApp, runService } from '../support/running-service.ts';
import { pageNamed, tableUnder } from './markdown.ts';
import { matchesShown } from './shown.ts';

const TEN_DAYS = 864_000;

/** The text of a cell that is a code span, or the cell. */
const content = (cell = '') => cell.replace(/^`(.*)`$/, '$1');

it('docs/protocol.md says what the policy service answers', async () => {
  const limits = { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 172_800 };
  const url = await service(limits, ['secret']);
  const broken = await service({
    enabled_filters: ['BrokenFilter'],
    filters_path: [
      filterFolder({ 'broken-filter.js': filterSource('BrokenFilter', { create: 'throw new Error("x");' }) }),
    ],
  });
  const { url: faulty } = await runApp({} as UsageEnforcement);
  const token = { 'X-Auth-Token': 'secret' };
  const json = { 'Content-Type': 'application/json' };
  const request = JSON.stringify(createPhysicalHost());
  const post = (body: string, headers: Record<string, string>, path = `${url}/check-create`) =>
    fetch(path, { method: 'POST', body, headers });

  const answers = [
    await post(request, { ...token, ...json }),
    await post('{"context":{"user_id":"a","project_id":"b"},"lease":{}}', { ...token, ...json }),
    await post('{', { ...token, ...json }),
    await post(request, json),
    await post(JSON.stringify(createLasting(TEN_DAYS)), { ...token, ...json }),
    await post(request, json, `${broken}/v1/check-create`),
    await post(request, json, `${url}/check`),
    await fetch(`${url}/check-create`, { headers: token }),
    await post(' '.repeat(8 * 1024 * 1024 + 1), { ...token, ...json }),
    await post(request, { ...token, 'Content-Type': 'text/plain' }),
    await post(request, { ...token, 'Content-Type': 'application/json; charset=latin1' }),
    await post(request, json, `${faulty}/check-create`),
  ];
  const shown = tableUnder(pageNamed('docs/protocol.md'), 'What the policy service answers');
  expect(answers.map(({ status }) => String(status))).toEqual(shown.map(([status]) => content(status)));
  for (const [index, answer] of answers.entries()) {
    const body = content(shown[index]?.[2]);
    const text = await answer.text();
    expect(matchesShown(text, body), `${text} for ${body}`).toBe(true);
  }

  const health = await fetch(`${url}/healthz`);
  expect({ status: health.status, body: await health.text() }).toEqual({
    status: 200,
    body: '{"status":"ok"}',
  });
});

it('docs/policy-service-author.md says what the filter makes of an answer', async () => {
  const external = await policyServer({ status: 204 });
  const enforcement = await UsageEnforcement.load(
    {
      configFiles: [],
      environment: {},
      values: {
        enforcement: {
          enabled_filters: ['ExternalServiceFilter'],
          external_service_base_endpoint: external.url,
          external_service_timeout: 1,
          external_service_breaker_failures: 0,
        },
      },
    },
    { logger: recordingLogger() },
  );
  onTestFinished(() => enforcement.close());

  const rows = tableUnder(pageNamed('docs/policy-service-author.md'), 'What the filter makes of your answer');
  expect(rows.map(([answer = '']) => answer.slice(0, 5))).toEqual([
    '`204`',
    '`403`',
    '`403`',
    '`200`',
    '`302`',
    '`401`',
    '`500`',
    'none ',
  ]);
  for (const [answer = '', lease, message] of rows) {
    const [, status, , body] = /^`(\d+)`( and `(.*)`)?/.exec(answer) ?? [];
    // One row is about answers that are late or long, and both must be so.
    const variants: Answer[] =
      status === undefined
        ? [() => {}, { status: 403, body: 'x'.repeat(64 * 1024 + 1) }]
        : [{ status: Number(status), body: body ?? '', headers: { Location: `${external.url}/elsewhere` } }];
    for (const variant of variants) {
      external.answer = variant;
      const decision = await enforcement.checkCreate(createPhysicalHost());
      const word = decision.failed ? 'failed' : decision.allowed ? 'allowed' : 'rejected';
      expect({ answer, lease: word, message: decision.message ?? '' }).toEqual({ answer, lease, message });
    }
  }
});

async function service(enforcement: Record<string, unknown>, tokens: string[] = []): Promise<string> {
  const { url } = await runService({
    enforcement: { max_lease_duration: undefined, ...enforcement },
    service: { tokens },
  });
  return url;
}
