import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { filterSource } from '../../support/filter-folder.ts';
import { capturedText } from '../../support/requests.ts';
import { runService } from '../../support/running-service.ts';
import { rowsOf, visitor, visitService } from './visitor.ts';

const FITS = capturedText('check-create-physical-host.json');
const NINE_DAYS = capturedText('check-create-gpu-and-floating-ip.json');

describe('the overview', () => {
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
    expect(text).toContain('No filter is enabled: every lease is allowed.');
    expect(text).toContain('Exempt projects: none');
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
    const { text } = await get();
    expect(text).toMatch(/ configuration not valid generation 1 /);
    expect(text).toContain(
      `The last reload was refused. Generation 1 is still in use. ${file}:2: [enforcement] max_lease_duration: expected a whole number of seconds or -1, got "two <days>" ${file}:3: [enforcement] nope: unknown option`,
    );
    const { html } = await get('/configuration');
    expect(rowsOf(html, 'Set in [enforcement]')).toContainEqual([
      'max_lease_duration',
      '3600 seconds',
      `${file}:3`,
    ]);

    writeFileSync(file, '[enforcement]\nenabled_filters =\n');
    expect(await reload()).toBe(true);
    const after = (await get()).text;
    expect(after).toMatch(/ ready generation 2 /);
    expect(after).not.toContain('refused. Generation');
  });
});

describe('the latest decisions', () => {
  it('are shown, the newest first', async () => {
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
    const { html } = await visitor(service.url).get('/decisions');
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
});
