/** The package as npm packs it, in a folder with nothing else: no source tree, no development dependencies. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectFile } from './support/files.ts';

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly optional?: boolean }>>;
}

/** As a careful user has it: nothing is skipped, and no types are loaded that nobody asks for. */
const STRICT = {
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  module: 'nodenext',
  target: 'es2022',
  types: [],
  noEmit: true,
};

/** Those that have SQLite. */
const VERSIONS = ['22', '24', '26'];

let folder: string;
let tarball: string;

const run = (command: string, args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8' });
  return { status, output: stdout + stderr };
};
const node = (...args: string[]) => run(process.execPath, args);
const tool = (name: string, ...args: string[]) => node(projectFile(`node_modules/${name}`), ...args);

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'blazar-enforcement-package-')));
  // No scripts: they would build again while other files use the built command.
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], {
    cwd: projectFile('.'),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [{ filename = '' } = {}] = JSON.parse(packed) as { filename?: string }[];
  tarball = join(folder, filename);

  const modules = join(folder, 'node_modules');
  const unpacked = join(modules, 'blazar-enforcement');
  mkdirSync(unpacked, { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '-C', unpacked, '--strip-components=1']);
  for (const name of productionPackages()) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(projectFile(`node_modules/${name}`), join(modules, name));
  }
  writeFileSync(join(folder, 'package.json'), '{"type":"module","private":true}');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What npm installs beside the package: links to this project's own, so that no network is needed. */
function productionPackages(): string[] {
  const { packages } = JSON.parse(readFileSync(projectFile('package-lock.json'), 'utf8')) as Lock;
  return Object.entries(packages)
    .filter(([path, { dev, optional }]) => path !== '' && dev !== true && optional !== true)
    .map(([path]) => path.replace('node_modules/', ''))
    .filter((name) => !name.includes('node_modules/'));
}

describe('the packed package', () => {
  it('has no mistake that publint finds', () => {
    expect(tool('publint/src/cli.js', 'run', tarball, '--strict')).toEqual({
      status: 0,
      output: expect.stringContaining('All good!'),
    });
  });

  it('has types that every way of importing it finds', () => {
    const { status, output } = tool('@arethetypeswrong/cli/dist/index.js', tarball, '--profile', 'esm-only');
    expect(output).toContain('blazar-enforcement/kubernetes');
    expect(status, output).toBe(0);
  });

  it('holds no source maps, which would be more than half of it', () => {
    const files = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' });
    expect(files).toContain('package/dist/src/index.js\n');
    expect(files).not.toMatch(/\.map$/m);
  });

  it('runs its command, also after somebody has run a script that is for clones', () => {
    const built = run('npm', [
      '--prefix',
      'node_modules/blazar-enforcement',
      'run',
      'external-service-example',
    ]);
    expect(built).toMatchObject({ status: 1, output: expect.stringContaining('to build, use a clone') });
    const { version } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8')) as { version: string };
    const command = 'node_modules/blazar-enforcement/dist/src/cli/main.js';
    expect(node(command, '--version')).toEqual({ status: 0, output: `${version}\n` });
    expect(node(command, 'filters', 'list', '--config', 'enforcement.enabled_filters=').output).toContain(
      'MaxLeaseDurationFilter',
    );
  });

  it('decides about a lease', () => {
    writeFileSync(
      join(folder, 'decide.js'),
      `import { UsageEnforcement } from 'blazar-enforcement';
      const enforcement = await UsageEnforcement.load({
        configFiles: [],
        environment: {},
        values: { enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 60 } },
      });
      const { allowed } = await enforcement.checkCreate({
        context: { user_id: 'alice', project_id: 'climate' },
        lease: { start_date: '2026-12-01T09:00:00', end_date: '2026-12-02T09:00:00', reservations: [] },
      });
      console.log(allowed);
      await enforcement.close();`,
    );
    expect(node('decide.js')).toEqual({ status: 0, output: 'false\n' });
  });

  it('has types without a gap for strict TypeScript that checks libraries too', () => {
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: STRICT }));
    // A date is a date: with luxon's types missing it would be "any", and take a number.
    writeFileSync(
      join(folder, 'consumer.ts'),
      `import { BaseFilter, LedgerFilter, type Lease, type Reservation, UsageEnforcement } from 'blazar-enforcement';
      import { createApiClient } from 'blazar-enforcement/client';
      import { SchedulingPolicies } from 'blazar-enforcement/kubernetes';
      import { AdminPolicy } from 'blazar-enforcement/skypilot';
      import { readRules } from 'blazar-enforcement/rules';
      export const used = [BaseFilter, LedgerFilter, UsageEnforcement, AdminPolicy, SchedulingPolicies, readRules];
      export const client = createApiClient({ endpoint: 'http://127.0.0.1' });
      export const lease: Lease = { start_date: new Date(), end_date: '2026-12-01T09:00:00', reservations: [] };
      // @ts-expect-error
      export const dated: Lease = { start_date: 1 };
      export const reservation: Reservation = { resource_type: 'physical:host', min: 1, max: 1 };`,
    );
    expect(tool('typescript/bin/tsc', '-p', '.')).toEqual({ status: 0, output: '' });
  });
});

describe('installed for the whole machine', () => {
  const programs = new Map<string, string>();
  let prefix: string;
  let installed: string;
  const started = (version: string, command: string, ...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(command, args, {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, PATH: `${dirname(programs.get(version) ?? '')}${delimiter}${process.env.PATH}` },
    });
    expect(status, `${command} ${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
    return stdout;
  };
  const how = () => ['--global', '--prefix', prefix, '--no-audit', '--no-fund'];

  beforeAll(() => {
    for (const version of VERSIONS) {
      const download = `import { downloadedNode } from ${JSON.stringify(projectFile('tools/downloaded-node.js'))};
      process.stdout.write(downloadedNode('${version}'));`;
      const { status, output } = node('--input-type=module', '--eval', download);
      expect(status, output).toBe(0);
      programs.set(version, output);
    }
    prefix = join(folder, 'machine');
    installed = join(prefix, 'bin/blazar-enforcement');
    // Nothing is compiled: what one version installs, all can run.
    started('22', 'npm', 'install', ...how(), '--ignore-scripts', tarball);
  });

  it.each(VERSIONS)('decides, and keeps a ledger, with Node.js %s', (version) => {
    expect(started(version, 'node', '--version')).toMatch(new RegExp(`^v${version}\\.`));
    const file = join(folder, `blazar-${version}.conf`);
    const ledger = `[ledger]\nconnection = sqlite://${folder}/ledger-${version}.db\n`;
    writeFileSync(file, `[enforcement]\nenabled_filters = UsageBudgetFilter\n${ledger}`);
    started(version, installed, 'ledger', 'upgrade', '--config-file', file);
    const valid = ['--from', '2026-01-01', '--until', '2060-01-01', '--reason', 'a proof'];
    started(
      version,
      installed,
      'budget',
      'set',
      'climate',
      '--amount',
      '10',
      ...valid,
      '--config-file',
      file,
    );
    expect(started(version, installed, 'budget', 'list', '--config-file', file)).toContain('climate');
  });

  it('is removed as a whole', () => {
    started('26', 'npm', 'uninstall', ...how(), 'blazar-enforcement');
    expect(existsSync(installed)).toBe(false);
  });
});
