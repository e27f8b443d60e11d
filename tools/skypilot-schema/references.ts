/** Writes what schemas repeat once, in `$defs`: SkyPilot's own repeat all that resources consist of. */
import { isSchema, OF_NAMES, type Schema } from './differences.ts';

/** Shorter parts are repeated, in characters. */
const SHORT = 120;

/** `schemas`: name → schema. Definitions come before what refers to them. */
export function withReferences(schemas: Schema): Schema {
  const uses = new Map<string, number>();
  mapSchemas(schemas, '', function count(part) {
    const text = JSON.stringify(part);
    const used = uses.get(text) ?? 0;
    uses.set(text, used + 1);
    return used === 0 ? mapSchemas(part, '', count) : part;
  });
  const definitions = new Map<string, { readonly name: string; readonly written: Schema }>();
  const taken = new Set<string>();
  const written = mapSchemas(schemas, '', function refer(part, name): Schema {
    const text = JSON.stringify(part);
    if (text.length < SHORT || (uses.get(text) ?? 0) < 2) {
      return mapSchemas(part, name, refer);
    }
    const known = definitions.get(text);
    if (known !== undefined) {
      return referenceTo(known.name);
    }
    const below = mapSchemas(part, name, refer);
    const free = freeName(name, taken);
    taken.add(free);
    definitions.set(text, { name: free, written: below });
    return referenceTo(free);
  });
  const all = [...definitions.values()].map((one) => [one.name, one.written]);
  return { $defs: Object.fromEntries(all), ...written };
}

function referenceTo(name: string): Schema {
  return { $ref: `#/$defs/${name}` };
}

function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name;
  for (let number = 2; taken.has(free); number += 1) {
    free = `${name}_${number}`;
  }
  return free;
}

/** Replaces the schemas directly below one. `name`: the nearest key above. */
function mapSchemas(schema: Schema, name: string, change: (part: Schema, name: string) => Schema): Schema {
  const changed = (value: unknown, key: string): unknown =>
    Array.isArray(value)
      ? value.map((one) => changed(one, key))
      : isSchema(value)
        ? change(value, key)
        : value;
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => [
      keyword,
      OF_NAMES.has(keyword) && isSchema(value)
        ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, changed(one, key)]))
        : changed(value, name || keyword),
    ]),
  );
}
