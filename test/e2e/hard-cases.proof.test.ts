/** Hard cases of the contract of filters, from the configuration to the answer. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, describe, expect, it } from 'vitest';
import { answers, FITS, NINE_DAYS } from '../support/check-command.ts';
import { projectFile, temporaryFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { COMMAND, runCommand } from '../support/run-command.ts';

const CONF = projectFile('etc/policy-service.conf');
const enable = (folder: string, name: string) => [
  '--config',
  `enforcement.filters_path=${folder}`,
  '--config',
  `enforcement.enabled_filters=${name}`,
];

// It takes ten seconds: the other tests run meanwhile.
const unending = filterFolder(
  { 'tla-filter.js': `await new Promise(() => {});\n${filterSource('TlaFilter')}` },
  afterAll,
);
const validated = runCommand(['config', 'validate', ...enable(unending, 'TlaFilter')]);

describe('a filter that never answers', () => {
  it('has failed when the deadline is over', async () => {
    const folder = filterFolder({
      'never-filter.js': filterSource('NeverFilter', { create: 'return new Promise(() => {});' }),
    });
    const { code, stdout } = await runCommand([
      'check',
      'create',
      FITS,
      '--format',
      'json',
      '--config',
      'service.deadline=1',
      ...enable(folder, 'NeverFilter'),
    ]);
    expect({ code, stdout }).toMatchObject({ code: 3 });
    expect(answers(stdout)).toMatchObject([{ failed: true, filter: 'NeverFilter' }]);
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
    expect({ code, stderr }).toEqual({ code: 70, stderr: `error: floating (${folder}/float-filter.js:4)\n` });
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
    const file = temporaryFile('x.json', body);
    const { code, stderr } = await runCommand(['check', 'create', file, '--config-file', CONF]);
    expect(code).toBe(2);
    expect(stderr).not.toMatch(/(?!\n)\p{Cc}/u);
  });
});

describe('when nobody reads', () => {
  it.each([
    ['a rejected lease is not taken for an allowed one', 'stdout', CONF],
    ['a mistake is not taken for a rejection', 'stderr', '/nowhere'],
  ] as const)('%s', async (_, output, conf) => {
    const child = spawn(process.execPath, [COMMAND, 'check', 'create', NINE_DAYS, '--config-file', conf], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child[output].destroy();
    const [code] = await once(child, 'close');
    expect(output === 'stderr' ? code === 2 : code !== 0).toBe(true);
  });
});

it('a filter whose file does not come to an end is refused', async () => {
  const { code, stderr } = await validated;
  expect({ code, stderr }).toMatchObject({ code: 2 });
  expect(stderr).toContain('no answer within 10 s');
});
