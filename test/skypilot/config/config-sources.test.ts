import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConfigurationError, formatProblem } from '../../../src/base/errors.ts';
import { findSources, type NamedSources } from '../../../src/skypilot/config/config-sources.ts';
import { mergeSources } from '../../../src/skypilot/config/layers.ts';
import { folderOf, writeFiles } from '../../support/filter-folder.ts';

/** A home with a file of each kind; each sets `from` to its name. */
const FILES = {
  'home/.sky/config.yaml': 'from: own\n',
  'home/env.yaml': 'from: env\n',
  'work/.sky.yaml': 'from: project\n',
  'whole.yaml': 'from: whole\nadmin_policy: a.B\n',
  'server.yaml': 'from: server\nadmin_policy: c.D\n',
  'empty.yaml': '',
  'comment.yaml': '# nothing\n',
};

const before = process.cwd();
let folder = '';

beforeEach(() => {
  folder = folderOf(FILES);
  vi.stubEnv('HOME', join(folder, 'home'));
  process.chdir(join(folder, 'work'));
});

afterEach(() => {
  process.chdir(before);
  vi.unstubAllEnvs();
});

function write(name: string, text: string): string {
  writeFiles(folder, { [name]: text });
  return at(name);
}

const at = (name: string) => join(folder, name);

/** `level file, …`; what is said about them; the configuration. */
function found(environment: NodeJS.ProcessEnv, named: NamedSources = {}) {
  const { sources, problems, unread } = findSources(named, environment);
  const shown = (text: string) => text.replaceAll(`${folder}/`, '');
  return {
    read: sources.map(({ level, name, originOf }) => {
      const origin = originOf([]);
      return shown(`${name ?? level} ${origin.kind === 'file' ? origin.file : origin.kind}`);
    }),
    said: problems.map((one) => shown(`${one.severity}: ${formatProblem(one)}`)),
    unread: unread.map(({ level, file }) => shown(`${level} ${file}`)),
    tree: mergeSources(sources).tree,
  };
}

function refusal(environment: NodeJS.ProcessEnv, named: NamedSources = {}): string[] {
  try {
    findSources(named, environment);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(ConfigurationError);
    const { problems } = thrown as ConfigurationError;
    return problems.map((one) => `${one.severity}: ${formatProblem(one)}`.replaceAll(`${folder}/`, ''));
  }
  return [];
}

describe('the files of a client', () => {
  it('are those of the user and the project', () => {
    expect(found({})).toEqual({
      read: ['user home/.sky/config.yaml', 'project .sky.yaml'],
      said: [],
      unread: [],
      tree: { from: 'project' },
    });
  });

  it('are named by variables, in which ~ is the home; an empty variable names none', () => {
    const environment = { SKYPILOT_GLOBAL_CONFIG: '~/env.yaml', SKYPILOT_PROJECT_CONFIG: '' };
    expect(found(environment).read).toEqual(['user home/env.yaml', 'project .sky.yaml']);
  });

  it.for(['SKYPILOT_GLOBAL_CONFIG', 'SKYPILOT_PROJECT_CONFIG', 'SKYPILOT_CONFIG'])(
    'must exist if %s names them',
    (variable) => {
      expect(refusal({ [variable]: '~/nowhere.yaml' })).toEqual([
        `error: ${variable}: there is no such file: ~/nowhere.yaml; name another, or unset ${variable}`,
      ]);
      expect(refusal({ [variable]: '/' })).toEqual(['error: /: could not be read: it is a folder']);
    },
  );

  it.for(['empty.yaml', 'comment.yaml'])('may be empty: %s', (name) => {
    expect(found({ SKYPILOT_GLOBAL_CONFIG: at(name), SKYPILOT_PROJECT_CONFIG: at(name) }).tree).toEqual({});
  });
});

describe('the files of a server', () => {
  it.for(['true', '1', '0', ''])('are its own alone, whatever the value: %j', (value) => {
    expect(found({ IS_SKYPILOT_SERVER: value })).toEqual({
      read: ['server home/.sky/config.yaml'],
      said: [],
      unread: [],
      tree: { from: 'own' },
    });
  });

  it('are named by SKYPILOT_GLOBAL_CONFIG or a flag; a project that is named is not read', () => {
    const environment = {
      IS_SKYPILOT_SERVER: 'true',
      SKYPILOT_GLOBAL_CONFIG: '~/env.yaml',
      SKYPILOT_PROJECT_CONFIG: '/nowhere',
    };
    const said = ['warning: /nowhere: not read: a server (IS_SKYPILOT_SERVER is set) has no project'];
    expect(found(environment)).toMatchObject({
      read: ['server home/env.yaml'],
      said,
      unread: ['project /nowhere'],
    });
    expect(found(environment, { server: at('server.yaml') }).read).toEqual(['server server.yaml']);
    expect(refusal({ ...environment, SKYPILOT_GLOBAL_CONFIG: '/nowhere' })).toHaveLength(1);
  });
});

describe('SKYPILOT_CONFIG', () => {
  const environment = () => ({ SKYPILOT_CONFIG: at('whole.yaml') });

  it('names the whole configuration, in which nothing is dropped', () => {
    expect(found(environment())).toEqual({
      read: ['SKYPILOT_CONFIG whole.yaml'],
      said: [
        'warning: SKYPILOT_CONFIG: whole.yaml is the whole configuration',
        'warning: ~/.sky/config.yaml: not read, because SKYPILOT_CONFIG is set',
        'warning: .sky.yaml: not read, because SKYPILOT_CONFIG is set',
      ],
      unread: ['user ~/.sky/config.yaml', 'project .sky.yaml'],
      tree: { from: 'whole', admin_policy: 'a.B' },
    });
  });

  it.for(['user', 'project'] as const)('is over what the flag --%s names', (level) => {
    const { read, unread } = found(environment(), { [level]: at('server.yaml') });
    expect(read).toEqual(['SKYPILOT_CONFIG whole.yaml']);
    expect(unread).toContain(`${level} server.yaml`);
  });

  it('hides what other variables name, even what is missing', () => {
    const others = { SKYPILOT_GLOBAL_CONFIG: '/nowhere', SKYPILOT_PROJECT_CONFIG: '/nowhere' };
    const { read, unread } = found({ ...environment(), ...others });
    expect({ read, unread }).toEqual({ read: ['SKYPILOT_CONFIG whole.yaml'], unread: [] });
  });

  it('names a file even if it is empty, as for SkyPilot', () => {
    expect(refusal({ SKYPILOT_CONFIG: '' })).toEqual([
      "error: SKYPILOT_CONFIG: there is no such file: ''; name another, or unset SKYPILOT_CONFIG",
    ]);
  });

  it('is what a client lays over the server that a flag names', () => {
    expect(found(environment(), { server: at('server.yaml') })).toMatchObject({
      read: ['server server.yaml', 'SKYPILOT_CONFIG whole.yaml'],
      tree: { from: 'whole', admin_policy: 'c.D' },
    });
  });

  it('is the whole configuration of a server, too', () => {
    const server = { ...environment(), IS_SKYPILOT_SERVER: '' };
    expect(found(server, { server: at('server.yaml') })).toMatchObject({
      read: ['SKYPILOT_CONFIG whole.yaml'],
      unread: ['server server.yaml'],
      tree: { admin_policy: 'a.B' },
    });
    expect(found(server).unread).toEqual(['server ~/.sky/config.yaml']);
  });
});

describe('the database of a server', () => {
  const overridden =
    'the configuration in the database of the server overrides this file, and is not shown here';
  const server = (text: string) => ({ server: write('with-db.yaml', text) });
  const refused = (line: number, by: string) =>
    `error: with-db.yaml:${line}: ${by}: expected no other configuration beside a database, got admin_policy, allowed_clouds; SkyPilot's server does not start`;

  it('is refused beside two or more other keys, whoever names it', () => {
    const text = 'admin_policy: a.B\nallowed_clouds: [aws]\n';
    expect(refusal({}, server(`${text}db: postgresql://s3cret\n`))).toEqual([refused(3, 'db')]);
    expect(refusal({ SKYPILOT_DB_CONNECTION_URI: 's3cret' }, server(text))).toEqual([
      refused(1, 'SKYPILOT_DB_CONNECTION_URI'),
    ]);
    const own = write('home/.sky/config.yaml', `db: x\n${text}`);
    expect(refusal({ IS_SKYPILOT_SERVER: '' }).join()).toContain(
      `${own.slice(folder.length + 1)}:1: db: expected`,
    );
  });

  it.for(['', 'admin_policy: a.B\n'])('is accepted beside %j, and overrides it', (text) => {
    const { said, tree } = found({}, server(`${text}db: postgresql://s3cret\n`));
    expect(said).toEqual([`warning: with-db.yaml:${text === '' ? 1 : 2}: db: ${overridden}`]);
    expect(tree).not.toHaveProperty('db');
  });

  it.for(["''", 'null', 'false', '0', '[]', '{}'])('is none if it is %s', (value) => {
    expect(found({}, server(`a: 1\nb: 2\ndb: ${value}\n`))).toMatchObject({ said: [] });
    expect(found({ SKYPILOT_DB_CONNECTION_URI: '' }, server('a: 1\nb: 2\n'))).toMatchObject({ said: [] });
  });

  it('is taken out of the files of a client without a word', () => {
    const user = write('user.yaml', 'a: 1\nb: 2\ndb: postgresql://s3cret\n');
    const result = found({}, { user, config: ['db=s3cret'] });
    expect(result).toMatchObject({ said: [], tree: { a: 1, b: 2 } });
    expect(JSON.stringify(result.tree)).not.toContain('db');
  });
});

describe('a key of clients', () => {
  const text = 'api_server:\n  endpoint: https://lee:s3cret@h\n  service_account_token: s3cret\n';

  it('in the file of a server is named with a warning, and without its value', () => {
    const allowed = 'only a client may set api_server.endpoint, api_server.service_account_token';
    const { said } = found({ IS_SKYPILOT_SERVER: '' }, { server: write('s.yaml', text) });
    expect(said).toEqual([
      `warning: s.yaml:2: api_server.endpoint: clients do not get it from a server; ${allowed}`,
      `warning: s.yaml:3: api_server.service_account_token: clients do not get it from a server; ${allowed}`,
    ]);
  });

  it('is not sent to the server, of which a client is not warned', () => {
    const { sources } = findSources({ user: write('u.yaml', text), project: at('empty.yaml') }, {});
    const { tree, dropped } = mergeSources(sources);
    expect(tree).toEqual({});
    expect(dropped.map(({ key, reason }) => [key, reason])).toEqual([['api_server', 'client']]);
    const more = mergeSources([
      ...findSources({ user: write('u.yaml', `${text}  requests_retention_hours: 1\n`) }, {}).sources,
    ]);
    expect(more.dropped).toMatchObject([{ key: 'api_server', reason: 'server' }]);
  });
});
