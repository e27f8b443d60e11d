/** SkyPilot's schemas, as its API server applies them: keys that it does not know are mistakes. Read on first use. */
import { readFileSync } from 'node:fs';
import type { JsonSchema } from './json-schema.ts';

/** The SkyPilot that the data are of. `npm run skypilot-schema` compares them with another one's. */
export const SCHEMA_VERSION = { skypilot: '0.13', apiVersion: 56 } as const;

/** What SkyPilot has a schema for. */
export const SCHEMA_NAMES = ['config', 'task', 'resources', 'service', 'storage'] as const;
export type SchemaName = (typeof SCHEMA_NAMES)[number];

const READ = new Map<SchemaName, JsonSchema>();

export function schemaOf(name: SchemaName): JsonSchema {
  const read = READ.get(name);
  if (read !== undefined) {
    return read;
  }
  const schema = JSON.parse(readFileSync(schemaFile(name), 'utf8')) as JsonSchema;
  READ.set(name, schema);
  return schema;
}

/** Where the data are: beside this file, also once it is built. */
export function schemaFile(name: SchemaName): URL {
  return new URL(`data/${name}.json`, import.meta.url);
}
