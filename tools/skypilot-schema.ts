/**
 * Compares our SkyPilot schema data with another SkyPilot's: `npm run skypilot-schema -- FILE [NAME]
 * [--write]`. docs/reference/skypilot.md shows how to print one. Exit code: 0 equal, 1 different, 2 an error.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  SCHEMA_NAMES,
  SCHEMA_VERSION,
  type SchemaName,
  schemaOf,
} from '../src/skypilot/schema/json-schema.ts';
import {
  type Difference,
  differences,
  isSchema,
  normalForm,
  type Schema,
} from './skypilot-schema/differences.ts';
import { withReferences } from './skypilot-schema/references.ts';

const SIGNS = { added: '+', removed: '-', changed: '~' } as const;

function main(): number {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { write: { type: 'boolean', default: false } },
  });
  const [file, named = 'config', ...further] = positionals;
  const name = SCHEMA_NAMES.find((one) => one === named);
  if (file === undefined || name === undefined || further.length > 0) {
    throw new Error(`expected FILE and one of ${SCHEMA_NAMES.join(', ')} (default: config)`);
  }
  const theirs = normalForm(read(file));
  const found = differences(normalForm({ ...schemaOf(name) }), theirs);
  print(name, file, found);
  if (values.write) {
    const path = join('src', 'skypilot', 'schema', 'data.json');
    const all = SCHEMA_NAMES.map((one) => [one, one === name ? theirs : schemaOf(one)]);
    writeFileSync(path, `${JSON.stringify(withReferences(Object.fromEntries(all)), null, 2)}\n`);
    process.stdout.write(`wrote ${path}: format it, and change SCHEMA_VERSION\n`);
  }
  return found.length === 0 ? 0 : 1;
}

function read(file: string): Schema {
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (!isSchema(value) || !isSchema(value.properties)) {
    throw new Error(`${file}: expected a schema with properties`);
  }
  return value;
}

function print(name: SchemaName, file: string, found: readonly Difference[]): void {
  const ours = `the schema of ${name} of SkyPilot ${SCHEMA_VERSION.skypilot} (API version ${SCHEMA_VERSION.apiVersion})`;
  for (const { kind, path, what } of found) {
    process.stdout.write(`${SIGNS[kind]} ${path}${what === '' ? '' : ` ${what}`}\n`);
  }
  const count = (kind: Difference['kind']) => found.filter((one) => one.kind === kind).length;
  const summary =
    found.length === 0
      ? 'no difference'
      : `${count('added')} added, ${count('removed')} removed, ${count('changed')} changed`;
  process.stdout.write(`${file} compared with ${ours}: ${summary}\n`);
}

try {
  process.exitCode = main();
} catch (thrown) {
  process.stderr.write(`error: ${thrown instanceof Error ? thrown.message : String(thrown)}\n`);
  process.exitCode = 2;
}
