import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { temporaryFile } from '../../support/files.ts';
import { filterSource } from '../../support/filter-folder.ts';
import { capturedText } from '../../support/requests.ts';
import { runService, type ServiceOptions } from '../../support/running-service.ts';
import { pasted, rowsOf, visitor } from './visitor.ts';

const FITS = capturedText('check-create-physical-host.json');
const NINE_DAYS = capturedText('check-create-gpu-and-floating-ip.json');
const UPDATE = capturedText('check-update-extend.json');
const TOO_LONG =
  'The lease is 777600 seconds (9 days) long; the longest allowed for any lease is 172800 seconds (2 days).';
const create = (request: string) => ({ operation: 'create', request });

async function visit(options: ServiceOptions = {}) {
  const service = await runService(options);
  const metrics = async () => (await fetch(`${service.url}/metrics`)).text();
  return { ...service, ...visitor(service.url), metrics };
}

/** Three filters: one that rejects, one that is tried, and what the test brings. */
const chain = (hook: string, more: Record<string, unknown> = {}) =>
  visit({
    enforcement: {
      enabled_filters: ['MaxLeaseDurationFilter', 'TriedFilter', 'LastFilter'],
      audit_filters: ['TriedFilter'],
      ...more,
    },
    filters: {
      'tried-filter.js': filterSource('TriedFilter', { create: "return reject('Not on a Sunday.');" }),
      'last-filter.js': `${filterSource('LastFilter', { create: hook })}import { allowOnError } from 'blazar-enforcement';`,
    },
  });

/** The heading of the verdict, and the rows of its table without the times. */
function verdictOf(html: string) {
  const [, heading = ''] = /<h3>(.*?)<\/h3>/s.exec(html.split('class="verdict')[1] ?? '') ?? [];
  const rows = rowsOf(html, 'What every filter says');
  for (const row of rows) {
    expect(row.pop()).toMatch(/^\d+(\.\d{3})? ms$/);
  }
  return { verdict: heading.replace(/<[^>]*>/g, ''), rows };
}

describe('a pasted request', () => {
  it('gets the verdict of every filter, also behind the first rejection', async () => {
    const { send } = await chain("return reject('Not you.');");
    const { status, html, text } = await send('/', create(NINE_DAYS));
    expect(status).toBe(200);
    expect(verdictOf(html)).toEqual({
      verdict: '✗ rejected by MaxLeaseDurationFilter',
      rows: [
        ['✗ rejected', 'MaxLeaseDurationFilter', TOO_LONG],
        ['✗ rejected', 'TriedFilter audit: tried, not enforced', 'Not on a Sunday.'],
        ['✗ rejected', 'LastFilter', 'Not you.'],
      ],
    });
    expect(text).toContain(
      `${TOO_LONG} Warning: TriedFilter (tried, not enforced) would have rejected: Not on a Sunday.`,
    );
    expect(text).toMatch(/Judged by generation 1 in \d+(\.\d{3})? ms\./);
    expect(text).toContain('Verdict: rejected · Policy service');
  });

  it.for([
    ['audit', 'return allow();', '? audit by TriedFilter', '✓ allowed', ''],
    [
      'failed',
      "throw new Error('secret cause');",
      '! failed by LastFilter',
      '! failed',
      expect.stringContaining('could not be checked'),
    ],
    [
      'allowed on error',
      'return allowOnError();',
      '! allowed-on-error by LastFilter',
      '! allowed-on-error',
      '',
    ],
    [
      'changed, which Blazar cannot take',
      "return allow({ ...lease, name: 'other' });",
      '✗ rejected by LastFilter',
      '✓ allowed',
      '',
    ],
  ] as const)('that is %s is said to be', async ([, hook, verdict, outcome, message]) => {
    const { send } = await chain(hook);
    const { status, html, text } = await send('/', create(FITS));
    expect(status).toBe(200);
    expect(verdictOf(html)).toMatchObject({ verdict, rows: [{}, {}, [outcome, 'LastFilter', message]] });
    expect(html).not.toContain('secret cause');
    expect(text.includes('The lease would be allowed with other values: name = "other".')).toBe(
      hook.includes('other'),
    );
  });

  it('of an exempt project is allowed, and no filter is asked', async () => {
    const { send } = await chain("throw new Error('asked');", {
      exempt_projects: ['a0b86a98b0d343cb948e00689182efd4'],
    });
    const { html, text } = await send('/', create(NINE_DAYS));
    expect(verdictOf(html)).toEqual({ verdict: '– exempt', rows: [] });
    expect(text).toContain('is in exempt_projects: no filter was asked.');
  });

  it('may be one to change a lease', async () => {
    const { send } = await visit();
    const { status, html } = await send('/', { operation: 'update', request: UPDATE });
    expect(status).toBe(200);
    expect(verdictOf(html).verdict).toBe('✗ rejected by MaxLeaseDurationFilter');
    expect(html).toContain('<option selected value="update">');
    expect(pasted(html)).toBe(UPDATE);
  });

  it('is shown again as it was, whatever it is', async () => {
    const { get, send } = await visit();
    const { html } = await get();
    expect(JSON.parse(pasted(html))).toMatchObject({ lease: { name: 'example' } });
    expect((await send('/', create(pasted(html)))).text).toContain('rejected by MaxLeaseDurationFilter');
    for (const request of [
      FITS,
      '\n\n{}',
      '</textarea><script>alert(1)</script>',
      '&lt;&amp;&#60;&quot;"\'<!--',
      '\u202e\u0007 \u00e9\u4e16\u{1f600}',
    ]) {
      expect(pasted((await send('/', create(request))).html)).toBe(request);
      expect(pasted((await send('/', create(request.replaceAll('\n', '\r\n')))).html)).toBe(request);
    }
  });
});

describe('a judgement from the page has no effect:', () => {
  it('it is neither listed, logged nor counted as a decision', async () => {
    const log = temporaryFile('decisions.jsonl', '');
    const { send, get, post, metrics } = await visit({ service: { decision_log: log } });
    const before = await metrics();
    expect(before).not.toMatch(/decisions_total\{/);
    for (const request of [FITS, NINE_DAYS]) {
      const { text } = await send('/', create(request));
      expect(text).toContain('None since this process started.');
    }
    const after = await metrics();
    expect(after).not.toMatch(
      /(decisions_total|decision_duration_seconds_count|filter_duration_seconds_count)\{/,
    );
    expect((await get()).text).toContain('None since this process started.');

    // The same request as a decision is seen in all three places.
    const id = 'req-7f1b2c3d-0000-4000-8000-00000000000a';
    await post('/check-create', NINE_DAYS, { 'X-Openstack-Request-Id': id });
    expect(rowsOf((await get()).html, 'Latest decisions')).toHaveLength(1);
    expect(await metrics()).toMatch(
      /decisions_total\{operation="create",filter="MaxLeaseDurationFilter",outcome="rejected"\} 1/,
    );
    // It is the last line: what would have been logged before it is there by then.
    await expect.poll(() => readFileSync(log, 'utf8')).toContain(id);
    expect(readFileSync(log, 'utf8').match(/^.*$/gm)?.filter(Boolean)).toEqual([expect.stringContaining(id)]);
  });

  it('no filter is told of an end', async () => {
    const { send } = await visit({
      enforcement: { enabled_filters: ['ToldFilter'], max_lease_duration: undefined },
      filters: {
        'told-filter.js': filterSource('ToldFilter', {
          create: "return globalThis.told === true ? reject('told') : allow();",
          end: 'globalThis.told = true;',
        }),
      },
    });
    for (const operation of ['end', 'on-end', '', 'Create', 'constructor']) {
      const { status, text } = await send('/', { operation, request: capturedText('on-end-active.json') });
      expect({ operation, status }).toEqual({ operation, status: 400 });
      expect(text).toContain('Not judged: operation: expected one of create, update');
    }
    expect((await send('/', create(FITS))).text).toContain('✓ allowed');
  });
});

describe('what is no request', () => {
  it.for([
    ['', 'expected a request in JSON ('],
    ['{"context": ', 'expected a request in JSON ('],
    ['[]', 'expected an object, got a list'],
    ['null', 'expected an object, got null'],
    ['{}', 'context: expected an object, got nothing'],
    [
      FITS.replace('2026-12-03T09:00:00', '<b>soon</b>'),
      'lease.end_date: expected an ISO 8601 date, got "<b>soon</b>"',
    ],
    ['['.repeat(1000), 'expected a request in JSON ('],
    ['['.repeat(100_000), 'expected a body that is nested no deeper than 100 levels'],
  ])('is said to be none in a sentence, with the status 400: %#', async ([request = '', sentence = '']) => {
    const { send } = await visit();
    const { status, html, text } = await send('/', create(request));
    expect(status).toBe(400);
    expect(text).toContain(`Not judged: ${sentence}`);
    expect(text).toContain('Not judged · Policy service');
    expect(html).toContain('aria-describedby="judge-error judge-hint"');
    expect(html).not.toContain('class="verdict');
    expect(pasted(html)).toBe(request);
  });

  it('may be a form without its fields, or with several of each', async () => {
    const { send } = await visit();
    for (const form of [
      '',
      'operation',
      'operation=create',
      'operation[]=create&request[]={}',
      '%zz=%zz&&==',
    ]) {
      expect((await send('/', form)).status, form).toBe(400);
    }
    const twice = `${new URLSearchParams({ ...create(FITS), x: '' })}&${new URLSearchParams(create('{}'))}`;
    expect((await send('/', twice)).text).toContain('✓ allowed');
  });
});

describe('a judgement is bounded as a decision is:', () => {
  /** A filter that answers when it is told to, and the service with room for one. */
  const withRoomForOne = () =>
    visit({
      enforcement: { enabled_filters: ['WaitingFilter'], max_lease_duration: undefined },
      filters: {
        'waiting-filter.js': filterSource('WaitingFilter', {
          create: 'return new Promise((answer) => { globalThis.letGo = () => answer(allow()); });',
        }),
      },
      service: { max_concurrent: 1, max_queued: 0 },
    });
  const letGo = () => (globalThis as { letGo?: () => void }).letGo?.();

  it('past the deadline the filter has failed', async () => {
    const { send } = await visit({
      enforcement: { enabled_filters: ['SilentFilter'], max_lease_duration: undefined },
      filters: {
        'silent-filter.js': filterSource('SilentFilter', { create: 'return new Promise(() => {});' }),
      },
      service: { deadline: 1 },
    });
    const { status, html } = await send('/', create(FITS));
    expect(status).toBe(200);
    expect(verdictOf(html).verdict).toBe('! failed by SilentFilter');
  });

  it('where there is no room it is refused with the status 503, and counted as such', async () => {
    const { send, post, metrics } = await withRoomForOne();
    const decision = post('/check-create', FITS);
    await expect.poll(metrics).toMatch(/decisions_under_way 1\n/);
    const { status, headers, text, html } = await send('/', create(FITS));
    expect({ status, after: headers.get('Retry-After') }).toEqual({ status: 503, after: '1' });
    expect(text).toContain('Not judged: Too many decisions are under way and waiting. Please try again.');
    expect(pasted(html)).toBe(FITS);
    expect(await metrics()).toMatch(/overload_refusals_total 1\n/);
    letGo();
    expect((await decision).status).toBe(204);
  });

  it('it takes a place from decisions, for as long as it lasts', async () => {
    const { send, post, metrics } = await withRoomForOne();
    const judgement = send('/', create(FITS));
    await expect.poll(metrics).toMatch(/decisions_under_way 1\n/);
    expect((await post('/check-create', FITS)).status).toBe(503);
    letGo();
    expect((await judgement).status).toBe(200);
    for (let time = 0; time < 2; time += 1) {
      expect((await send('/', create('{}'))).status).toBe(400);
    }
    expect(await metrics()).toMatch(/decisions_under_way 0\n/);
  });
});
