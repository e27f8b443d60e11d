/** The dialect of blazar.conf, held against what oslo.config itself makes of the same texts and variables. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { configFile, effective, service, shown } from './helpers.ts';

interface Example {
  readonly name: string;
  readonly files: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly oslo: { readonly ok: Readonly<Record<string, unknown>> } | { readonly error: string };
}

const examples = JSON.parse(
  readFileSync(new URL('../fixtures/oslo-config-examples.json', import.meta.url), 'utf8'),
) as Example[];

/** Beside ours, the option of `[DEFAULT]` that the examples refer to. */
const DEFAULT = { section: 'default', schema: z.object({ os_region_name: z.string().optional() }) };

/** Enabled without an endpoint, which only the filter would have found out in Blazar. */
const noEndpoint =
  '[enforcement] enabled_filters: ExternalServiceFilter needs external_service_base_endpoint or another of its endpoints, and none is set';

/** Where oslo.config accepts what is refused here: in its values the two agree all the same. */
const refusedOnPurpose: Readonly<Record<string, readonly string[]>> = {
  // Unknown options are ignored there, and a limit that is misspelled is no limit.
  'proto key': ['1.conf:2: [enforcement] __proto__: unknown option'],
  'array looking key': [
    '1.conf:2: [enforcement] enabled_filters[]: unknown option; the nearest right name is "enabled_filters"',
  ],
  // One name with a line break in it, which no filter has.
  'continuation without commas': [
    '1.conf:2: [enforcement] enabled_filters: expected the name of a filter, such as MaxLeaseDurationFilter, got "MaxLeaseDurationFilter" and the indented lines below it; names are separated by commas',
  ],
  'list spaces': [`1.conf:2: ${noEndpoint}`],
  'second file list replaces': [`2.conf:2: ${noEndpoint}`],
};

/** What oslo.config refuses is refused here too, in our own words. */
const refusedByBoth: Readonly<Record<string, readonly string[]>> = {
  'int hex': [
    '1.conf:2: [enforcement] max_lease_duration: expected a whole number of seconds or -1, got "0x10"',
  ],
  'no delimiter': ['1.conf:2: expected "name = value", got a line without "=" or ":"'],
};

async function read({ files, env }: Example) {
  const folder = temporaryFolder();
  const configFiles = files.map((text, index) => configFile(text, `${index + 1}.conf`, folder));
  return readConfiguration({ configFiles, environment: env }, [service, DEFAULT]);
}

describe('the examples', () => {
  it('are all there, and each difference is about one of them', () => {
    const names = examples.map(({ name }) => name);
    expect(new Set(names).size).toBe(26);
    expect(names).toEqual(expect.arrayContaining(Object.keys({ ...refusedOnPurpose, ...refusedByBoth })));
    const failing = examples.filter(({ oslo }) => 'error' in oslo).map(({ name }) => name);
    expect(failing).toEqual(Object.keys(refusedByBoth));
  });

  it.each(examples)('have the errors that are meant: $name', async (example) => {
    const expected = { ...refusedOnPurpose, ...refusedByBoth }[example.name] ?? [];
    expect(shown((await read(example)).problems, 'error')).toEqual(expected);
  });

  it.each(examples.filter(({ oslo }) => 'ok' in oslo))(
    'have the values of oslo.config: $name',
    async (example) => {
      const configuration = await read(example);
      const expected = Object.entries('ok' in example.oslo ? example.oslo.ok : {});
      expect(expected.length).toBe(9);
      for (const [name, value] of expected) {
        const [section, option] = name.startsWith('DEFAULT.')
          ? ['default', name.slice(8)]
          : ['enforcement', name];
        expect(effective(configuration, option, section) ?? null, name).toEqual(value);
      }
    },
  );
});
