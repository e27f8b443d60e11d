import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SCHEMA_NAMES, schemaOf } from '../../src/skypilot/schema/json-schema.ts';
import { differences, normalForm, type Schema } from '../../tools/skypilot-schema/differences.ts';
import { withReferences } from '../../tools/skypilot-schema/references.ts';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

const lines = (ours: Schema, theirs: Schema) =>
  differences(ours, theirs).map(({ kind, path, what }) => `${kind} ${path} ${what}`.trim());
const keys = (properties: Schema) => ({ type: 'object', properties });

describe('two schemas', () => {
  it('differ by keys, wherever they are', () => {
    const ours = keys({ a: { type: 'string' }, b: { items: keys({ c: {}, d: {} }) } });
    const theirs = keys({ b: { items: keys({ d: {}, __e: {} }) }, f: {} });
    expect(lines(ours, theirs)).toEqual(['removed a', 'removed b[].c', 'added b[].__e', 'added f']);
  });

  it('differ by keywords', () => {
    const of = (type: string, minimum?: number) =>
      keys({ a: { additionalProperties: { anyOf: [{ type, ...(minimum !== undefined && { minimum }) }] } } });
    expect(lines(of('integer', 1), of('number'))).toEqual([
      'changed a.<name>(anyOf 1) type: "integer" → "number"',
      'changed a.<name>(anyOf 1) minimum: 1 → none',
    ]);
  });

  it('differ by names in a list, not by their order', () => {
    const of = (...names: string[]) => keys({ cloud: { case_insensitive_enum: names } });
    expect(lines(of('aws', 'gcp', 'ibm'), of('gcp', 'aws', 'new'))).toEqual([
      'changed cloud case_insensitive_enum: +new -ibm',
    ]);
    expect(lines(of('aws', 'gcp'), of('gcp', 'aws'))).toEqual([]);
  });

  it('do not differ by what explains them', () => {
    const explained = {
      $schema: 'x',
      required: [],
      ...keys({ a: { description: 'y', default: 1 }, default: {} }),
    };
    expect(normalForm(explained)).toEqual(keys({ a: {}, default: {} }));
  });
});

describe.for(SCHEMA_NAMES)('the data of %s', (name) => {
  it('are in normal form, and repeat nothing', () => {
    expect(normalForm({ ...schemaOf(name) })).toEqual(schemaOf(name));
    const data = JSON.parse(readFileSync(projectFile('src/skypilot/schema/data.json'), 'utf8'));
    const all = Object.fromEntries(SCHEMA_NAMES.map((one) => [one, schemaOf(one)]));
    expect(data).toEqual(withReferences(all));
  });
});

describe('npm run skypilot-schema', () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [projectFile('dist/tools/skypilot-schema.js'), ...args], {
      encoding: 'utf8',
    });

  it('ends with 0 for the same schema, 1 for another, 2 for none', () => {
    const file = join(temporaryFolder(), 'schema.json');
    const schema = schemaOf('service');
    writeFileSync(file, JSON.stringify({ ...schema, description: 'x' }));
    expect(run(file, 'service')).toMatchObject({
      status: 0,
      stdout: `${file} compared with the schema of service of SkyPilot 0.13 (API version 56): no difference\n`,
    });
    writeFileSync(file, JSON.stringify(keys({ ...schema.properties, more: {} })));
    expect(run(file, 'service')).toMatchObject({
      status: 1,
      stdout: `~ (all) additionalProperties: false → none\n+ more\n${file} compared with the schema of service of SkyPilot 0.13 (API version 56): 1 added, 0 removed, 1 changed\n`,
    });
    writeFileSync(file, '[]');
    expect(run(file)).toMatchObject({
      status: 2,
      stderr: `error: ${file}: expected a schema with properties\n`,
    });
    expect(run()).toMatchObject({ status: 2 });
  });
});
