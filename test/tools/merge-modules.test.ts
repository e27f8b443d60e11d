/** The modules that every command starts with, as `npm run build` has merged them. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { capturedFile, projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

const node = (args: readonly string[], environment: NodeJS.ProcessEnv = {}) =>
  execFileSync(process.execPath, args, { encoding: 'utf8', env: { ...process.env, ...environment } });

const printed = (code: string) => node(['--input-type=module', '--eval', code]).trim();
const built = (path: string) => JSON.stringify(projectFile(`dist/${path}`));

/** The files that a process has loaded: V8 names them in its coverage. */
function filesLoadedBy(...args: readonly string[]): string[] {
  const folder = temporaryFolder();
  node(args, { NODE_V8_COVERAGE: folder });
  return readdirSync(folder).flatMap((name) => {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: { url: string }[] };
    return result.map(({ url }) => url).filter((url) => /^file:|^\//.test(url));
  });
}

describe('the built command', () => {
  it('starts with few files, and none of zod', () => {
    const files = filesLoadedBy(
      projectFile('dist/src/cli/main.js'),
      ...['check', 'create', capturedFile('check-create-physical-host')],
      ...['--config-file', projectFile('etc/policy-service.conf')],
    );
    expect(files.map((url) => url.replace(/.*\//, ''))).toContain('library.js');
    expect(files.length).toBeLessThan(40);
    expect(files.filter((url) => url.includes('node_modules'))).toEqual([]);
  });

  it('prints its help, which names every command, with few files, and none of a package', () => {
    const files = filesLoadedBy(projectFile('dist/src/cli/main.js'), '--help');
    expect(files.length).toBeLessThan(60);
    expect(files.filter((url) => url.includes('node_modules'))).toEqual([]);
  });

  it('prints its version without what judges leases', () => {
    const files = filesLoadedBy(projectFile('dist/src/cli/main.js'), 'check', '--version');
    expect(files.filter((url) => /\/(library|packages)\.js$/.test(url))).toEqual([]);
  });
});

describe('a merged module', () => {
  it('is the same by its own path, by that of the library, and for modules that are not merged', () => {
    const code = `
      const library = await import(${built('src/index.js')});
      const { ConfigurationError } = await import(${built('src/base/errors.js')});
      const { MaxLeasesFilter } = await import(${built('filters/max-leases-filter.js')});
      const { Names } = await import(${built('src/openstack/names.js')});
      console.log(
        ConfigurationError === library.ConfigurationError,
        MaxLeasesFilter.prototype instanceof library.LedgerFilter,
        typeof Names,
      );`;
    expect(printed(code)).toBe('true true function');
  });

  it('still finds the files beside its own one', () => {
    const { version } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8')) as { version: string };
    expect(printed(`console.log((await import(${built('src/base/version.js')})).packageVersion())`)).toBe(
      version,
    );
  });

  it('comes with the licenses of the packages in it', () => {
    const licenses = readFileSync(projectFile('dist/src/merged/licenses.txt'), 'utf8');
    for (const name of ['zod', 'ini', 'fastest-levenshtein', 'commander', 'kysely']) {
      expect(licenses).toMatch(new RegExp(`^${name}\\n\\n.*License`, 'ms'));
    }
  });
});
