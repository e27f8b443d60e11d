/** Lists and maps that an expression makes. */
import { Failure } from './failure.ts';
import type { Run } from './frame.ts';
import { typeName } from './values.ts';

export function listRun(elements: readonly Run[]): Run {
  return (frame) => {
    const values: unknown[] = [];
    for (const element of elements) {
      const value = element(frame);
      if (value instanceof Failure) {
        return value;
      }
      values.push(value);
    }
    return values;
  };
}

export function mapRun(entries: readonly (readonly [Run, Run])[], offset: number): Run {
  return (frame) => {
    const map = new Map<unknown, unknown>();
    for (const [key, value] of entries) {
      const [name, one] = [key(frame), value(frame)];
      if (name instanceof Failure || one instanceof Failure) {
        return name instanceof Failure ? name : one;
      }
      if (typeof name === 'object' || typeof name === 'number') {
        return new Failure(`${typeName(name)} cannot be a key of a map`, offset);
      }
      if (map.has(name)) {
        return new Failure('a map with the same key twice', offset);
      }
      map.set(name, one);
    }
    return map;
  };
}
