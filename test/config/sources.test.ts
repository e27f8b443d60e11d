import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ConfigSources, readSources } from '../../src/config/sources.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { configFile, entries, readEntries as read, shown } from './helpers.ts';

function problems(sources: ConfigSources): string[] {
  return shown(readSources({ configFiles: [], environment: {}, ...sources }).problems);
}

describe('the layers', () => {
  it('come lowest first: files, folders, environment, command line, code', () => {
    const folder = temporaryFolder();
    configFile('[s]\na = folder\n', 'x.conf', folder);
    const layers = read({
      values: { s: { a: 'code' } },
      config: ['s.a=command line'],
      environment: { OS_S__A: 'environment' },
      configDirs: [folder],
      configFiles: [configFile('[s]\na = first\n', '1.conf'), configFile('[s]\na = second\n', '0.conf')],
    });
    expect(layers).toEqual([
      ['[s] a = "first" (1.conf:2)'],
      ['[s] a = "second" (0.conf:2)'],
      ['[s] a = "folder" (x.conf:2)'],
      ['[s] a = "environment" (OS_S__A)'],
      ['[s] a = "command line" (--config s.a)'],
      ['[s] a = "code" (in code)'],
    ]);
  });
});

describe('a folder', () => {
  it('gives its *.conf files in the order of their names, and no others', () => {
    const folder = temporaryFolder();
    for (const name of [
      '20.conf',
      '100.conf',
      'B.conf',
      'a.conf',
      'a.conf.bak',
      'b.ini',
      '.hidden.conf',
      'conf',
    ]) {
      configFile(`[s]\na = ${name}\n`, name, folder);
    }
    expect(read({ configFiles: [configFile('')], configDirs: [folder] }).flat()).toEqual([
      '[s] a = "100.conf" (100.conf:2)',
      '[s] a = "20.conf" (20.conf:2)',
      '[s] a = "B.conf" (B.conf:2)',
      '[s] a = "a.conf" (a.conf:2)',
    ]);
  });

  it('is one of many, in the order in which they are named', () => {
    const [first, second] = [temporaryFolder(), temporaryFolder()];
    configFile('[s]\na = 1\n', 'z.conf', first);
    configFile('[s]\na = 2\n', 'a.conf', second);
    expect(read({ configFiles: [configFile('')], configDirs: [first, second] }).flat()).toEqual([
      '[s] a = "1" (z.conf:2)',
      '[s] a = "2" (a.conf:2)',
    ]);
  });

  it('may be empty', () => {
    expect(read({ configFiles: [configFile('')], configDirs: [temporaryFolder()] })).toEqual([]);
  });

  it('that cannot be read is an error', () => {
    const folder = temporaryFolder();
    const file = configFile('', 'f', folder);
    expect(problems({ configDirs: [join(folder, 'nope'), file] })).toEqual([
      `${folder}/nope: the folder could not be read: there is no such file`,
      `${file}: the folder could not be read: a part of its path is not a folder`,
    ]);
  });
});

describe('a file', () => {
  it('that cannot be read is an error, and keeps no other from being read', () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'dir.conf'));
    const latin = configFile(Uint8Array.from([0x5b, 0xe9, 0x5d]), 'latin.conf', folder);
    const good = configFile('[s]\na = 1\n', 'good.conf', folder);
    const configFiles = [join(folder, 'nope.conf'), join(folder, 'dir.conf'), latin, '/dev/zero', good];
    const { layers, problems: found } = readSources({ configFiles, environment: {} });
    expect(shown(found)).toEqual([
      `${folder}/nope.conf: could not be read: there is no such file`,
      `${folder}/dir.conf: could not be read: it is a folder`,
      `${latin}: could not be read: it is not UTF-8 text`,
      '/dev/zero: could not be read: it is longer than 1048576 bytes',
    ]);
    expect(layers.flatMap(entries)).toEqual(['[s] a = "1" (good.conf:2)']);
  });

  it.each(['x.yaml', 'x.yml', 'x.json'])('of another form is refused instead of misread: %s', (name) => {
    const file = configFile('enforcement:\n  max_lease_duration: 1\n', name);
    expect(problems({ configFiles: [file] })).toEqual([
      `${file}: expected a file in the INI form of blazar.conf`,
    ]);
  });

  it('with syntax errors still gives what can be read', () => {
    const file = configFile('[s]\nbroken\na = 1\n');
    const { layers, problems: found } = readSources({ configFiles: [file], environment: {} });
    expect(shown(found)).toEqual(['blazar.conf:2: expected "name = value", got a line without "=" or ":"']);
    expect(layers.flatMap(entries)).toEqual(['[s] a = "1" (blazar.conf:3)']);
  });
});

describe('the environment', () => {
  it('has OS_<SECTION>__<OPTION>, and what is none of that is left alone', () => {
    const environment = {
      OS_ENFORCEMENT__MAX_LEASE_DURATION: ' 60 ',
      OS_DEFAULT__REGION: '',
      OS_A_B__C__D: '1',
      OS_AUTH_URL: 'http://keystone/',
      OS__X: '1',
      OS_ENFORCEMENT__: '1',
      os_enforcement__lower: '1',
      OS_Enforcement__Mixed: '1',
      XOS_ENFORCEMENT__X: '1',
      OS_ENFORCEMENT__UNSET: undefined,
      HOME: '/root',
    };
    expect(read({ configFiles: [configFile('')], environment }).flat()).toEqual([
      '[enforcement] max_lease_duration = " 60 " (OS_ENFORCEMENT__MAX_LEASE_DURATION)',
      '[default] region = "" (OS_DEFAULT__REGION)',
      '[a_b] c__d = "1" (OS_A_B__C__D)',
    ]);
  });
});

describe('--config', () => {
  it('sets one option; what is behind the first "=" is the value as it stands', () => {
    const config = ['Enforcement.a=1', 'enforcement.b= x = y; # ', 'a.b.c=', 'enforcement.a=2'];
    expect(read({ configFiles: [configFile('')], config }).flat()).toEqual([
      '[enforcement] a = "2" (--config enforcement.a)',
      '[enforcement] b = " x = y; # " (--config enforcement.b)',
      '[a.b] c = "" (--config a.b.c)',
    ]);
  });

  it.each([
    ['external_service_token=sEcReT', 'external_service_token'],
    ['.a=sEcReT', '.a'],
    ['s.=sEcReT', 's.'],
    ['=sEcReT', ''],
    ['enforcement.max_lease_duration', 'enforcement.max_lease_duration'],
  ])('is refused as %s, and the value is not repeated', (text, name) => {
    expect(problems({ config: [text] })).toEqual([`--config: expected section.option=value, got "${name}"`]);
  });
});

describe('a flag of its own', () => {
  it('sets its option in its place among the others, and is where the value comes from', () => {
    const port = { flag: '--port', section: 'service', option: 'port', value: 'x=1' };
    const host = { flag: '--host', section: 'service', option: 'host', value: '' };
    const config = ['service.port=1', port, host, 'service.host=h'];
    expect(read({ configFiles: [], config }).flat()).toEqual([
      '[service] port = "x=1" (--port)',
      '[service] host = "h" (--config service.host)',
    ]);
  });
});

describe('values from code', () => {
  it('keep their types; one that is undefined is not there', () => {
    const values = { Enforcement: { a: 60, b: ['x'], c: { d: 1 }, e: undefined, f: null, g: false } };
    expect(read({ configFiles: [configFile('')], values }).flat()).toEqual([
      '[enforcement] a = 60 (in code)',
      '[enforcement] b = ["x"] (in code)',
      '[enforcement] c = {"d":1} (in code)',
      '[enforcement] f = null (in code)',
      '[enforcement] g = false (in code)',
    ]);
  });
});
