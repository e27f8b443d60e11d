import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { projectFile } from './support/files.ts';
import { temporaryFolder } from './support/filter-folder.ts';

interface Cruise {
  summary: {
    violations: { from: string; to: string; rule: { name: string } }[];
    totalDependenciesCruised: number;
  };
  modules: { source: string; dependencies: { resolved: string }[] }[];
}

const CONFIG = '.dependency-cruiser.cjs';
const CRUISER = projectFile('node_modules/dependency-cruiser/bin/dependency-cruise.mjs');

async function cruise(cwd: string, folders: readonly string[]): Promise<Cruise> {
  const args = [CRUISER, '--config', CONFIG, '--output-type', 'json', ...folders];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd, maxBuffer: 2 ** 26 });
  return JSON.parse(stdout) as Cruise;
}

/** Rule → imports that break it: file, what it imports, and where that leads. */
const FORBIDDEN: Record<string, [from: string, specifier: string, to: string][]> = {
  'no-circular': [
    ['src/egg.ts', './chicken.ts', 'src/chicken.ts'],
    ['src/chicken.ts', './egg.ts', 'src/egg.ts'],
  ],
  'core-names-no-filter': [
    ['src/core-a.ts', '../filters/one-filter.ts', 'filters/one-filter.ts'],
    ['src/cli/cli-a.ts', '../../filters/one-filter.ts', 'filters/one-filter.ts'],
    ['src/server/server-a.ts', '../../filters/one-filter.ts', 'filters/one-filter.ts'],
    ['src/config/config-a.ts', '../../filters/one-filter.ts', 'filters/one-filter.ts'],
  ],
  'config-stands-alone': [
    ['src/config/config-b.ts', '../enforcement.ts', 'src/enforcement/enforcement.ts'],
    ['src/config/config-c.ts', '../server/server.ts', 'src/server/server.ts'],
    ['src/config/config-d.ts', '../cli/cli.ts', 'src/cli/cli.ts'],
  ],
  'core-knows-no-door': [
    ['src/core-b.ts', './server/server.ts', 'src/server/server.ts'],
    ['src/core-c.ts', './cli/cli.ts', 'src/cli/cli.ts'],
    ['src/core-g.ts', './conformance/run.ts', 'src/conformance/run.ts'],
    ['src/core-h.ts', './skypilot/policy.ts', 'src/skypilot/policy.ts'],
    ['src/core-i.ts', './kubernetes/index.ts', 'src/kubernetes/index.ts'],
  ],
  'scheduling-policies-know-no-door': [
    ['src/kubernetes/pods-a.ts', '../server/server.ts', 'src/server/server.ts'],
    ['src/kubernetes/pods-b.ts', '../skypilot/policy.ts', 'src/skypilot/policy.ts'],
  ],
  'policies-know-no-door': [
    ['src/skypilot/policy-a.ts', '../server/server.ts', 'src/server/server.ts'],
    ['src/skypilot/policy-b.ts', '../cli/cli.ts', 'src/cli/cli.ts'],
    ['src/skypilot/policy-c.ts', '../kubernetes/index.ts', 'src/kubernetes/index.ts'],
  ],
  'conformance-tests-strangers': [
    ['src/conformance/run-a.ts', '../server/server.ts', 'src/server/server.ts'],
    ['src/conformance/run-b.ts', '../cli/cli.ts', 'src/cli/cli.ts'],
  ],
  'server-knows-no-command-line': [['src/server/server-b.ts', '../cli/cli.ts', 'src/cli/cli.ts']],
  'filters-import-the-core-only': [
    ['filters/two-filter.ts', '../src/config/config.ts', 'src/config/config.ts'],
    ['filters/three-filter.ts', '../src/server/server.ts', 'src/server/server.ts'],
    ['filters/four-filter.ts', '../src/cli/cli.ts', 'src/cli/cli.ts'],
    ['filters/five-filter.ts', './one-filter.ts', 'filters/one-filter.ts'],
    ['filters/eight-filter.ts', '../src/enforcement/enforcement.ts', 'src/enforcement/enforcement.ts'],
    ['filters/nine-filter.ts', '../src/kubernetes/rules.ts', 'src/kubernetes/rules.ts'],
  ],
  'example-stands-alone': [
    ['external-service-example/server-a.ts', '../src/index.ts', 'src/index.ts'],
    ['external-service-example/server-b.ts', '../filters/one-filter.ts', 'filters/one-filter.ts'],
  ],
  'nothing-ships-with-tests': [
    ['src/core-d.ts', '../test/helper.ts', 'test/helper.ts'],
    ['filters/six-filter.ts', '../bench/bench.ts', 'bench/bench.ts'],
  ],
  'no-dev-dependency-at-run-time': [
    ['src/core-e.ts', 'vitest', 'vitest'],
    ['filters/seven-filter.ts', 'fast-check', 'fast-check'],
    ['external-service-example/server-c.ts', 'tinybench', 'tinybench'],
  ],
  'no-package-that-package-json-does-not-name': [['src/server/server-c.ts', 'raw-body', 'raw-body']],
  'nothing-unresolvable': [
    ['src/core-f.ts', './nowhere.ts', 'nowhere.ts'],
    ['test/lost.test.ts', 'no-such-package', 'no-such-package'],
  ],
};

/** What points the right way, besides the import that is broken. */
const ALLOWED: Record<string, string> = {
  'src/index.ts': "export * from './enforcement.ts';",
  'src/enforcement/enforcement.ts':
    "import './config/config.ts'; import './errors.ts'; import 'zod'; export const a = 1;",
  'src/errors.ts': "import type { Two } from './two.ts'; export type One = Two;",
  // Types may refer to each other.
  'src/two.ts': "import type { One } from './errors.ts'; export type Two = One | 2;",
  'src/config/config.ts': "import '../errors.ts'; import './more.ts';",
  'src/config/more.ts': 'export {};',
  'src/conformance/run.ts': "import '../http/client.ts'; import '../errors.ts'; import 'undici';",
  'src/http/client.ts': 'export {};',
  'src/skypilot/policy.ts': "import '../enforcement.ts'; import '../config/config.ts';",
  'src/kubernetes/index.ts': "import './rules.ts'; import '../errors.ts'; import '../config/config.ts';",
  'src/kubernetes/rules.ts': 'export {};',
  'src/server/server.ts':
    "import '../skypilot/policy.ts'; import '../kubernetes/index.ts'; import '../enforcement.ts'; import '../config/config.ts'; import 'koa';",
  'src/cli/cli.ts':
    "import '../server/server.ts'; import '../conformance/run.ts'; import '../enforcement.ts'; import('../config/config.ts');",
  'filters/one-filter.ts':
    "import '../src/index.ts'; import '../src/kubernetes/index.ts'; import 'zod'; import 'node:fs';",
  'external-service-example/server.ts': "import 'koa'; import 'luxon';",
  'test/helper.ts':
    "import '../src/enforcement/enforcement.ts'; import '../filters/one-filter.ts'; import 'vitest';",
  'bench/bench.ts': "import '../src/index.ts'; import 'tinybench';",
  'examples/filters/my-filter.js': "import 'blazar-enforcement'; import 'zod';",
  'examples/filters/their-filter.js': "import 'blazar-enforcement/kubernetes';",
  'examples/admin-policies/my-policy.js': "import 'blazar-enforcement/skypilot';",
};

/** A tree with the project's rules, its packages, and nothing but these files. */
function tree(files: Readonly<Record<string, string>>): string {
  const folder = temporaryFolder();
  for (const name of [CONFIG, 'package.json', 'tsconfig.json']) {
    cpSync(projectFile(name), join(folder, name));
  }
  symlinkSync(projectFile('node_modules'), join(folder, 'node_modules'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

const FOLDERS = ['src', 'filters', 'external-service-example', 'test', 'bench', 'examples'];

describe('the layer rules', () => {
  it('each find an import that points the wrong way, at its place', async () => {
    const breaches = Object.entries(FORBIDDEN).flatMap(([rule, imports]) =>
      imports.map(([from, specifier, to]) => ({ rule, from, specifier, to })),
    );
    const broken = breaches.map(({ from, specifier }) => [from, `import '${specifier}';`]);
    const { summary } = await cruise(tree({ ...ALLOWED, ...Object.fromEntries(broken) }), FOLDERS);
    for (const { rule, from, to } of breaches) {
      const found = summary.violations.filter(
        (violation) =>
          violation.rule.name === rule &&
          ((violation.from === from && violation.to.includes(to)) ||
            // A cycle is reported once, from either end.
            (violation.from === to && violation.to === from)),
      );
      expect(found, `${rule}: ${from} -> ${to}`).not.toEqual([]);
    }
    const innocent = summary.violations.filter(({ from }) => from in ALLOWED);
    expect(innocent).toEqual([]);
  });

  it('are all tried here', () => {
    const { forbidden } = createRequire(import.meta.url)(projectFile(CONFIG)) as {
      forbidden: { name: string; severity: string }[];
    };
    expect(forbidden.map(({ name }) => name).sort()).toEqual(Object.keys(FORBIDDEN).sort());
    expect(forbidden.filter(({ severity }) => severity !== 'error')).toEqual([]);
  });

  it('let through what points the right way, and types that refer to each other', async () => {
    const { summary } = await cruise(tree(ALLOWED), FOLDERS);
    expect(summary.violations).toEqual([]);
    expect(summary.totalDependenciesCruised).toBeGreaterThan(20);
  });
});

describe('the tree', () => {
  it('keeps the rules, in every folder that npm run lint looks at', async () => {
    const { scripts } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    const folders = /depcruise --config \S+ (.+)$/.exec(scripts.lint)?.[1]?.split(' ') ?? [];
    expect(folders.toSorted()).toEqual(FOLDERS.toSorted());
    const { summary, modules } = await cruise(projectFile('.'), folders);
    expect(summary.violations).toEqual([]);
    // A parser that can't read TypeScript would find nothing wrong either.
    const generation = modules.find(({ source }) => source === 'src/server/generation.ts');
    expect(generation?.dependencies.map(({ resolved }) => resolved)).toContain(
      'src/enforcement/enforcement.ts',
    );
  });
});
