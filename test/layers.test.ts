import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { projectFile } from './support/files.ts';
import { temporaryFolder } from './support/filter-folder.ts';

interface Rule {
  readonly name: string;
  readonly severity: string;
  readonly from: { readonly path?: string };
  readonly to: { readonly pathNot?: string };
}

interface Cruise {
  readonly summary: {
    readonly violations: readonly { from: string; to: string; rule: { name: string } }[];
    readonly totalDependenciesCruised: number;
  };
}

const CONFIG = '.dependency-cruiser.cjs';
const CRUISER = projectFile('node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
const FOLDERS = [
  'src',
  'filters',
  'policies',
  'external-service-example',
  'test',
  'bench',
  'examples',
  'tools',
];
const RULES = (createRequire(import.meta.url)(projectFile(CONFIG)) as { forbidden: Rule[] }).forbidden;

const ROOM_RULE = /^(.+)-imports-what-is-below$/;
/** Room → the rooms that it may import, as the rules have them. */
const ROOMS = new Map(
  RULES.flatMap(({ name, to: { pathNot } }) => {
    const room = ROOM_RULE.exec(name)?.[1];
    const below = /^\^src\/\((.+)\)\/$/.exec(String(pathNot))?.[1]?.split('|') ?? [];
    return room === undefined
      ? []
      : [[room, below.filter((other) => other !== room && other !== 'base')] as const];
  }),
);

/** Rule → imports that break it: file, what it imports, and where that leads. */
const FORBIDDEN: Record<string, [from: string, specifier: string, to: string][]> = {
  'no-circular': [
    ['src/egg.ts', './chicken.ts', 'src/chicken.ts'],
    ['src/chicken.ts', './egg.ts', 'src/egg.ts'],
    ['src/one.ts', 'type ./two.ts', 'src/two.ts'],
    ['src/two.ts', 'type ./one.ts', 'src/one.ts'],
  ],
  'src-names-no-file-of-filters': [
    ['src/base/b.ts', '../../filters/one-filter.ts', 'filters/one-filter.ts'],
    ['src/cli/names.ts', '../../filters/one-filter.ts', 'filters/one-filter.ts'],
    ['src/config/names.ts', '../../filters/one-filter.ts', 'filters/one-filter.ts'],
  ],
  'filters-import-what-the-package-exports': [
    ['filters/two-filter.ts', '../src/config/room.ts', 'src/config/room.ts'],
    ['filters/three-filter.ts', 'type ../src/filter/room.ts', 'src/filter/room.ts'],
    ['filters/four-filter.ts', '../src/kubernetes/room.ts', 'src/kubernetes/room.ts'],
    ['filters/five-filter.ts', './one-filter.ts', 'filters/one-filter.ts'],
  ],
  'src-names-no-file-of-policies': [
    ['src/base/g.ts', '../../policies/one-policy.ts', 'policies/one-policy.ts'],
    ['src/skypilot/names.ts', '../../policies/one-policy.ts', 'policies/one-policy.ts'],
  ],
  'policies-import-what-the-package-exports': [
    ['policies/two-policy.ts', '../src/config/room.ts', 'src/config/room.ts'],
    ['policies/three-policy.ts', 'type ../src/skypilot/room.ts', 'src/skypilot/room.ts'],
    ['policies/four-policy.ts', './one-policy.ts', 'policies/one-policy.ts'],
    ['policies/five-policy.ts', '../filters/one-filter.ts', 'filters/one-filter.ts'],
  ],
  'browser-stands-alone': [
    ['src/server/console/browser/one.ts', 'type ../page.ts', 'src/server/console/page.ts'],
    ['src/server/console/browser/two.ts', '../page.ts', 'src/server/console/page.ts'],
  ],
  'browser-is-not-run-here': [
    ['src/server/console/page-a.ts', './browser/one.ts', 'src/server/console/browser/one.ts'],
  ],
  'example-stands-alone': [
    ['external-service-example/server-a.ts', '../src/index.ts', 'src/index.ts'],
    ['external-service-example/server-b.ts', '../filters/one-filter.ts', 'filters/one-filter.ts'],
  ],
  'nothing-ships-with-tests': [
    ['src/base/d.ts', '../../test/helper.ts', 'test/helper.ts'],
    ['filters/six-filter.ts', '../bench/bench.ts', 'bench/bench.ts'],
  ],
  'no-dev-dependency-at-run-time': [
    ['src/base/e.ts', 'vitest', 'vitest'],
    ['filters/seven-filter.ts', 'fast-check', 'fast-check'],
    ['external-service-example/server-c.ts', 'tinybench', 'tinybench'],
  ],
  'no-package-that-package-json-does-not-name': [['src/server/packages.ts', 'raw-body', 'raw-body']],
  'nothing-unresolvable': [
    ['src/base/f.ts', './nowhere.ts', 'nowhere.ts'],
    ['test/lost.test.ts', 'no-such-package', 'no-such-package'],
  ],
};

// Every room imports every other one: what the list of rooms does not name is found.
for (const [room, below] of ROOMS) {
  FORBIDDEN[`${room}-imports-what-is-below`] = [...ROOMS.keys(), 'index.ts']
    .filter((other) => other !== room && other !== 'base' && !below.includes(other))
    .map((other) => {
      const path = other === 'index.ts' ? other : `${other}/room.ts`;
      return [`src/${room}/to-${other}`.replace(/(\.ts)?$/, '.ts'), `type ../${path}`, `src/${path}`];
    });
}

/** What points the right way. */
const ALLOWED: Record<string, string> = {
  'src/index.ts': [...ROOMS.keys()].map((room) => `export * from './${room}/room.ts';`).join(' '),
  'src/kubernetes/index.ts': "export * from './room.ts';",
  'filters/one-filter.ts':
    "import '../src/index.ts'; import '../src/kubernetes/index.ts'; import 'zod'; import 'node:fs';",
  'src/skypilot/index.ts': "export * from './room.ts';",
  'policies/one-policy.ts': "import '../src/index.ts'; import '../src/skypilot/index.ts'; import 'zod';",
  'external-service-example/server.ts': "import 'koa'; import 'luxon';",
  'test/helper.ts': "import '../src/ledger/room.ts'; import '../filters/one-filter.ts'; import 'vitest';",
  'bench/bench.ts': "import '../src/index.ts'; import 'tinybench';",
  'examples/filters/my-filter.js': "import 'blazar-enforcement'; import 'zod';",
  'examples/filters/their-filter.js': "import 'blazar-enforcement/kubernetes';",
  'tools/tool.js': "import '../src/index.ts';",
  'src/server/console/page.ts': "export type * from './browser/data.ts';",
  'src/server/console/browser/data.ts': "import 'uplot';",
  'examples/policies/my-policy.js': "import 'blazar-enforcement/skypilot';",
  ...Object.fromEntries(
    [...ROOMS].map(([room, below]) => [
      `src/${room}/room.ts`,
      `${['base', ...below]
        .filter((other) => other !== room)
        .map((other) => `import '../${other}/room.ts';`)
        .join(' ')} export const ${room} = 1;`,
    ]),
  ),
};

function importing(specifier: string): string {
  const [type, path] = specifier.split(' ');
  return path === undefined ? `import '${type}';` : `import type { A } from '${path}'; export type B = A;`;
}

/** The project's rules on a tree with its packages and nothing but these files. */
async function cruise(files: Readonly<Record<string, string>>): Promise<Cruise> {
  const cwd = temporaryFolder();
  for (const name of [CONFIG, 'package.json', 'tsconfig.json']) {
    cpSync(projectFile(name), join(cwd, name));
  }
  symlinkSync(projectFile('node_modules'), join(cwd, 'node_modules'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  const args = [CRUISER, '--config', CONFIG, '--output-type', 'json', ...FOLDERS];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd, maxBuffer: 2 ** 26 });
  return JSON.parse(stdout) as Cruise;
}

describe('the layer rules', () => {
  it('each find an import that points the wrong way, at its place, and nothing else', async () => {
    const breaches = Object.entries(FORBIDDEN).flatMap(([rule, imports]) =>
      imports.map(([from, specifier, to]) => ({ rule, from, specifier, to })),
    );
    const broken = breaches.map(({ from, specifier }) => [from, importing(specifier)]);
    const { summary } = await cruise({ ...ALLOWED, ...Object.fromEntries(broken) });
    const found = summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`);
    const missed = breaches.filter(
      ({ rule, from, to }) =>
        // A package is found in its folder, and a circle is reported once, from either end.
        !found.some((one) => one.startsWith(`${rule}: ${from} -> `) && one.includes(to)) &&
        !found.includes(`${rule}: ${to} -> ${from}`),
    );
    expect(missed).toEqual([]);
    expect(summary.violations.filter(({ from }) => from in ALLOWED)).toEqual([]);
    expect(summary.totalDependenciesCruised).toBeGreaterThan(200);
  });

  it('are all tried here, and npm run lint applies them to every folder', () => {
    expect(RULES.map(({ name }) => name).sort()).toEqual(Object.keys(FORBIDDEN).sort());
    expect(RULES.filter(({ severity }) => severity !== 'error')).toEqual([]);
    const { scripts } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    const folders = /depcruise --config \S+ (.+)$/.exec(scripts.lint)?.[1]?.split(' ') ?? [];
    expect(folders.toSorted()).toEqual(FOLDERS.toSorted());
  });

  it('have every folder of src as a room', () => {
    expect([...ROOMS.keys()].sort()).toEqual(foldersOf('src'));
  });
});

describe('the map in docs/architecture.md', () => {
  const rows = readFileSync(projectFile('docs/architecture.md'), 'utf8')
    .split('\n')
    .flatMap((line) => [...line.matchAll(/^\| `([^`]+)` +\| [^|]+ \| ([^|]*?) *\|$/g)])
    .map(([, folder = '', imports = '']) => ({
      folder,
      imports: [...imports.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
    }));

  it('has every room, and what each may import', () => {
    const drawn = rows.flatMap(({ folder, imports }) =>
      folder.startsWith('src/') ? [[folder.slice('src/'.length), imports.toSorted()]] : [],
    );
    expect(Object.fromEntries(drawn)).toEqual(
      Object.fromEntries([...ROOMS].map(([room, below]) => [room, below.toSorted()])),
    );
  });

  it('has every folder that is compiled, tried or published', () => {
    const { include } = JSON.parse(readFileSync(projectFile('tsconfig.json'), 'utf8'));
    const { files } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    const folders = [...include, ...files].filter((name: string) => !/[.*]|^dist/.test(name));
    const drawn = new Set(rows.map(({ folder }) => folder.split('/')[0]));
    expect(folders).toContain('docs');
    expect(folders.filter((folder: string) => !drawn.has(folder))).toEqual([]);
  });
});

function foldersOf(path: string): string[] {
  return readdirSync(projectFile(path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}
