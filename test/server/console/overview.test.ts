import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { filterSource } from '../../support/filter-folder.ts';
import { runService } from '../../support/running-service.ts';
import { rowsOf, visitor, visitService } from './visitor.ts';

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
    expect(
      list
        .replace(/<\/?(li|ul)\b[^>]*>/g, '|')
        .replace(/<[^>]*>/g, '')
        .split(/\|+/),
    ).toEqual([
      '',
      'SecondFilter enforced',
      'MaxLeaseDurationFilter audit: tried, not enforced',
      'max_lease_duration = 172800 seconds',
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
