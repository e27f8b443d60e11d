/**
 * The contract of every filter as a test suite: the test of a filter calls it and adds its own cases.
 */
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { isFilterClass } from '../../src/filter/base-filter.ts';
import { type ConfigSources, UsageEnforcement } from '../../src/index.ts';
import { classFileName, optionPrefix } from '../../src/plugin/class-names.ts';
import { valuesOnly } from '../support/files.ts';
import { newLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import {
  createGpuAndFloatingIp,
  createPhysicalHost,
  deepFreeze,
  endActive,
  updateExtend,
} from '../support/requests.ts';

export interface FilterUnderTest {
  readonly name: string;
  /** Options with which the filter allows the captured requests. Called when the tests run. */
  readonly options: () => Readonly<Record<string, unknown>>;
  /** Folders to search, for a filter that is not included in the package. */
  readonly folders?: readonly string[];
  /** Whether it needs a ledger. Default false. */
  readonly ledger?: boolean;
  /** Prepares the ledger, for example with a budget. Default: it stays empty. */
  readonly prepare?: (connection: string) => Promise<void>;
}

export function testFilter({ name, options, folders = [], ledger = false, prepare }: FilterUnderTest): void {
  const sources = (): ConfigSources =>
    valuesOnly({ enforcement: { ...options(), enabled_filters: [name], filters_path: folders } });
  const load = async (logger = recordingLogger()) => {
    const { values, ...rest } = sources();
    if (!ledger) {
      return UsageEnforcement.load({ ...rest, values: { ...values } }, { logger });
    }
    const connection = await newLedger();
    await prepare?.(connection);
    return UsageEnforcement.load({ ...rest, values: { ...values, ledger: { connection } } }, { logger });
  };

  describe(`${name} keeps the contract of filters`, () => {
    it('is loaded by name from the file of that name', async () => {
      const { catalog, problems } = await readConfiguration(sources());
      const installed = catalog.filters.get(name);
      expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
      expect(isFilterClass(installed?.filterClass)).toBe(true);
      expect(basename(installed?.file ?? '').replace(/\.\w+$/, '')).toBe(classFileName(name));
    });

    it('declares options with its prefix, each with a description and a default', async () => {
      const { catalog } = await readConfiguration(sources());
      const prefix = optionPrefix(name);
      for (const option of catalog.filters.get(name)?.options ?? []) {
        expect(option.name === prefix || option.name.startsWith(`${prefix}_`), option.name).toBe(true);
        expect(option.help, option.name).not.toBe('');
        expect(option.schema.safeParse(undefined).success, option.name).toBe(true);
      }
    });

    it('answers a captured create, update and end', async () => {
      const enforcement = await load();
      for (const request of [createPhysicalHost(), createGpuAndFloatingIp()]) {
        expect(await enforcement.checkCreate(request)).toMatchObject({ allowed: true, failed: false });
      }
      expect(await enforcement.checkUpdate(updateExtend())).toMatchObject({ allowed: true, failed: false });
      expect(await enforcement.onEnd(endActive())).toMatchObject({ failed: false });
      await enforcement.close();
    });

    it('reads requests without changing them, frozen or not', async () => {
      const enforcement = await load();
      const create = createPhysicalHost();
      const update = updateExtend();
      const end = endActive();
      await enforcement.checkCreate(create);
      await enforcement.checkUpdate(update);
      await enforcement.onEnd(end);
      expect([create, update, end]).toEqual([createPhysicalHost(), updateExtend(), endActive()]);

      expect(await enforcement.checkCreate(deepFreeze(create))).toMatchObject({ failed: false });
      expect(await enforcement.checkUpdate(deepFreeze(update))).toMatchObject({ failed: false });
      expect(await enforcement.onEnd(deepFreeze(end))).toMatchObject({ failed: false });
      await enforcement.close();
    });

    it('gives the same answer when a check is repeated', async () => {
      const enforcement = await load();
      const first = await enforcement.checkCreate(createPhysicalHost());
      const second = await enforcement.checkCreate(createPhysicalHost());
      expect({ ...second, outcomes: [] }).toEqual({ ...first, outcomes: [] });
      await enforcement.close();
    });

    it('ignores unknown fields', async () => {
      const enforcement = await load();
      const request = createPhysicalHost();
      const strange = JSON.parse(
        '{"__proto__": {"allowed": false}, "constructor": 1, "π": [null, {"": []}]}',
      );
      const lease = { ...request.lease, ...strange, 'x-unknown': strange };
      const decision = await enforcement.checkCreate({ context: { ...request.context, strange }, lease });
      expect(decision).toMatchObject({ allowed: true, failed: false, changed: false });
      expect(decision.lease).toBe(lease);
      await enforcement.close();
    });

    it('accepts a repeated end, and the end of an unknown lease', async () => {
      const enforcement = await load();
      const { context } = endActive();
      expect(await enforcement.onEnd(endActive())).toMatchObject({ failed: false });
      expect(await enforcement.onEnd(endActive())).toMatchObject({ failed: false });
      expect(await enforcement.onEnd({ context, lease: { id: 'never-seen' } })).toMatchObject({
        failed: false,
      });
      await enforcement.close();
    });

    it('can be closed twice', async () => {
      const logger = recordingLogger();
      const enforcement = await load(logger);
      await enforcement.close();
      await enforcement.close();
      expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
    });
  });
}
