/** Hard cases of the contract of filters, from the configuration to the answer. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { answers, FITS, NINE_DAYS } from '../support/check-command.ts';
import { projectFile, temporaryFile } from '../support/files.ts';
import { filterFolder, filterSource, temporaryFolder } from '../support/filter-folder.ts';
import { COMMAND, runCommand } from '../support/run-command.ts';

const CONF = projectFile('etc/policy-service.conf');
const enable = (folder: string, name: string) => [
  ...['--config', `enforcement.filters_path=${folder}`],
  ...['--config', `enforcement.enabled_filters=${name}`],
];

describe('a filter that never answers', () => {
  const folder = () =>
    filterFolder({
      'never-filter.js': filterSource('NeverFilter', {
        create: 'return new Promise(() => {});',
        end: 'return new Promise(() => {});',
      }),
    });
  it('has failed when the deadline is over', async () => {
    const { code, stdout } = await runCommand([
      'check',
      'create',
      FITS,
      '--format',
      'json',
      '--config',
      'service.deadline=1',
      ...enable(folder(), 'NeverFilter'),
    ]);
    expect({ code, stdout }).toMatchObject({ code: 3 });
    expect(answers(stdout)).toMatchObject([{ failed: true, filter: 'NeverFilter' }]);
  });
  it('is refused when not even its file comes to an end', async () => {
    const tla = filterFolder({
      'tla-filter.js': `await new Promise(() => {});\n${filterSource('TlaFilter')}`,
    });
    const { code, stderr } = await runCommand(['config', 'validate', ...enable(tla, 'TlaFilter')]);
    expect({ code, stderr }).toMatchObject({ code: 2 });
    expect(stderr).toContain('no answer within 10 s');
  });
});

describe('a filter that leaves a promise to itself', () => {
  it('ends the command with one line and an exit code of its own', async () => {
    const folder = filterFolder({
      'float-filter.js': filterSource('FloatFilter', {
        create: "Promise.reject(new Error('floating')); return allow();",
      }),
    });
    const { code, stderr } = await runCommand(['check', 'create', FITS, ...enable(folder, 'FloatFilter')]);
    expect({ code, stderr }).toEqual({ code: 70, stderr: 'error: floating\n' });
  });
});

describe('hostile text in a mistake', () => {
  it.for([
    ['check', 'create', 'a\nb\u001b[31m.json', '--config-file', CONF],
    ['x\u001b[31my'],
    ['--x\u001b[31my'],
    ['check', 'create', FITS, '--format', '\u001b[31m'],
  ])('is printed on one line without control characters: %j', async (args) => {
    const { code, stderr } = await runCommand(args);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^[^\n]+\n$/);
    expect(stderr).not.toMatch(/(?!\n)\p{Cc}/u);
  });
  it('in a date neither', async () => {
    const body = JSON.stringify({
      context: { user_id: 'u', project_id: 'p' },
      lease: { start_date: '\u009b31m' },
    });
    const { code, stderr } = await runCommand([
      'check',
      'create',
      temporaryFile('x.json', body),
      '--config-file',
      CONF,
    ]);
    expect(code).toBe(2);
    expect(stderr).not.toMatch(/(?!\n)\p{Cc}/u);
  });
});

describe('a filter of a package in the working directory', () => {
  const site = (manifest: object) => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'node_modules/my-package'), { recursive: true });
    writeFileSync(
      join(folder, 'node_modules/my-package/package.json'),
      JSON.stringify({ name: 'my-package', type: 'module', ...manifest }),
    );
    writeFileSync(
      join(folder, 'node_modules/my-package/my.js'),
      filterSource('MyFilter', { create: "return reject('by package');" }),
    );
    return folder;
  };
  it('is found without filters_path, and finds this package', async () => {
    const { code, stderr } = await runCommand(
      ['check', 'create', FITS, '--config', 'enforcement.enabled_filters=my-package#MyFilter'],
      { cwd: site({ exports: './my.js' }) },
    );
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  });
  it('is found when its package can only be imported', async () => {
    const cwd = site({ exports: { '.': { import: './my.js' } } });
    mkdirSync(join(cwd, 'f'));
    const { code, stderr } = await runCommand(
      ['check', 'create', FITS, ...enable('f', 'my-package#MyFilter')],
      { cwd },
    );
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  });
});

describe('when nobody reads', () => {
  it('a rejected lease is not taken for an allowed one', async () => {
    const child = spawn(process.execPath, [COMMAND, 'check', 'create', NINE_DAYS, '--config-file', CONF], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    const [code] = await once(child, 'close');
    expect(code).not.toBe(0);
  });
  it('a mistake is not taken for a rejection', async () => {
    const child = spawn(
      process.execPath,
      [COMMAND, 'check', 'create', NINE_DAYS, '--config-file', '/nowhere'],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    child.stderr.destroy();
    const [code] = await once(child, 'close');
    expect(code).toBe(2);
  });
});
