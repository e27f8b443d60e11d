/** Hard cases of the contract of filters, from the configuration to the answer. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { answers, check, FITS, NINE_DAYS } from '../support/check-command.ts';
import { confFile, projectFile, temporaryFile } from '../support/files.ts';
import { filterFolder, filterSource, temporaryFolder } from '../support/filter-folder.ts';
import { capturedText } from '../support/requests.ts';
import { COMMAND, runCommand, startCommand } from '../support/run-command.ts';
import { runService } from '../support/running-service.ts';

const CONF = projectFile('etc/policy-service.conf');
const enable = (folder: string, name: string) => [
  ...['--config', `enforcement.filters_path=${folder}`],
  ...['--config', `enforcement.enabled_filters=${name}`],
];

describe('an option that two filters declare', () => {
  it('belongs to the first: a default of the other counts for nothing', async () => {
    const folder = filterFolder({
      // Lexically before and after: neither is enabled, and each owns its prefix.
      'max-filter.js': `import { z } from 'zod';\n${filterSource('MaxFilter', { extra: 'static options = z.object({ max_lease_duration: z.int().default(5) });' })}`,
    });
    const { code, stdout } = await runCommand([
      'check',
      'create',
      FITS,
      '--format',
      'json',
      ...enable(folder, 'MaxLeaseDurationFilter'),
    ]);
    expect({ code, stdout }).toMatchObject({ code: 0 });
  });
  it('belongs to the chain where it is one of its own', async () => {
    const folder = filterFolder({
      'audit-filter.js': `import { z } from 'zod';\n${filterSource('AuditFilter', { extra: 'static options = z.object({ audit_filters: z.array(z.string()).default([]) });' })}`,
    });
    const { code, stderr } = await runCommand(['config', 'validate', ...enable(folder, 'AuditFilter')]);
    expect({ code, stderr }).toMatchObject({ code: 2 });
  });
});

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

describe('text that is not UTF-8', () => {
  const bad = Buffer.concat([
    Buffer.from('{"context":{"user_id":"u'),
    Buffer.from([0xff]),
    Buffer.from('","project_id":"p"},"lease":{"start_date":"2026-12-01","end_date":"2026-12-02"}}'),
  ]);
  it('is no JSON', async () => {
    const { post } = await runService();
    expect(await post('/check-create', bad)).toMatchObject({ status: 400 });
  });
  it('is refused when it says so itself', async () => {
    const { post } = await runService();
    for (const charset of ['latin1', 'iso-8859-1', 'utf-16', 'nonsense']) {
      expect(
        await post('/check-create', capturedText('check-create-physical-host.json'), {
          'Content-Type': `application/json; charset=${charset}`,
        }),
        charset,
      ).toMatchObject({ status: 415 });
    }
  });
  it('is not judged from standard input', async () => {
    expect(await runCommand(['check', 'create', '-', '--config-file', CONF], { stdin: bad })).toMatchObject({
      code: 2,
    });
  });
});

describe('a token that no header can carry', () => {
  it('is refused when it is empty', async () => {
    await expect(runService({ service: { tokens: [''] } })).rejects.toThrow(ConfigurationError);
  });
  it('is refused when it is not ASCII', async () => {
    await expect(runService({ service: { tokens: ['zoë-0123456789abcdef'] } })).rejects.toThrow(
      ConfigurationError,
    );
  });
});

describe('SIGTERM', () => {
  it('is obeyed while a client has sent half a body', async () => {
    const running = startCommand(['serve', '--config-file', CONF, '--port', '0']);
    const [, port] = await running.printed(/127\.0\.0\.1:(\d+)/);
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    socket.write(
      'POST /check-create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
    );
    await new Promise((go) => setTimeout(go, 200));
    running.process.kill('SIGTERM');
    const ended = await Promise.race([running.ended, new Promise((go) => setTimeout(go, 60_000).unref())]);
    running.process.kill('SIGKILL');
    socket.destroy();
    expect(ended).toMatchObject({ code: 0 });
  });
});

describe('a file of many that is no request', () => {
  it('is found before an answer is printed', async () => {
    const bad = temporaryFile('bad.json', '{}');
    expect(await check('create', [FITS, bad], '--format', 'json')).toMatchObject({ code: 2, stdout: '' });
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

describe('a mistake in a flag', () => {
  it('names the flag that was written', async () => {
    const { stderr } = await runCommand(['serve', '--config-file', CONF, '--port', 'x']);
    expect(stderr).toBe('error: --port: [service] port: expected a whole number from 0 to 65535, got "x"\n');
  });
});

describe('standard input', () => {
  it('can be named once, whatever it holds', async () => {
    const { stderr } = await runCommand(
      [
        'check',
        'create',
        '-',
        '-',
        '--config-file',
        confFile('[enforcement]\nenabled_filters=MaxLeaseDurationFilter\n'),
      ],
      { stdin: '{' },
    );
    expect(stderr).toContain('can be read once');
  });
});
