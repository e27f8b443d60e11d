/** The difference between two leases, as a text for the user. */
import type { Lease } from '../lease/lease.ts';

/** A message does not list more values than a user can reasonably set by hand. */
const MAX_NAMED_CHANGES = 20;
/** In characters. Longer values are cut. */
const MAX_VALUE = 10_000;

/** `end_date = "2026-12-02T09:00:00", reservations/0/max = 1`: what to change in a request. */
export function describeChanges(from: Lease, to: Lease): string {
  const named: string[] = [];
  let others = 0;
  for (const { path, value } of differences([], from, to)) {
    if (named.length < MAX_NAMED_CHANGES) {
      const name = path.join('/');
      named.push(value === undefined ? `without ${name}` : `${name} = ${shown(value)}`);
    } else {
      others += 1;
    }
  }
  return `${named.join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}

interface Difference {
  readonly path: readonly string[];
  /** `undefined` = it was removed. */
  readonly value: unknown;
}

/** Skips parts that a filter has not copied: usually most of a long lease. */
function* differences(path: readonly string[], from: unknown, to: unknown): Generator<Difference> {
  if (Object.is(from, to)) {
    return;
  }
  if (!isTree(from) || !isTree(to) || Array.isArray(from) !== Array.isArray(to)) {
    // Two date objects may be equal.
    if (JSON.stringify(from) !== JSON.stringify(to)) {
      yield { path, value: to };
    }
    return;
  }
  for (const name of Object.keys({ ...from, ...to })) {
    const [before, after] = [from, to].map((tree) => (Object.hasOwn(tree, name) ? tree[name] : undefined));
    yield* differences([...path, name], before, after);
  }
}

/** A list, or an object that is not a value such as a date. */
function isTree(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' && value !== null && !('toJSON' in value && typeof value.toJSON === 'function')
  );
}

function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}
