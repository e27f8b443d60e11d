import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ConfigSources, readSources } from '../../src/config/sources.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { configFile, entries, readEntries as read, shown } from './helpers.ts';

async function problems(sources: ConfigSources): Promise<string[]> {
  return shown((await readSources({ configFiles: [], environment: {}, ...sources })).problems);
}

describe('a folder', () => {
  it('contributes its *.conf and *.yaml files, sorted by name, and no others', async () => {
    const folder = temporaryFolder();
    const ignored = ['a.conf.bak', 'b.ini', 'b.json', '.hidden.conf', 'conf'];
    for (const name of ['20.conf', '100.conf', 'B.conf', 'a.conf', ...ignored]) {
      configFile(`[s]\na = ${name}\n`, name, folder);
    }
    for (const name of ['150.yaml', 'a.conf.yml', '.hidden.yaml', 'yaml']) {
      configFile(`s:\n  a: ${name}\n`, name, folder);
    }
    expect((await read({ configFiles: [configFile('')], configDirs: [folder] })).flat()).toEqual([
      '[s] a = "100.conf" (100.conf:2)',
      '[s] a = "150.yaml" (150.yaml:2)',
      '[s] a = "20.conf" (20.conf:2)',
      '[s] a = "B.conf" (B.conf:2)',
      '[s] a = "a.conf" (a.conf:2)',
      '[s] a = "a.conf.yml" (a.conf.yml:2)',
    ]);
  });

  it('that cannot be read is an error', async () => {
    const folder = temporaryFolder();
    const file = configFile('', 'f', folder);
    expect(await problems({ configDirs: [join(folder, 'nope'), file] })).toEqual([
      `${folder}/nope: the folder could not be read: there is no such file`,
      `${file}: the folder could not be read: a part of its path is not a folder`,
    ]);
  });
});

describe('a file', () => {
  it('that cannot be read is an error, and the others are still read', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'dir.conf'));
    const latin = configFile(Uint8Array.from([0x5b, 0xe9, 0x5d]), 'latin.conf', folder);
    const good = configFile('[s]\na = 1\n', 'good.conf', folder);
    const configFiles = [join(folder, 'nope.conf'), join(folder, 'dir.conf'), latin, '/dev/zero', good];
    const { layers, problems: found } = await readSources({ configFiles, environment: {} });
    expect(shown(found)).toEqual([
      `${folder}/nope.conf: could not be read: there is no such file`,
      `${folder}/dir.conf: could not be read: it is a folder`,
      `${latin}: could not be read: it is not UTF-8 text`,
      '/dev/zero: could not be read: it is longer than 1048576 bytes',
    ]);
    expect(layers.flatMap(entries)).toEqual(['[s] a = "1" (good.conf:2)']);
  });

  it.each([
    ['x.yaml', 'enforcement:\n  max_lease_duration: 1\n', '[enforcement]\na = 1\n'],
    ['x.yml', 'enforcement:\n  max_lease_duration: 1\n', '[enforcement]\na = 1\n'],
    ['x.json', '{ "enforcement":\n  { "max_lease_duration": 1 } }\n', '[enforcement]\na = 1\n'],
    ['x.yaml.conf', '[enforcement]\nmax_lease_duration = 1\n', 'enforcement:\n  a: {\n'],
    ['x', '[enforcement]\nmax_lease_duration = 1\n', 'enforcement:\n  a: {\n'],
  ])('is INI or YAML by its name: %s', async (name, text, other) => {
    expect(await read({ configFiles: [configFile(text, name)] })).toEqual([
      [`[enforcement] max_lease_duration = "1" (${name}:2)`],
    ]);
    expect(await problems({ configFiles: [configFile(other, name)] })).not.toEqual([]);
  });
});

it('the environment sets options by OS_<SECTION>__<OPTION>, and ignores other variables', async () => {
  const environment = {
    OS_ENFORCEMENT__MAX_LEASE_DURATION: ' 60 ',
    OS_DEFAULT__REGION: '',
    OS_A_B__C__D: '1',
    OS_AUTH_URL: 'http://keystone/',
    OS__X: '1',
    OS_ENFORCEMENT__: '1',
    XOS_ENFORCEMENT__X: '1',
    OS_ENFORCEMENT__UNSET: undefined,
    HOME: '/root',
  };
  expect((await read({ configFiles: [configFile('')], environment })).flat()).toEqual([
    '[enforcement] max_lease_duration = " 60 " (OS_ENFORCEMENT__MAX_LEASE_DURATION)',
    '[default] region = "" (OS_DEFAULT__REGION)',
    '[a_b] c__d = "1" (OS_A_B__C__D)',
  ]);
});

describe('--config', () => {
  it('sets an option to what follows the first "=", as YAML whose scalars are texts', async () => {
    const config = [
      ...['Enforcement.a=1', 'enforcement.b= x = y; # a comment', "enforcement.c=''"],
      ...['enforcement.d=null', 'enforcement.e=012', 'enforcement.f="yes"', 'enforcement.g=[1, [a, 2]]'],
      'enforcement.a=2',
    ];
    expect((await read({ configFiles: [configFile('')], config })).flat()).toEqual([
      '[enforcement] a = "2" (--config enforcement.a)',
      '[enforcement] b = "x = y;" (--config enforcement.b)',
      '[enforcement] c = "" (--config enforcement.c)',
      '[enforcement] d = "" (--config enforcement.d)',
      '[enforcement] e = "012" (--config enforcement.e)',
      '[enforcement] f = "yes" (--config enforcement.f)',
      '[enforcement] g = ["1",["a","2"]] (--config enforcement.g)',
    ]);
  });

  it('sets a member of a dictionary, in addition to those of other pairs', async () => {
    const config = ['s.a={x: 1, y: 2}', 's.a.y=3', 's.a.z.w=4', 's.b=text', 's.b.x=1'];
    expect((await read({ configFiles: [], config })).flat()).toEqual([
      '[s] a = {"x":"1","y":"3","z.w":"4"} (--config s.a.z.w)',
      '[s] b = {"x":"1"} (--config s.b.x)',
    ]);
  });

  it.each([
    [
      'external_service_token=sEcReT',
      'expected section.option=value, got "external_service_token" before "="',
    ],
    ['s.a=@sEcReT', 'the value of s.a is not YAML (bad scalar start); put it in quotes'],
    ['s.token:sEcReT=b64=', 'expected section.option=value, got "token …" before "="'],
    ['/no/such/file.yaml', 'expected key=value or a file that exists, got "/no/such/file.yaml"'],
  ])('is refused as %s, and the value is not shown', async (text, problem) => {
    expect(await problems({ config: [text] })).toEqual([`--config: ${problem}`]);
  });
});

it('a flag of its own sets its option literally, overrides --config, and is the origin', async () => {
  const port = { flag: '--port', section: 'service', option: 'port', value: 'x=[1' };
  const host = { flag: '--host', section: 'service', option: 'host', value: '' };
  const config = ['service.port=1', port, host, 'service.host=h'];
  expect(await read({ configFiles: [], config })).toEqual([
    ['[service] port = "1" (--config service.port)', '[service] host = "h" (--config service.host)'],
    ['[service] port = "x=[1" (--port)', '[service] host = "" (--host)'],
  ]);
});

it('values from code keep their types, without those that are undefined', async () => {
  const values = { Enforcement: { a: 60, b: ['x'], c: { d: 1 }, e: undefined, f: null, g: false } };
  expect((await read({ configFiles: [configFile('')], values })).flat()).toEqual([
    '[enforcement] a = 60 (in code)',
    '[enforcement] b = ["x"] (in code)',
    '[enforcement] c = {"d":1} (in code)',
    '[enforcement] f = null (in code)',
    '[enforcement] g = false (in code)',
  ]);
});

it('a source with a wrong name is an error', async () => {
  const sources: object = { configFile: 'blazar.conf' };
  expect(await problems(sources)).toEqual([
    'configFile: unknown source of the configuration; the nearest right name is "configFiles"',
  ]);
});

it.each([
  ['OS_ENFORCEMENT_MAX_LEASE_DURATION', 'OS_ENFORCEMENT__MAX_LEASE_DURATION'],
  ['os_service__port', 'OS_SERVICE__PORT'],
  ['OS_Enforcement__Mixed', 'OS_ENFORCEMENT__MIXED'],
  ['OS_LEDGER_CONNECTION', 'OS_LEDGER__CONNECTION'],
])('the variable %s, which nothing reads, is a warning', async (variable, right) => {
  const { problems } = await readSources({ configFiles: [], environment: { [variable]: '60' } });
  const message = `${variable} is ignored: if it is an option, its name is ${right}, with two underscores`;
  expect(problems).toEqual([{ severity: 'warning', message }]);
});

it('variables of Keystone and other programs are none of ours', async () => {
  const names = [
    'OS_SERVICE_TOKEN',
    'OS_SERVICE_ENDPOINT',
    'OS_AUTH_URL',
    'OS_SERVICE__PORT',
    'OS_SERVICES_PORT',
  ];
  const environment = Object.fromEntries(names.map((name) => [name, '1']));
  expect((await readSources({ configFiles: [], environment })).problems).toEqual([]);
});
