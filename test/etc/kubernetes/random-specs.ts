/** Random specs of scheduling policies: most of their parts are right, and so are some of the specs. */
import fc from 'fast-check';
import { isMapping, type Mapping } from '../../../src/base/yaml/tree.ts';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Other names for fields: those of the draft, and unknown ones. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  schedulerNames: 'SchedulerNames',
  schedulerName: 'SchedulerName',
  priorityClassNames: 'priorityClasseNames',
  priorityClassName: 'priorityClasseName',
  affinities: 'allowedAffinities',
  allowed: 'allowedAffinities',
  key: 'keys',
  operator: 'operators',
  value: 'values',
};
const VALUES: readonly Json[] = [
  null,
  '',
  'gpu',
  'In',
  'Exists',
  0,
  1,
  1.5,
  101,
  true,
  [],
  [''],
  ['In'],
  [null],
  {},
  { '': '' },
];

/** Changes at one place of a spec. */
const CHANGES: Readonly<Record<string, (holder: Json, step: string | number, value: Json) => void>> = {
  remove: (holder, step) => {
    if (Array.isArray(holder)) {
      holder.splice(Number(step), 1);
    } else if (isMapping(holder)) {
      delete (holder as Record<string, Json>)[step];
    }
  },
  replace: (holder, step, value) => {
    (holder as Record<string, Json>)[step] = value;
  },
  rename: (holder, step) => {
    const there = holder as Record<string, Json>;
    const value = there[step] ?? null;
    delete there[step];
    there[OTHER_NAMES[step] ?? `${step}s`] = value;
  },
  'write twice': (holder, step) => {
    const there = holder as Record<string, Json>;
    there[OTHER_NAMES[step] ?? `${step}s`] = structuredClone(there[step] ?? null);
  },
  add: (holder, _, value) => {
    if (Array.isArray(holder)) {
      holder.push(value);
    } else {
      (holder as Record<string, Json>).extra = value;
    }
  },
};

/** A spec with some of the fields of a structural schema. */
export function specsOf(schema: Mapping): fc.Arbitrary<Json> {
  const { type, nullable, enum: only, properties, additionalProperties, items, required } = schema;
  if (nullable === true) {
    return fc.oneof({ weight: 9, arbitrary: specsOf({ ...schema, nullable: false }) }, fc.constant(null));
  }
  if (Array.isArray(only)) {
    return fc.constantFrom(...only);
  }
  if (type === 'array' && isMapping(items)) {
    return fc.array(specsOf(items), { maxLength: 2 });
  }
  if (type === 'object' && isMapping(additionalProperties)) {
    const names = fc.constantFrom('disk', 'disk', 'zone', 'zone', '');
    return fc.dictionary(names, specsOf(additionalProperties), { maxKeys: 2, noNullPrototype: true });
  }
  if (type === 'object') {
    const fields = isMapping(properties) ? properties : {};
    const always = Array.isArray(required) ? (required as string[]) : [];
    const known = Object.keys(fields);
    return fc.subarray(known, { maxLength: Math.min(3, known.length) }).chain((some) => {
      const names = [...new Set([...always, ...some])];
      return fc.record(Object.fromEntries(names.map((name) => [name, specsOf(fields[name] as Mapping)])), {
        noNullPrototype: true,
      });
    });
  }
  return type === 'integer' ? fc.constantFrom(1, 50, 100, 0, 101) : fc.constantFrom('gpu', 'amd64', 'x', '');
}

/** A spec that was changed at up to two places. */
export function changed(spec: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  const change = fc.record({
    at: fc.nat(),
    how: fc.constantFrom(...Object.keys(CHANGES)),
    value: fc.constantFrom(...VALUES),
  });
  return fc.tuple(spec, fc.array(change, { maxLength: 2 })).map(([original, changes]) => {
    const spec = structuredClone(original);
    for (const { at, how, value } of changes) {
      const places = placesIn(spec);
      const place = places[at % Math.max(places.length, 1)];
      if (place !== undefined) {
        CHANGES[how]?.(...place, structuredClone(value));
      }
    }
    return spec;
  });
}

/** What holds a value, and where in it. */
function placesIn(value: Json): [holder: Json, step: string | number][] {
  const entries: [string | number, Json][] = Array.isArray(value)
    ? [...value.entries()]
    : isMapping(value)
      ? (Object.entries(value) as [string, Json][])
      : [];
  return entries.flatMap(([step, below]) => [[value, step], ...placesIn(below)]);
}
