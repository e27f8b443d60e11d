/** Compares values that PyYAML has read with expected ones. */
import { isDeepStrictEqual } from 'node:util';
import { isMapping, type Mapping } from '../../../src/base/yaml/tree.ts';
import type { Read, Seen } from './python.ts';

/** Whether the value in Python is the same, and of the same type. */
export function isSame(seen: Read, value: unknown): boolean {
  switch (seen?.kind) {
    case 'null':
      return value === null;
    case 'bool':
      return value === (seen.text === 'True');
    case 'int':
      return typeof value === 'bigint' || Number.isSafeInteger(value) ? String(value) === seen.text : false;
    case 'float':
      return Object.is(value, floatOf(seen.text));
    case 'str':
      return value === seen.text;
    case 'date':
    case 'datetime':
    case 'bytes':
      return typeof value === 'string';
    case 'list':
      return (
        Array.isArray(value) &&
        value.length === seen.items.length &&
        seen.items.every((item, index) => isSame(item, value[index]))
      );
    case 'map': {
      const last = new Map(seen.pairs.map(([name, , item]) => [name, item]));
      return (
        isMapping(value) &&
        Object.keys(value).length === last.size &&
        [...last].every(([name, item]) => Object.hasOwn(value, name) && isSame(item, value[name]))
      );
    }
    default:
      return false;
  }
}

function floatOf(text: string): number {
  return Number(text.replace('inf', 'Infinity').replace('nan', 'NaN'));
}

/** Whether a value from code is the same in Python: texts and names are texts. */
function isNew(seen: Read, value: unknown): boolean {
  if (seen?.kind === 'list') {
    return (
      Array.isArray(value) &&
      value.length === seen.items.length &&
      seen.items.every((item, index) => isNew(item, value[index]))
    );
  }
  if (seen?.kind === 'map') {
    return (
      isMapping(value) &&
      Object.keys(value).length === seen.pairs.length &&
      seen.pairs.every(
        ([name, key, item]) => key.kind === 'str' && Object.hasOwn(value, name) && isNew(item, value[name]),
      )
    );
  }
  if (typeof value === 'string') {
    return seen?.kind === 'str' && seen.text === value;
  }
  return isSame(seen, value);
}

/** Whether `now` is `then` after its value was changed from `before` to `after`: unchanged parts are the same, others have the new value. */
export function isOnlyChanged(now: Read, then: Seen, before: unknown, after: unknown): boolean {
  if (isDeepStrictEqual(before, after)) {
    return isDeepStrictEqual(now, then);
  }
  if (then.kind === 'map' && isMapping(before) && isMapping(after)) {
    return now?.kind === 'map' && isChangedMapping(now, then, before, after);
  }
  if (then.kind === 'list' && Array.isArray(before) && Array.isArray(after)) {
    return (
      now?.kind === 'list' &&
      now.items.length === after.length &&
      // The document finds out which item it was.
      now.items.every(
        (item, index) =>
          then.items.some((old, position) => isOnlyChanged(item, old, before[position], after[index])) ||
          isNew(item, after[index]),
      )
    );
  }
  return isNew(now, after);
}

type SeenMapping = Extract<Seen, { kind: 'map' }>;

function isChangedMapping(now: SeenMapping, then: SeenMapping, before: Mapping, after: Mapping): boolean {
  const kept = then.pairs.filter(([name]) => Object.hasOwn(after, name));
  const added = Object.keys(after).filter((name) => !Object.hasOwn(before, name));
  const last = new Map(kept.map(([name], index) => [name, index]));
  return (
    now.pairs.length === kept.length + added.length &&
    kept.every(([name, key, value], index) => {
      const [nameNow, keyNow, valueNow] = now.pairs[index] ?? [];
      const isUnchanged = last.get(name) !== index;
      return (
        nameNow === name &&
        isDeepStrictEqual(keyNow, key) &&
        (isUnchanged
          ? isDeepStrictEqual(valueNow, value)
          : isOnlyChanged(valueNow, value, before[name], after[name]))
      );
    }) &&
    added.every((name, index) => {
      const [nameNow, keyNow, valueNow] = now.pairs[kept.length + index] ?? [];
      return nameNow === name && keyNow?.kind === 'str' && isNew(valueNow, after[name]);
    })
  );
}
