/** The package that `skypilot init` writes, beside the packed and installed package of this project. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { projectFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { scrubbedEnvironment } from '../../support/run-command.ts';

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly optional?: boolean }>>;
}

/** A folder in which the package is installed as npm does, with links to this project's own dependencies. */
function site(): string {
  const folder = realpathSync(temporaryFolder());
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], {
    ...{ cwd: projectFile('.'), encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  });
  const [{ filename = '' } = {}] = JSON.parse(packed) as { filename?: string }[];
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, 'blazar-enforcement'), { recursive: true });
  mkdirSync(join(modules, '.bin'));
  execFileSync('tar', [
    ...['-xzf', join(folder, filename), '-C', join(modules, 'blazar-enforcement'), '--strip-components=1'],
  ]);
  const { packages } = JSON.parse(readFileSync(projectFile('package-lock.json'), 'utf8')) as Lock;
  for (const [path, { dev, optional }] of Object.entries(packages)) {
    const name = path.replace('node_modules/', '');
    if (path !== '' && dev !== true && optional !== true && !name.includes('node_modules/')) {
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(projectFile(`node_modules/${name}`), join(modules, name));
    }
  }
  symlinkSync('../blazar-enforcement/dist/src/cli/main.js', join(modules, '.bin/blazar-enforcement'));
  return folder;
}

it('is installed and passes its cases with npm ci && npm test, and its types are right', () => {
  const folder = site();
  const run = (command: string, args: readonly string[], cwd = folder) => {
    const env = { ...scrubbedEnvironment(), npm_config_offline: 'true', npm_config_update_notifier: 'false' };
    const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', env });
    return { status, output: stdout + stderr };
  };
  const command = join(folder, 'node_modules/.bin/blazar-enforcement');
  for (const [name, path] of [
    ['MaxGpusPolicy', 'policies/max-gpus'],
    ['GPUQuota2Policy', 'quota'],
  ] as const) {
    expect(run(command, ['skypilot', 'init', path, '--name', name])).toMatchObject({ status: 0 });
    const own = join(folder, path);
    const installed = run('npm', ['ci'], own);
    expect(installed.status, installed.output).toBe(0);
    const tested = run('npm', ['test'], own);
    expect(tested.status, tested.output).toBe(0);
    expect(tested.output).toContain('3 passed');

    writeFileSync(
      join(own, 'jsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          ...{ checkJs: true, allowJs: true, strict: true, noEmit: true, skipLibCheck: true },
          ...{ module: 'nodenext', target: 'es2022', types: [] },
        },
        include: ['*.js'],
      }),
    );
    const types = run(
      process.execPath,
      [projectFile('node_modules/typescript/bin/tsc'), '-p', 'jsconfig.json'],
      own,
    );
    expect(types).toEqual({ status: 0, output: '' });
  }
});
