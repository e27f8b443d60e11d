import { describe, expect, it } from 'vitest';
import { formatPath, member, plainCopy, setMember, valueAt } from '../../../src/base/yaml/tree.ts';

describe('a member', () => {
  it('may have any name', () => {
    const mapping: Record<string, unknown> = {};
    for (const name of ['__proto__', 'constructor', '1', '']) {
      setMember(mapping, name, { x: name });
    }
    expect(Object.keys(mapping).toSorted()).toEqual(['', '1', '__proto__', 'constructor']);
    expect(Object.getPrototypeOf(mapping)).toBe(Object.prototype);
    expect(member(mapping, '__proto__')).toEqual({ x: '__proto__' });
    setMember(mapping, '__proto__', 2);
    expect(member(mapping, '__proto__')).toBe(2);
  });
});

describe('the value at a path', () => {
  const tree = { a: { b: [{ c: null }, 2] }, '0': 'zero' };

  it.each([
    [[], tree],
    [['a', 'b', 1], 2],
    [['a', 'b', 0, 'c'], null],
    [['0'], 'zero'],
    [[0], 'zero'],
    [['a', 'b', '1'], undefined],
    [['a', 'b', 'length'], undefined],
    [['a', 'b', 0, 'c', 'd'], undefined],
    [['toString'], undefined],
    [['a', '__proto__'], undefined],
    [['0', 'length'], undefined],
  ])('%j', (path, value) => {
    expect(valueAt(tree, path)).toEqual(value);
  });
});

describe('a path', () => {
  it.each([
    [['kubernetes', 'pod_config', 'spec'], 'kubernetes.pod_config.spec'],
    [['tolerations', 2, 'key'], 'tolerations[2].key'],
    [[0, 'a', 1], '[0].a[1]'],
    [[], ''],
  ])('%j is shown as %s', (path, text) => {
    expect(formatPath(path)).toBe(text);
  });
});

describe('a plain copy', () => {
  it('is equal, and shares nothing', () => {
    const value = { a: [1, { b: null }], c: true, d: 1n, e: Number.NaN, f: '', g: Object.create(null) };
    const copy = plainCopy(value);
    expect(copy).toEqual({ ...value, g: {} });
    expect(copy).not.toBe(value);
    expect(copy.a).not.toBe(value.a);
    expect(copy.a[1]).not.toBe(value.a[1]);
  });

  it('keeps members of any name, and leaves out those that are undefined', () => {
    const copy = plainCopy(JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}'));
    expect(Object.keys(copy)).toEqual(['__proto__', 'constructor']);
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect(Object.keys(plainCopy({ a: undefined, b: 1 }))).toEqual(['b']);
  });

  it.each([
    [{ a: [() => 1] }, 'a[0]: expected plain data, got function'],
    [{ a: Symbol('x') }, 'a: expected plain data, got symbol'],
    [{ a: { b: new Date(0) } }, 'a.b: expected plain data, got an instance of a class'],
    [[undefined], '[0]: expected plain data, got undefined'],
    [undefined, 'the value: expected plain data, got undefined'],
  ])('is refused for other values: %o', (value, message) => {
    expect(() => plainCopy(value)).toThrow(new TypeError(message));
  });

  it('is refused for a circular reference, and for too many values', () => {
    const circle: Record<string, unknown> = {};
    circle.again = circle;
    const expected = 'expected at most 100 levels and 50000 values, and no circular reference';
    expect(() => plainCopy(circle)).toThrow(expected);
    expect(() => plainCopy({ a: Array(50_001).fill(0) })).toThrow(expected);
    expect(plainCopy(Array(40_000).fill(0))).toHaveLength(40_000);
  });
});
