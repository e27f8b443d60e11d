/** Where configuration files are found, and whose files are read. */
import { chmodSync, chownSync, lchownSync, mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatOrigin, formatProblem } from '../../src/base/errors.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { type ClientSources, configFile, effective, readEntries as read, readAsClient } from './helpers.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) {
  console.warn('SKIPPED: tests with files of another user need root');
}

/** An empty home and an empty project, and no server files. */
function places() {
  const home = temporaryFolder();
  const project = temporaryFolder();
  const own = join(home, '.config', 'blazar-enforcement');
  mkdirSync(own, { recursive: true });
  const sources = { configFiles: [], projectFolder: project, environment: { HOME: home } };
  return { home, project, own, sources };
}

/** The problems of the whole configuration, with whole file names. */
async function problems(sources: ClientSources): Promise<string[]> {
  const enabled = { enforcement: { enabled_filters: ['MaxLeaseDurationFilter'] } };
  const { problems: found } = await readAsClient({ environment: {}, values: enabled, ...sources });
  return found
    .filter(({ message }) => !/serve does not read|limits nothing/.test(message))
    .map((problem) => `${problem.severity}: ${formatProblem(problem)}`);
}

it('all sources override each other in this order: default, files, folders, user, project, environment, --config, code', async () => {
  const { own, project, home } = places();
  const conf = join(home, '1.conf');
  const x = join(home, 'x');
  const y = join(home, 'y');
  const all: (readonly [string, ClientSources])[] = [
    ['default', {}],
    ['1.conf:2', { configFiles: [configFile('[enforcement]\nmax_lease_duration = 1\n', '1.conf', home)] }],
    [
      '2.yaml:2',
      { configFiles: [conf, configFile('enforcement:\n  max_lease_duration: 2\n', '2.yaml', home)] },
    ],
    ['30.yaml:1', { configDirs: [x] }],
    ['40.conf:2', { configDirs: [x, y] }],
    ['user.yaml:1', {}],
    ['.blazar-enforcement.yaml:1', {}],
    ['OS_ENFORCEMENT__MAX_LEASE_DURATION', { environment: { OS_ENFORCEMENT__MAX_LEASE_DURATION: '7' } }],
    ['--config enforcement.max_lease_duration', { config: ['enforcement.max_lease_duration=8'] }],
    ['in code', { values: { enforcement: { max_lease_duration: 9 } } }],
  ];
  mkdirSync(x);
  mkdirSync(y);
  configFile('{enforcement: {max_lease_duration: 3}}', '30.yaml', x);
  configFile('[enforcement]\nmax_lease_duration = 4\n', '40.conf', y);

  let sources: ClientSources = { configFiles: [], projectFolder: project, environment: { HOME: home } };
  const beaten: string[] = [];
  for (const [index, [origin, more]] of all.entries()) {
    if (origin.startsWith('user')) {
      configFile('{enforcement: {max_lease_duration: 5}}', 'user.yaml', own);
    } else if (origin.startsWith('.blazar')) {
      configFile('{enforcement: {max_lease_duration: 6}}', '.blazar-enforcement.yaml', project);
    }
    sources = { ...sources, ...more, environment: { ...sources.environment, ...more.environment } };
    const configuration = await readAsClient(sources);
    expect(effective(configuration, 'max_lease_duration')).toBe(index === 0 ? -1 : index);
    const setting = configuration.settings.find(({ option }) => option.name === 'max_lease_duration');
    const shown = [setting?.origin, ...(setting?.beats ?? [])].map(
      (one) => one && formatOrigin(one).replace(/^\/.*\//, ''),
    );
    expect(shown).toEqual([origin, ...beaten]);
    beaten.splice(0, 0, ...(index === 0 ? [] : [origin]));
  }
});

describe("the user's files", () => {
  it('are in $XDG_CONFIG_HOME/blazar-enforcement, else in $HOME/.config/blazar-enforcement, sorted by name', async () => {
    const { own, home, sources } = places();
    configFile('[s]\na = 2\n', 'b.conf', own);
    configFile('s:\n  a: 1\n', 'a.yaml', own);
    configFile('[s]\na = 3\n', 'not.ini', own);
    const xdg = join(home, 'xdg');
    mkdirSync(join(xdg, 'blazar-enforcement'), { recursive: true });
    configFile('[s]\na = xdg\n', 'x.conf', join(xdg, 'blazar-enforcement'));

    const ofHome = [['[s] a = "1" (a.yaml:2)'], ['[s] a = "2" (b.conf:2)']];
    expect(await read(sources)).toEqual(ofHome);
    expect(await read({ ...sources, environment: { HOME: home, XDG_CONFIG_HOME: '' } })).toEqual(ofHome);
    expect(await read({ ...sources, environment: { HOME: home, XDG_CONFIG_HOME: xdg } })).toEqual([
      ['[s] a = "xdg" (x.conf:2)'],
    ]);
  });

  it('may be missing, and so may the home', async () => {
    const { sources } = places();
    for (const environment of [{}, { HOME: '' }, { HOME: '/no/such/home' }]) {
      expect(await read({ ...sources, environment })).toEqual([]);
    }
  });
});

describe("the project's file", () => {
  it.each([
    ['.blazar-enforcement.conf', '[s]\na = 1\n'],
    ['.blazar-enforcement.yaml', 's:\n  a: 1\n'],
  ])('is %s in the folder', async (name, text) => {
    const { project, sources } = places();
    configFile(text, name, project);
    configFile('[s]\na = 2\n', 'blazar-enforcement.conf', project);
    expect(await read(sources)).toEqual([[`[s] a = "1" (${name}:2)`]]);
  });

  it('must be the only one: of two neither is read', async () => {
    const { project, sources } = places();
    configFile('{', '.blazar-enforcement.yaml', project);
    configFile('x', '.blazar-enforcement.conf', project);
    expect(await problems(sources)).toEqual([
      `error: ${project}/.blazar-enforcement.conf and ${project}/.blazar-enforcement.yaml: expected one of them`,
    ]);
  });
});

it.each(['USER', 'PROJECT'])(
  'the file of BLAZAR_ENFORCEMENT_%s_CONFIG replaces them, and must exist',
  async (whose) => {
    const { own, project, home, sources } = places();
    const broken = configFile('{', '.blazar-enforcement.yaml', project);
    if (whose === 'USER') {
      renameSync(broken, join(own, 'own.yaml'));
    }
    const name = `BLAZAR_ENFORCEMENT_${whose}_CONFIG`;
    const environment = { HOME: home, [name]: configFile('[s]\na = named\n', 'other.conf') };
    expect(await read({ ...sources, environment })).toEqual([['[s] a = "named" (other.conf:2)']]);
    environment[name] = '/nope/other.conf';
    expect(await problems({ ...sources, environment })).toEqual([
      `error: ${name}: there is no such file: /nope/other.conf; name another, or unset ${name}`,
    ]);
  },
);

it('the library reads neither of them', async () => {
  const { project, own, home } = places();
  configFile('{', '.blazar-enforcement.yaml', project);
  configFile('{', 'own.yaml', own);
  const environment = {
    HOME: home,
    BLAZAR_ENFORCEMENT_USER_CONFIG: '/nope',
    BLAZAR_ENFORCEMENT_PROJECT_CONFIG: '/nope',
  };
  expect(await read({ configFiles: [], environment })).toEqual([]);
});

describe('a file that was found, not named,', () => {
  const refused = (file: string, reason: string) =>
    `error: ${file}: not read, because ${reason}; to read it anyway, pass it with --config-file`;
  /** One of each kind. */
  function files() {
    const { own, project, ...rest } = places();
    const text = '[enforcement]\nmax_lease_duration = 5\n';
    const user = configFile(text, 'own.conf', own);
    return { ...rest, own, user, found: configFile(text, '.blazar-enforcement.conf', project) };
  }

  it('is refused when everyone may write to it', async () => {
    const { user, found, sources } = files();
    expect(await problems(sources)).toEqual([]);
    for (const file of [user, found]) {
      chmodSync(file, 0o646);
      expect(await problems(sources)).toEqual([refused(file, 'everyone may write to it')]);
      expect(effective(await readAsClient({ ...sources, environment: {} }), 'max_lease_duration')).toBe(
        file === user ? 5 : -1,
      );
      chmodSync(file, 0o664);
      expect(await problems(sources)).toEqual([]);
    }
  });

  it.skipIf(!isRoot)('is refused when it, or a link to it, belongs to another user', async () => {
    const { user, found, own, sources } = files();
    for (const file of [user, found]) {
      chownSync(file, 12_345, 0);
      expect(await problems(sources)).toEqual([refused(file, 'it belongs to another user')]);
      chownSync(file, 0, 0);
    }
    const link = join(own, 'link.conf');
    symlinkSync(configFile('', 'target.conf'), link);
    expect(await problems(sources)).toEqual([]);
    lchownSync(link, 12_345, 0);
    expect(await problems(sources)).toEqual([refused(link, 'it belongs to another user')]);
  });

  it('is refused when it is a broken link', async () => {
    const { own, sources } = places();
    symlinkSync('/nope/target.conf', join(own, 'link.conf'));
    expect(await problems(sources)).toEqual([
      refused(`${own}/link.conf`, 'it could not be examined: there is no such file'),
    ]);
  });

  it.skipIf(!isRoot)('is read when a variable names it, whoever owns it', async () => {
    const { user, found, sources } = files();
    for (const file of [user, found]) {
      chownSync(file, 12_345, 0);
    }
    const environment = {
      BLAZAR_ENFORCEMENT_USER_CONFIG: user,
      BLAZAR_ENFORCEMENT_PROJECT_CONFIG: found,
    };
    expect(await problems({ ...sources, environment })).toEqual([]);
  });
});

describe('--config with a file', () => {
  it('overrides the environment', async () => {
    const config = [configFile('s:\n  a: file\n', 'x.yaml')];
    expect(await read({ configFiles: [], environment: { OS_S__A: 'environment' }, config })).toEqual([
      ['[s] a = "environment" (OS_S__A)'],
      ['[s] a = "file" (x.yaml:2)'],
    ]);
  });

  it('may set options that only the server may set', async () => {
    const file = configFile(
      '{enforcement: {enabled_filters: [MaxLeaseDurationFilter], max_lease_duration: 1}}',
      'x.yaml',
    );
    const sources = { configFiles: [], environment: {}, config: [file] };
    const { problems: found, files, filters } = await readAsClient(sources);
    expect({ found, files }).toEqual({ found: [], files: [file] });
    expect(filters).toHaveLength(1);
  });
});
