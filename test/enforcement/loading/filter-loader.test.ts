import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadFilterCatalog } from '../../../src/enforcement/loading/filter-loader.ts';
import { NOT_CHARGING } from '../../../src/rules/section-problems.ts';
import { filterFolder, filterSource } from '../../support/filter-folder.ts';

const withOption = (name: string, option: string) =>
  `import { z } from 'zod';\n${filterSource(name, { extra: `static options = z.object({ ${option}: z.int().default(5) });` })}`;

/** The included filters. */
const INSTALLED = [...NOT_CHARGING, 'UsageBudgetFilter'];

/** The names of all filters, and why files in a folder are not usable filters. */
async function reasons(files: Readonly<Record<string, string>>, reserved: readonly string[] = []) {
  const { filters, broken } = await loadFilterCatalog([filterFolder(files)], [], reserved);
  return { names: [...filters.keys()], reasons: [...broken.values()] };
}

describe('a folder of filters', () => {
  it('adds its filters to the included ones', async () => {
    expect(await reasons({ 'my-filter.js': filterSource('MyFilter'), 'helper.js': 'throw 1;' })).toEqual({
      names: [...INSTALLED, 'MyFilter'],
      reasons: [],
    });
  });

  it.each([
    [
      'declares an option of an included filter',
      { 'max-filter.js': withOption('MaxFilter', 'max_lease_duration') },
      "MaxFilter declares the option max_lease_duration, which is MaxLeaseDurationFilter's",
    ],
    [
      'declares an option of the chain',
      { 'audit-filter.js': withOption('AuditFilter', 'audit_filters') },
      "AuditFilter declares the option audit_filters, which is the chain's",
    ],
  ])('refuses a file that %s', async (_, files, reason) => {
    const found = await reasons(files as unknown as Record<string, string>, ['audit_filters']);
    expect(found.names).toEqual(INSTALLED);
    expect(found.reasons).toEqual([reason]);
  });
});

describe('a file that has changed since it was loaded', () => {
  it('is loaded again, so that a reload runs the new code', async () => {
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
