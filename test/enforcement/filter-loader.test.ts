import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadFilterCatalog } from '../../src/enforcement/filter-loader.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';

const withOption = (name: string, option: string) =>
  `import { z } from 'zod';\n${filterSource(name, { extra: `static options = z.object({ ${option}: z.int().default(5) });` })}`;

/** What comes with the package. */
const INSTALLED = [
  'ExternalServiceFilter',
  'LeaseDatesFilter',
  'MaxLeaseDurationFilter',
  'MaxLeasesFilter',
  'MaxReservationSizeFilter',
  'SchedulingPolicyFilter',
  'UsageBudgetFilter',
];

/** Why files of one folder hold no usable filter. */
async function reasons(files: Readonly<Record<string, string>>, reserved: readonly string[] = []) {
  const { filters, broken } = await loadFilterCatalog([filterFolder(files)], [], reserved);
  return { names: [...filters.keys()], reasons: [...broken.values()] };
}

describe('a folder of filters', () => {
  it('adds its filters to those that come with the package', async () => {
    expect(await reasons({ 'my-filter.js': filterSource('MyFilter'), 'helper.js': 'throw 1;' })).toEqual({
      names: [...INSTALLED, 'MyFilter'],
      reasons: [],
    });
  });

  it.each([
    [
      'lacks hooks',
      { 'my-filter.js': filterSource('MyFilter').replace('checkUpdate', 'update').replace('onEnd', 'end') },
      'MyFilter does not implement checkUpdate, onEnd',
    ],
    [
      'declares an option outside its prefix',
      { 'my-filter.js': withOption('MyFilter', 'your_limit') },
      'MyFilter declares the option your_limit, and its options must be my or start with my_',
    ],
    [
      'declares an option of a filter that comes with the package',
      { 'max-filter.js': withOption('MaxFilter', 'max_lease_duration') },
      "MaxFilter declares the option max_lease_duration, which is MaxLeaseDurationFilter's",
    ],
    [
      'declares an option of the chain',
      { 'audit-filter.js': withOption('AuditFilter', 'audit_filters') },
      "AuditFilter declares the option audit_filters, which is the chain's",
    ],
    ['is called like no class in it', { 'my-filter.js': filterSource('YourFilter') }, /expected your-filter/],
    [
      'has no filter in it',
      { 'my-filter.js': 'export class MyFilter {}' },
      /no class that extends BaseFilter/,
    ],
    [
      'has the name of one that comes with the package',
      { 'max-lease-duration-filter.js': filterSource('MaxLeaseDurationFilter') },
      /there is another MaxLeaseDurationFilter in/,
    ],
  ])('has no use for a file that %s', async (_, files, reason) => {
    const found = await reasons(files as unknown as Record<string, string>, ['audit_filters']);
    expect(found.names).toEqual(INSTALLED);
    expect(found.reasons).toEqual([typeof reason === 'string' ? reason : expect.stringMatching(reason)]);
  });
});

describe('a file that was changed since it was loaded', () => {
  it('is loaded anew, so that a reload runs what stands in it', async () => {
    const folder = filterFolder({ 'my-filter.js': withOption('MyFilter', 'my_first') });
    const file = join(folder, 'my-filter.js');
    const load = async () => (await loadFilterCatalog([folder], [], [])).filters.get('MyFilter');
    const first = await load();
    expect((await load())?.filterClass).toBe(first?.filterClass);

    writeFileSync(file, withOption('MyFilter', 'my_second'));
    utimesSync(file, 1, 1);
    const second = await load();
    expect(second?.options.map(({ name }) => name)).toEqual(['my_second']);
    expect((await load())?.filterClass).toBe(second?.filterClass);
  });
});
