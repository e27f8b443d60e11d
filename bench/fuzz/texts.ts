/** Mutates captured requests in their values and their text. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { ROOT } from '../requests.ts';

export type Operation = 'check-create' | 'check-update' | 'on-end';

const CAPTURED = (
  [
    ['check-create', 'check-create-physical-host'],
    ['check-create', 'check-create-gpu-and-floating-ip'],
    ['check-update', 'check-update-extend'],
    ['on-end', 'on-end-active'],
  ] as const
).map(([operation, name]) => ({
  operation,
  text: readFileSync(join(ROOT, `test/fixtures/blazar-wire/${name}.json`), 'utf8'),
}));

const DATE_FIELDS = ['start_date', 'end_date', 'end_time'];
const FIELDS = [...DATE_FIELDS, ...'reservations allocations resource_type user_id project_id id'.split(' ')];

/** The arbitrary in one of this many cases, otherwise nothing. */
export function onceIn<Made, Nothing>(
  cases: number,
  made: fc.Arbitrary<Made>,
  nothing: Nothing,
): fc.Arbitrary<Made | Nothing> {
  return fc.oneof({ weight: cases - 1, arbitrary: fc.constant(nothing) }, { weight: 1, arbitrary: made });
}

/** Close to the values of the captured leases, so that some are allowed and others rejected. */
const date = fc
  .tuple(
    fc.oneof(
      fc.integer({ min: -2, max: 2 }),
      fc.integer({ min: -172_802, max: 172_802 }),
      fc.integer({ min: -1e10, max: 1e10 }),
    ),
    fc.constantFrom(
      (iso: string) => iso.slice(0, 19),
      (iso: string) => iso.slice(0, 16).replace('T', ' '),
      (iso: string) => iso.slice(0, 19).replace('T', ' '),
      (iso: string) => iso,
      (iso: string) => `${iso.slice(0, 19)}+05:30`,
      (iso: string) => `${iso.slice(0, 19)}.123456`,
      (iso: string) => iso.slice(0, 10),
    ),
  )
  .map(([seconds, form]) => form(new Date(Date.UTC(2026, 11, 3, 9) + seconds * 1000).toISOString()));

const VALUES: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e308, Number.MAX_SAFE_INTEGER, [], {}, [null], [[]]],
  ...['2026-02-30T00:00:00', '2026-12-01T24:00:00', '2026-12-01', '20261201', 'now', '+275760-09-13'],
  ...['', ' ', '__proto__', 'constructor', '\0', '\ud800', '\u{1f600}', 'x'.repeat(5000), '<b>'],
];

const value = fc.oneof(
  { weight: 3, arbitrary: date },
  { weight: 3, arbitrary: fc.constantFrom(...VALUES) },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
);

const change = fc.record({
  /** A field name, everywhere or once; or the n-th of all positions. */
  place: fc.oneof(fc.constantFrom(...FIELDS), fc.nat()),
  kind: fc.constantFrom('replace', 'replace', 'remove', 'rename', 'wrap'),
  value,
  name: fc.oneof(fc.constantFrom('__proto__', 'toString', ...FIELDS), fc.string()),
});

type Change = typeof change extends fc.Arbitrary<infer Made> ? Made : never;
type Container = Record<string, unknown>;

/** Every value of a tree, as its container and key. */
function places(value: unknown): [Container, string][] {
  if (typeof value !== 'object' || value === null) {
    return [];
  }
  const container = value as Container;
  return Object.keys(container).flatMap((key) => [[container, key], ...places(container[key])]);
}

function apply(tree: unknown, { place, kind, value, name }: Change): void {
  const all = places(tree);
  const found =
    typeof place === 'string' ? all.filter(([, key]) => key === place) : [all[place % all.length]];
  for (const [container, key] of found.filter((one) => one !== undefined)) {
    switch (kind) {
      case 'replace':
        container[key] = structuredClone(value);
        break;
      case 'remove':
        delete container[key];
        break;
      case 'rename':
        // Uses defineProperty because `__proto__` must become an ordinary property. Arrays have no names.
        if (!Array.isArray(container)) {
          Object.defineProperty(container, name, {
            value: container[key],
            enumerable: true,
            configurable: true,
            writable: true,
          });
        }
        delete container[key];
        break;
      default:
        container[key] = [container[key]];
    }
  }
}

const PIECES = [
  ...'"{}[],:-\\\n\0\ufeff',
  '',
  'null',
  'NaN',
  '1e400',
  '-0',
  '\\ud800',
  '"__proto__":{"user_id":"x"},',
  '"lease":{},',
  '[['.repeat(3000),
];

const edit = fc.record({
  at: fc.nat(),
  remove: fc.integer({ min: 0, max: 8 }),
  insert: fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: 'binary', maxLength: 5 })),
});

export type Edit = typeof edit extends fc.Arbitrary<infer Made> ? Made : never;

export const edits: fc.Arbitrary<Edit[]> = fc.array(edit, { minLength: 1, maxLength: 4 });

export function edited(text: string, changes: readonly Edit[]): string {
  return changes.reduce((now, { at, remove, insert }) => {
    const start = at % (now.length + 1);
    return now.slice(0, start) + insert + now.slice(start + remove);
  }, text);
}

export const fuzzedText: fc.Arbitrary<{ readonly operation: Operation; readonly text: string }> = fc
  .record({
    captured: fc.constantFrom(...CAPTURED),
    changes: fc.array(change, { maxLength: 4 }),
    edits: onceIn(5, edits, []),
    space: fc.constantFrom(undefined, 2),
  })
  .map(({ captured, changes, edits: textEdits, space }) => {
    const tree: unknown = JSON.parse(captured.text);
    for (const one of changes) {
      apply(tree, one);
    }
    return { operation: captured.operation, text: edited(JSON.stringify(tree, null, space), textEdits) };
  });
