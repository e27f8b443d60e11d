/** Filters in folders and packages outside of the project, loaded by the command as it is built. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { capturedFile, projectFile } from '../support/files.ts';
import { filterSource } from '../support/filter-folder.ts';
import { runCommand } from '../support/run-command.ts';

/** Whether this Node reads TypeScript. Not in the types of the oldest Node that is supported. */
const READS_TYPESCRIPT = Boolean((process.features as { typescript?: unknown }).typescript);
const REQUEST = capturedFile('check-create-physical-host');

/** A folder far from the project: nothing in it, or above it, is installed. */
let site = '';
beforeEach(() => {
  site = mkdtempSync(join(tmpdir(), 'blazar-site-'));
  mkdirSync(join(site, 'filters'));
});
afterEach(() => rmSync(site, { recursive: true, force: true }));

async function check(enabled: string, ...settings: string[]) {
  const set = [`enabled_filters='${enabled}'`, `filters_path=${join(site, 'filters')}`, ...settings];
  const { code, stdout, stderr } = await runCommand(
    [
      'check',
      'create',
      REQUEST,
      '--format',
      'json',
      ...set.flatMap((setting) => ['--config', `enforcement.${setting}`]),
    ],
    { cwd: site },
  );
  return { code, stderr, message: stdout === '' ? '' : (JSON.parse(stdout).message as string) };
}

function write(path: string, text: string): void {
  mkdirSync(join(site, path, '..'), { recursive: true });
  writeFileSync(join(site, path), text);
}

/** Rejects with the place that `blazar-enforcement` and `zod` were found in. */
const tellingFilter = (name: string) => `import { z } from 'zod';
${filterSource(name, {
  create: "return reject(import.meta.resolve('blazar-enforcement') + ' ' + import.meta.resolve('zod'));",
  extra: "static options = z.object({ telling_limit: z.int().min(1).default(3).meta({ unit: 'seconds' }) });",
})}`;

/** A second copy of the package, with its own copy of zod. */
function installSecondCopy(): void {
  for (const path of ['package.json', 'dist/src', 'dist/filters']) {
    cpSync(projectFile(path), join(site, 'node_modules/blazar-enforcement', path), { recursive: true });
  }
  symlinkSync(projectFile('node_modules'), join(site, 'node_modules/blazar-enforcement/node_modules'));
  cpSync(projectFile('node_modules/zod'), join(site, 'node_modules/zod'), {
    recursive: true,
    filter: (path) => !path.endsWith('/src'),
  });
}

describe('a filter in a folder of filters_path, far from the project', () => {
  it('imports blazar-enforcement and zod, which come with the command: the no-op filter of the examples', async () => {
    cpSync(projectFile('examples/filters/no-op-filter.js'), join(site, 'filters/no-op-filter.js'));
    expect(await check('NoOpFilter', 'no_op_note=hello')).toEqual({ code: 0, stderr: '', message: null });
  });

  it('is held to its options like the filters of the package', async () => {
    write('filters/telling-filter.js', tellingFilter('TellingFilter'));
    const { code, stderr } = await check('TellingFilter', 'telling_limit=0');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'error: --config enforcement.telling_limit: [enforcement] telling_limit: expected a whole number of seconds, 1 or more, got "0"\n',
    });
  });

  it('is taken for a filter with another copy of the package and of zod installed beside it', async () => {
    installSecondCopy();
    write('filters/telling-filter.js', tellingFilter('TellingFilter'));
    const { code, stderr, message } = await check('TellingFilter', 'telling_limit=7');
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const [enforcement, zod] = message.split(' ');
    expect(enforcement).toContain(`${site}/node_modules/blazar-enforcement/dist/src/index.js`);
    expect(zod).toContain(`${site}/node_modules/zod/`);
  });

  it('may be an .mjs file', async () => {
    write('filters/rude-filter.mjs', filterSource('RudeFilter', { create: "return reject('no');" }));
    expect(await check('RudeFilter')).toEqual({ code: 1, stderr: '', message: 'no' });
  });

  it('may import files beside it, and be named among filters of the package', async () => {
    write('filters/reasons.js', "export const reason = 'for a reason';");
    const source = filterSource('ReasonFilter', { create: 'return reject(reason);' });
    write('filters/reason-filter.js', `import { reason } from './reasons.js';\n${source}`);
    expect(await check('MaxLeaseDurationFilter,ReasonFilter', 'max_lease_duration=172800')).toEqual({
      code: 1,
      stderr: '',
      message: 'for a reason',
    });
  });

  it('does not make anything else resolvable that the package uses', async () => {
    write('filters/koa-filter.js', `import Koa from 'koa';\n${filterSource('KoaFilter')}void Koa;`);
    const { code, stderr } = await check('KoaFilter');
    expect(code).toBe(2);
    expect(stderr).toContain("Cannot find package 'koa'");
  });

  it('is found in every folder that is listed, also under a relative path', async () => {
    write('more/rude-filter.js', filterSource('RudeFilter', { create: "return reject('no');" }));
    expect(await check('RudeFilter', `filters_path=${join(site, 'filters')},more`)).toMatchObject({
      code: 1,
      message: 'no',
    });
  });
});

describe('a filter in TypeScript', () => {
  const source = `import { allow, BaseFilter, reject, type Context, type Verdict } from 'blazar-enforcement';
export class TypedFilter extends BaseFilter<unknown> {
  checkCreate(context: Context): Verdict { return reject(\`typed \${context.project_id}\`); }
  checkUpdate(): Verdict { return allow(); }
  onEnd(): void {}
}
`;

  it.skipIf(READS_TYPESCRIPT)(
    'is refused with what to do about it, on a Node that can not read it',
    async () => {
      write('filters/typed-filter.ts', source);
      const { code, stderr } = await check('TypedFilter');
      expect(code).toBe(2);
      expect(stderr).toMatch(/^error: .*typed-filter\.ts: .*\n$/);
      expect(stderr).toContain(`Node ${process.versions.node} does not read TypeScript: replace the file`);
      expect(stderr).toContain('or use Node 22.18 or newer');
    },
  );

  it.runIf(READS_TYPESCRIPT)('runs as it is, on a Node that can read it', async () => {
    write('filters/typed-filter.ts', source);
    expect(await check('TypedFilter')).toMatchObject({ code: 1, message: expect.stringContaining('typed ') });
  });
});

describe('a filter of a package that is installed beside the configuration', () => {
  it.for([
    ['my-package', './my.js'],
    ['@my-site/rules', './my.js'],
    ['only-imported', { '.': { import: './my.js' } }],
  ] as const)('is named with the package: %s#MyFilter', async ([name, exports]) => {
    write(`node_modules/${name}/package.json`, JSON.stringify({ name, type: 'module', exports }));
    const source = filterSource('MyFilter', { create: "return reject('by package');" });
    write(`node_modules/${name}/my.js`, `${source}export class BadFilter extends BaseFilter {}\n`);
    expect(await check(`${name}#MyFilter`)).toEqual({ code: 1, stderr: '', message: 'by package' });

    const missing = await check(`${name}#NoFilter`);
    expect(missing.code).toBe(2);
    expect(missing.stderr).toContain('the package exports no class NoFilter that extends BaseFilter');
    const bad = await check(`${name}#BadFilter`);
    expect(bad.code).toBe(2);
    expect(bad.stderr).toContain('BadFilter does not implement checkCreate, checkUpdate, onEnd');

    write(`node_modules/${name}/my.js`, "\nthrow new Error('no licence');");
    const { stderr } = await check(`${name}#MyFilter`);
    expect(stderr).toMatch(/\[enforcement\] enabled_filters: .*: no licence \(\S+\/my\.js:2\)\n$/);
  });

  it('is missed by name when the package is not installed', async () => {
    const { code, stderr } = await check('my-package#MyFilter');
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^error: .*"my-package#MyFilter" cannot be used: .*Cannot find package 'my-package'/,
    );
  });
});
