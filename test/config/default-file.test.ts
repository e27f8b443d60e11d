/** Which file is read when none is named, and when it may be missing. */
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type ConfigSources, DEFAULT_CONFIG_FILE, readSources } from '../../src/config/sources.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { configFile, entries, readEntries as read, shown } from './helpers.ts';

function problems(sources: ConfigSources): string[] {
  return shown(readSources({ environment: {}, ...sources }).problems);
}

describe('where no file is named', () => {
  it('the one in BLAZAR_ENFORCEMENT_CONFIG is read', () => {
    const file = configFile('[s]\na = 1\n');
    expect(read({ environment: { BLAZAR_ENFORCEMENT_CONFIG: file } })).toEqual([
      ['[s] a = "1" (blazar.conf:2)'],
    ]);
  });

  it('the one in BLAZAR_ENFORCEMENT_CONFIG must exist, whatever else is set', () => {
    const environment = { BLAZAR_ENFORCEMENT_CONFIG: '/nope/blazar.conf' };
    const values = { enforcement: { enabled_filters: [] } };
    expect(problems({ environment, values, configDirs: [temporaryFolder()] })).toEqual([
      '/nope/blazar.conf: could not be read: there is no such file',
    ]);
  });

  it('the variable is not looked at when a file is named', () => {
    const file = configFile('[s]\na = 1\n');
    const environment = { BLAZAR_ENFORCEMENT_CONFIG: '/nope/blazar.conf' };
    expect(read({ configFiles: [file], environment })).toHaveLength(1);
  });

  it('a flag that is not there names none: the same files are read as without it', () => {
    const environment = { BLAZAR_ENFORCEMENT_CONFIG: configFile('[s]\na = 1\n') };
    expect(read({ configFiles: undefined, environment })).toEqual(read({ environment }));
  });

  it('the environment of the process is the one that counts', () => {
    process.env.OS_TEST_OF_SOURCES__A = '1';
    try {
      const { layers } = readSources({ configFiles: [configFile('')] });
      expect(layers.flatMap(entries)).toContain('[test_of_sources] a = "1" (OS_TEST_OF_SOURCES__A)');
    } finally {
      delete process.env.OS_TEST_OF_SOURCES__A;
    }
  });

  describe.skipIf(existsSync(DEFAULT_CONFIG_FILE))('and there is no /etc/blazar/blazar.conf', () => {
    it('is an error that says what to do', () => {
      for (const environment of [{}, { BLAZAR_ENFORCEMENT_CONFIG: '' }]) {
        expect(problems({ environment })).toEqual([
          '/etc/blazar/blazar.conf: could not be read: there is no such file; name another with --config-file or BLAZAR_ENFORCEMENT_CONFIG',
        ]);
      }
    });

    it.each<[string, ConfigSources]>([
      ['other sections', { values: { service: { port: 0 } }, config: ['service.port=1'] }],
      [
        'other options of [enforcement]',
        {
          environment: { OS_ENFORCEMENT__AUDIT_FILTERS: 'MaxLeaseDurationFilter' },
          config: ['enforcement.max_lease_duration=1'],
          values: { enforcement: { filters_path: [], enabled_filters: undefined } },
        },
      ],
      ['enabled_filters elsewhere', { config: ['default.enabled_filters=MaxLeaseDurationFilter'] }],
    ])('is an error also when %s are set', (_, sources) => {
      expect(problems(sources)).toHaveLength(1);
    });

    it.each<[string, ConfigSources]>([
      ['the environment', { environment: { OS_ENFORCEMENT__ENABLED_FILTERS: '' } }],
      ['the command line', { config: ['enforcement.enabled_filters='] }],
      ['code', { values: { enforcement: { enabled_filters: [] } } }],
    ])('is none when %s sets enabled_filters', (_, sources) => {
      expect(problems(sources)).toEqual([]);
    });

    it('is none when a folder is named', () => {
      expect(problems({ configDirs: [temporaryFolder()] })).toEqual([]);
    });
  });
});

describe('an empty list of files', () => {
  it('means that none is read, whatever the environment names and whether or not there is a default', () => {
    const environment = { BLAZAR_ENFORCEMENT_CONFIG: configFile('[s]\na = 1\n') };
    expect(read({ configFiles: [], environment })).toEqual([]);
    expect(
      read({ configFiles: [], environment: { BLAZAR_ENFORCEMENT_CONFIG: '/nope/blazar.conf' } }),
    ).toEqual([]);
    expect(problems({ configFiles: [] })).toEqual([]);
  });

  it('leaves the other sources as they are', () => {
    const folder = temporaryFolder();
    configFile('[s]\na = folder\n', 'x.conf', folder);
    const layers = read({
      configFiles: [],
      configDirs: [folder],
      environment: { OS_S__A: 'environment' },
      config: ['s.a=command line'],
      values: { s: { a: 'code' } },
    });
    expect(layers).toHaveLength(4);
  });
});
