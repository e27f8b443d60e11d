import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { h } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { describe, expect, it } from 'vitest';
import { requireConfiguration } from '../../../src/enforcement/configuration.ts';
import { NOTHING_JUDGED } from '../../../src/server/console/judging.tsx';
import { OverviewPage } from '../../../src/server/console/overview.tsx';
import { filterSource } from '../../support/filter-folder.ts';
import { capturedText } from '../../support/requests.ts';
import { runService } from '../../support/running-service.ts';
import { rowsOf, textOf, visitor, visitService } from './visitor.ts';

const FITS = capturedText('check-create-physical-host.json');
const NINE_DAYS = capturedText('check-create-gpu-and-floating-ip.json');

describe('the page', () => {
  it('shows every option with its value and where it comes from, and hides secrets', async () => {
    const { get, file } = await visitService(
      '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 3600\nexternal_service_token = s3cret\nexternal_service_base_endpoint = https://policy.example.org\nexempt_projects = a, $external_service_token\n',
    );
    const { html } = await get();
    const options = rowsOf(html, 'Options of [enforcement]');
    expect(options).toContainEqual(['enabled_filters', 'MaxLeaseDurationFilter', `${file}:2`]);
    expect(options).toContainEqual(['max_lease_duration', '3600 seconds', `${file}:3`]);
    expect(options).toContainEqual(['external_service_token', '****', `${file}:4`]);
    expect(options).toContainEqual(['external_service_timeout', '10 seconds', 'default']);
    expect(options).toContainEqual(['audit_filters', 'empty', 'default']);
    expect(rowsOf(html, 'Options of [service]')).toContainEqual(['tls_cert_file', 'not set', 'default']);
    // A value that is put together from a secret is one, wherever it is shown.
    expect(html).not.toContain('s3cret');
    expect(options).toContainEqual(['exempt_projects', '****', `${file}:6`]);
  });

  it('shows the filters in their order, which are only tried, and which projects are exempt', async () => {
    const service = await runService({
      enforcement: {
        enabled_filters: ['SecondFilter', 'MaxLeaseDurationFilter', 'FirstFilter'],
        audit_filters: ['MaxLeaseDurationFilter'],
        exempt_projects: ['climate', 'physics'],
      },
      filters: {
        'first-filter.js': filterSource('FirstFilter'),
        'second-filter.js': filterSource('SecondFilter'),
      },
    });
    const { html, text } = await visitor(service.url).get();
    const [, list = ''] = /<ol class="filters">(.*?)<\/ol>/s.exec(html) ?? [];
    expect(list.split('</li>').map((item) => item.replace(/<[^>]*>/g, ''))).toEqual([
      'SecondFilter enforced',
      'MaxLeaseDurationFilter audit: tried, not enforced',
      'FirstFilter enforced',
      '',
    ]);
    expect(text).toContain('Exempt projects: climate,physics');
  });

  it('says so when no filter is enabled, and no project exempt', async () => {
    const { text } = await (await visitService('')).get();
    expect(text).toContain('None is enabled: every lease is allowed.');
    expect(text).toContain('Exempt projects: none');
    expect(text).toContain('None since this process started.');
  });

  it('shows the warnings of the configuration', async () => {
    const { get, file } = await visitService('[enforcement]\nmax_lease_duration = 3600\n');
    expect((await get()).text).toContain(
      `Warnings of the configuration ${file}:2: [enforcement] max_lease_duration: has no effect`,
    );
  });

  it('shows why the last reload was refused and which generation decides, until one takes over', async () => {
    const { get, file, reload } = await visitService(
      '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 3600\n',
    );
    expect((await get()).text).toMatch(/ ready generation 1 /);
    writeFileSync(file, '[enforcement]\nmax_lease_duration = two <days>\nnope = 1\n');
    expect(await reload()).toBe(false);
    const { text, html } = await get();
    expect(text).toMatch(/ configuration not valid generation 1 /);
    expect(text).toContain(
      `The last reload was refused. Generation 1 is still in use. ${file}:2: [enforcement] max_lease_duration: expected a whole number of seconds or -1, got "two <days>" ${file}:3: [enforcement] nope: unknown option`,
    );
    expect(rowsOf(html, 'Options of [enforcement]')).toContainEqual([
      'max_lease_duration',
      '3600 seconds',
      `${file}:3`,
    ]);

    writeFileSync(file, '[enforcement]\nenabled_filters =\n');
    expect(await reload()).toBe(true);
    const after = (await get()).text;
    expect(after).toMatch(/ ready generation 2 /);
    expect(after).not.toContain('refused');
  });

  it('shows the latest decisions, the newest first', async () => {
    const service = await runService({
      enforcement: { exempt_projects: ['exempt'], audit_filters: ['StrictFilter'] },
      filters: {
        'strict-filter.js': filterSource('StrictFilter', { create: "return reject('too strict');" }),
      },
    });
    const id = 'req-7f1b2c3d-0000-4000-8000-00000000000a';
    await service.post('/check-create', FITS);
    await service.post('/check-create', NINE_DAYS, { 'X-Openstack-Request-Id': id });
    await service.post('/check-create', {
      ...JSON.parse(FITS),
      context: { user_id: 'u', project_id: 'exempt' },
    });
    await service.post('/on-end', capturedText('on-end-active.json'));
    await service.post('/check-create', '{}');
    const { html } = await visitor(service.url).get();
    const rows = rowsOf(html, 'Latest decisions');
    expect(rows.map(([, outcome, lease]) => [outcome, lease])).toEqual([
      ['✓ allowed end', expect.stringMatching(/^climate-run-7.*-/)],
      ['– exempt create', 'climate-run-7'],
      ['✗ rejected create · MaxLeaseDurationFilter', 'gpu-and-ip'],
      ['? audit create · StrictFilter', 'climate-run-7'],
    ]);
    const [time, , , whose, message, request] = rows[2] ?? [];
    expect(time).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d+(\.\d{3})? ms$/);
    expect(whose).toMatch(/^a0b86a98b0d343cb948e00689182efd4 c631173edec04bb7a0c3f7711153c06c$/);
    expect(message).toMatch(/^The lease is 777600 seconds .*\. Warning: StrictFilter .* too strict$/);
    expect(request).toBe(`${id} generation 1`);
    expect(rows[3]?.[4]).toBe('Warning: StrictFilter (tried, not enforced) would have rejected: too strict');
    expect(rows[1]?.[4]).toBe('Warning: Project exempt is in exempt_projects: no filter was asked.');
  });

  it('says that the service is draining', async () => {
    const configuration = await requireConfiguration({ environment: {}, configFiles: [] });
    const overview = h(OverviewPage, {
      ...{ generation: 1, configuration, problems: [], decisions: [], judging: NOTHING_JUDGED },
      ...{ isDraining: true, canLogOut: false },
    });
    expect(textOf(renderToString(overview))).toMatch(/ draining generation 1 The service is stopping/);
  });
});

describe('the answer', () => {
  it('allows nothing but the style that it carries, and is kept nowhere', async () => {
    const { url } = await runService({ service: { tokens: ['s3cret'] } });
    const { get, send } = visitor(url);
    for (const visit of [
      await get(),
      await send('/login', { token: 'wrong' }),
      await send('/', { operation: 'create', request: '{}' }),
      await get('/', { 'X-Auth-Token': 's3cret' }),
      await send('/', { operation: 'create', request: '{}' }, { 'X-Auth-Token': 's3cret' }),
    ]) {
      const [, style = ''] = /<style>(.*?)<\/style>/s.exec(visit.html) ?? [];
      const hash = createHash('sha256').update(style).digest('base64');
      expect(style).toContain('color-scheme');
      expect(Object.fromEntries(visit.headers)).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'same-origin',
        'cache-control': 'no-store',
      });
      expect(visit.html).toMatch(/^<!DOCTYPE html><html lang="en">/);
      // Neither scripts nor anything from elsewhere, also in attributes.
      expect(visit.html).not.toMatch(/<(script|link|img|iframe|object)\b|\s(style|on\w+|src)=|href="[^#]/);
    }
  });

  it('has the headers also where there is nothing to show', async () => {
    const { url } = await runService();
    const { send } = visitor(url);
    for (const visit of [await send('/logout', {}), await send('/', '', { 'Content-Type': 'text/plain' })]) {
      expect(visit.headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(visit.headers.get('cache-control')).toBe('no-store');
    }
  });

  it('to HEAD is that to GET, without the page', async () => {
    const { url } = await runService({ service: { tokens: ['s3cret'] } });
    const { get, request } = visitor(url);
    for (const headers of [{}, { 'X-Auth-Token': 's3cret' }]) {
      const head = await request('/', { method: 'HEAD', headers });
      const { status, html } = await get('/', headers);
      expect(head).toMatchObject({ status, html: '' });
      expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(html)));
    }
  });

  it.for([
    ['/', 'HEAD, GET, POST'],
    ['/login', 'HEAD, GET, POST'],
    ['/logout', 'POST'],
  ] as const)('to a method that is not possible at %s is 405', async ([path, allow]) => {
    const { url } = await runService();
    for (const method of ['PUT', 'PATCH', 'DELETE', ...(path === '/logout' ? ['GET', 'HEAD'] : [])]) {
      const { status, headers } = await visitor(url).request(path, { method });
      expect({ method, status }).toEqual({ method, status: 405 });
      expect(new Set(headers.get('allow')?.split(', '))).toEqual(new Set(allow.split(', ')));
    }
  });
});
