/** The file that is read when no flag names one, and when it may be missing. */
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type ConfigSources, DEFAULT_CONFIG_FILE, readSources } from '../../src/config/sources.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { configFile, entries, readEntries as read, shown } from './helpers.ts';

async function problems(sources: ConfigSources): Promise<string[]> {
  return shown((await readSources({ environment: {}, ...sources })).problems);
}

describe('without --config-file', () => {
  it('the file of BLAZAR_ENFORCEMENT_CONFIG is read', async () => {
    const file = configFile('[s]\na = 1\n');
    expect(await read({ environment: { BLAZAR_ENFORCEMENT_CONFIG: file } })).toEqual([
      ['[s] a = "1" (blazar.conf:2)'],
    ]);
  });

  it('the file of BLAZAR_ENFORCEMENT_CONFIG must exist, whatever else is set', async () => {
    const environment = { BLAZAR_ENFORCEMENT_CONFIG: '/nope/blazar.conf' };
    const values = { enforcement: { enabled_filters: [] } };
    expect(await problems({ environment, values, configDirs: [temporaryFolder()] })).toEqual([
      'BLAZAR_ENFORCEMENT_CONFIG: there is no such file: /nope/blazar.conf; name another, or unset BLAZAR_ENFORCEMENT_CONFIG',
    ]);
  });

  it('the environment of the process is the default', async () => {
    process.env.OS_TEST_OF_SOURCES__A = '1';
    try {
      const { layers } = await readSources({ configFiles: [configFile('')] });
      expect(layers.flatMap(entries)).toContain('[test_of_sources] a = "1" (OS_TEST_OF_SOURCES__A)');
    } finally {
      delete process.env.OS_TEST_OF_SOURCES__A;
    }
  });

  describe.skipIf(existsSync(DEFAULT_CONFIG_FILE))('a missing /etc/blazar/blazar.conf', () => {
    it('is an error that says what to do', async () => {
      for (const environment of [{}, { BLAZAR_ENFORCEMENT_CONFIG: '' }]) {
        expect(await problems({ environment })).toEqual([
          '/etc/blazar/blazar.conf: could not be read: there is no such file; name another with --config-file or BLAZAR_ENFORCEMENT_CONFIG',
        ]);
      }
    });

    it.each<[string, ConfigSources]>([
      ['other sections', { values: { service: { port: 0 } }, config: ['service.port=1'] }],
      ['audit_filters', { environment: { OS_ENFORCEMENT__AUDIT_FILTERS: 'MaxLeaseDurationFilter' } }],
      ['enabled_filters to nothing', { values: { enforcement: { enabled_filters: undefined } } }],
      ['enabled_filters elsewhere', { config: ['default.enabled_filters=MaxLeaseDurationFilter'] }],
    ])('is an error also when %s are set', async (_, sources) => {
      expect(await problems(sources)).toHaveLength(1);
    });

    it.each<[string, ConfigSources]>([
      ['the environment', { environment: { OS_ENFORCEMENT__ENABLED_FILTERS: '' } }],
      ['the command line', { config: ["enforcement.enabled_filters=''"] }],
      ['code', { values: { enforcement: { enabled_filters: [] } } }],
    ])('is no error when %s sets enabled_filters', async (_, sources) => {
      expect(await problems(sources)).toEqual([]);
    });

    it('is no error when a folder is named', async () => {
      expect(await problems({ configDirs: [temporaryFolder()] })).toEqual([]);
    });
  });
});

it('an empty list of files means that no file is read, neither the default nor that of the environment', async () => {
  const environment = { BLAZAR_ENFORCEMENT_CONFIG: configFile('[s]\na = 1\n') };
  expect(await read({ configFiles: [], environment })).toEqual([]);
  expect(
    await read({ configFiles: [], environment: { BLAZAR_ENFORCEMENT_CONFIG: '/nope/blazar.conf' } }),
  ).toEqual([]);
  expect(await problems({ configFiles: [] })).toEqual([]);
});
