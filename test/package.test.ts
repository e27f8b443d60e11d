import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { projectFile } from './support/files.ts';

const read = (path: string) => readFileSync(projectFile(path), 'utf8');
const manifest = JSON.parse(read('package.json'));

/** Every file of the project itself, by its path in it. */
function ownFiles(folder = projectFile('.')): string[] {
  const foreign = ['node_modules', 'dist', 'coverage', '.git'];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return foreign.includes(entry.name) ? [] : ownFiles(path);
    }
    return entry.isFile() ? [relative(projectFile('.'), path)] : [];
  });
}

describe('package.json', () => {
  it('says what the package is', () => {
    expect(manifest).toMatchObject({
      name: 'blazar-enforcement',
      license: 'Apache-2.0',
      type: 'module',
      engines: { node: '>=20.19' },
    });
    expect(read('LICENSE')).toContain('Apache License');
  });

  it('names a command that is built and starts', () => {
    expect(Object.keys(manifest.bin)).toEqual(['blazar-enforcement']);
    const command = projectFile(manifest.bin['blazar-enforcement']);
    expect(readFileSync(command, 'utf8').split('\n')[0]).toBe('#!/usr/bin/env node');
    // npx runs it in a clone, where no installation makes it executable.
    accessSync(command, constants.X_OK);
    expect(execFileSync(process.execPath, [command, '--version'], { encoding: 'utf8' })).toBe(
      `${manifest.version}\n`,
    );
  });

  it('exports files that are built, with their types', () => {
    const entry = manifest.exports['.'];
    expect(Object.keys(entry)[0], 'TypeScript wants it first').toBe('types');
    for (const path of Object.values(entry) as string[]) {
      expect(existsSync(projectFile(path)), path).toBe(true);
    }
    expect(entry.types).toMatch(/\.d\.ts$/);
  });

  it('pins every dependency to one version', () => {
    const { dependencies, optionalDependencies, devDependencies } = manifest;
    const versions = Object.entries({ ...dependencies, ...optionalDependencies, ...devDependencies });
    expect(
      versions.filter(([, version]) => !/^(npm:[a-z]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(String(version))),
    ).toEqual([]);
  });

  it('has npm test check every change: build, types, format and lint, layers, tests', () => {
    const { scripts } = manifest;
    // Types are checked once, beside the build and the tests, which wait more than they compute.
    expect(scripts.test).toBe('concurrently --group npm:test:built npm:types npm:lint');
    expect(scripts['test:built']).toBe('npm run build -- --noCheck && npm run test:only');
    expect(scripts.build).toMatch(/typescript7\/bin\/tsc -p tsconfig\.build\.json$/);
    expect(scripts.types).toMatch(/^node node_modules\/typescript7\/bin\/tsc --noEmit( |$)/);
    expect(scripts.lint).toMatch(/^biome check \. && depcruise --config \.dependency-cruiser\.cjs /);
    expect(scripts['test:only']).toBe('vitest run --project suite');
    expect(scripts['test:proofs']).toBe('npm run build && vitest run --project proofs');
  });
});

describe('.github/workflows', () => {
  const workflows = readdirSync(projectFile('.github/workflows')).map((name) => {
    const text = read(`.github/workflows/${name}`);
    return { name, text, workflow: parse(text) };
  });

  it('test on the oldest Node.js that package.json allows, and on newer ones', () => {
    const { matrix } = workflows.find(({ name }) => name === 'test.yml')?.workflow.jobs.suite.strategy ?? {};
    expect(matrix).toEqual({ node: [manifest.engines.node.replace('>=', ''), 22, 24, 26] });
  });

  it('run scripts that exist, with actions pinned to a major version', () => {
    const all = workflows.map(({ text }) => text).join('\n');
    const scripts = [...all.matchAll(/npm (?:run )?([a-z][a-z:-]+)/g)].map(([, script]) => script);
    expect(
      scripts.filter(
        (script = '') => !['ci', 'pack', 'publish', 'sbom'].includes(script) && !(script in manifest.scripts),
      ),
    ).toEqual([]);
    const actions = [...all.matchAll(/uses: (.*)/g)].map(([, action]) => action);
    expect(actions.filter((action = '') => !/^(actions|docker)\/[a-z-]+@v\d+$/.test(action))).toEqual([]);
  });
});

describe('package-lock.json', () => {
  const lock = JSON.parse(read('package-lock.json'));

  it('has no download addresses', () => {
    const addressed = Object.entries(lock.packages as Record<string, object>).filter(
      ([, entry]) => 'resolved' in entry,
    );
    expect(addressed.map(([path]) => path)).toEqual([]);
    expect(read('package-lock.json')).not.toMatch(/"resolved"|https?:\/\/(registry|npm)/);
  });

  it('belongs to package.json, and pins what is installed by its hash', () => {
    const { dependencies, optionalDependencies, devDependencies } = lock.packages[''];
    expect({ dependencies, optionalDependencies, devDependencies }).toEqual({
      dependencies: manifest.dependencies,
      optionalDependencies: manifest.optionalDependencies,
      devDependencies: manifest.devDependencies,
    });
    const unpinned = Object.entries(lock.packages as Record<string, object>).filter(
      // npm knows the hash of a package for another platform only where it has been installed.
      ([path, entry]) =>
        path !== '' && !['integrity', 'link', 'inBundle', 'optional'].some((key) => key in entry),
    );
    expect(unpinned.map(([path]) => path)).toEqual([]);
  });
});

describe('the two commands of README.md', () => {
  const commands = [...read('README.md').matchAll(/^\s*(npm ci && .+?)\s*$/gm)].map(([, command]) => command);

  it('are npm ci && npm start, and npm ci && npm test', () => {
    expect([...new Set(commands)].sort()).toEqual(['npm ci && npm start', 'npm ci && npm test']);
  });

  it('are what .ci/run runs to prove a change: the second, whether it can fail, another Node.js, and then the proofs', () => {
    accessSync(projectFile('.ci/run'), constants.X_OK);
    const [shebang, ...lines] = read('.ci/run')
      .split('\n')
      .filter((line) => line !== '' && (line.startsWith('#!') || !line.startsWith('#')));
    expect(shebang).toMatch(/^#!.*sh$/);
    expect(lines.map((line) => line.trim())).toEqual([
      'set -euo pipefail',
      'cd "$(dirname "$0")/.."',
      'npm ci && npm test',
      'if TEST_THAT_FAILS=1 npm run test:only -- test/exit-code.test.ts; then',
      expect.stringMatching(/^echo '.+' >&2$/),
      'exit 1',
      'fi',
      'npm run test:node -- 24 test/ledger test/plugin test/http test/enforcement test/decisions',
      'npx vitest run --project proofs',
    ]);
  });
});

describe('the project', () => {
  it('stands alone: nothing in it reads what lies beside it', () => {
    const texts = ownFiles().filter(
      (path) => path !== 'test/package.test.ts' && !['.png', '.jpg', '.ico', '.gz'].includes(extname(path)),
    );
    expect(texts).toContain('src/index.ts');
    const reaching = texts.filter((path) => {
      const text = read(path);
      return /\.\.\/shared|\/work\/shared/.test(text) || leavesTheProject(path, text);
    });
    expect(reaching).toEqual([]);
  });

  it('holds no file that is too large to read', () => {
    const large = ownFiles().filter(
      (path) => path !== 'package-lock.json' && statSync(projectFile(path)).size > 256 * 1024,
    );
    expect(large).toEqual([]);
  });
});

/** Whether an import or a URL of a file leads out of the project. */
function leavesTheProject(path: string, text: string): boolean {
  const specifiers = text.matchAll(/(?:from |import\(?|new URL\()\s*['"](\.\.\/[^'"]*)['"]/g);
  return [...specifiers].some(([, specifier = '']) => join(path, '..', specifier).startsWith('..'));
}
