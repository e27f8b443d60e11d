import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { YamlError } from '../../../src/base/yaml/tree.ts';

function value(text: string): unknown {
  return YamlDocument.parse(text).value;
}

describe('an alias', () => {
  it('is a copy of its anchor: a scalar, a list, a mapping, a key', () => {
    const nested = { x: [10] };
    expect(value('a: &a 012\nc: &c [*a]\nd: &d {x: *c}\ne: *d\n&k k: 1\nf: *k\n')).toEqual({
      a: 10,
      c: [10],
      d: nested,
      e: nested,
      k: 1,
      f: 'k',
    });
    expect(value('a: &a name\n*a : 1\n')).toEqual({ a: 'name', name: 1 });
  });

  it('refers to the last anchor of that name before it', () => {
    expect(value('- &a 1\n- *a\n- &a 2\n- *a\n')).toEqual([1, 1, 2, 2]);
  });

  it('is kept as it is written when nothing changes', () => {
    const text = 'a: &a {x: 1}\nb: {<<: *a}\n';
    const document = YamlDocument.parse(text);
    expect(document.with(document.value).toString()).toBe(text);
  });

  it.each([
    ['*a', 'an alias has no anchor before it'],
    ['- *a\n- &a 1', 'an alias has no anchor before it'],
    ['&a [*a]', 'an alias refers to a node that contains it'],
    ['a: &a\n  b: [{c: *a}]', 'an alias refers to a node that contains it'],
    ['&a {<<: *a}', 'an alias refers to a node that contains it'],
    ['&a {*a : 1}', 'an alias refers to a node that contains it'],
  ])('is refused in %j', (text, reason) => {
    expect(() => value(text)).toThrow(new YamlError(reason));
  });
});

describe('a merge key', () => {
  it('adds members before the own ones, which win', () => {
    const merged = value('base: &base {x: 1, y: 2}\nown:\n  z: 4\n  <<: *base\n  y: 3\n') as { own: object };
    expect(merged.own).toEqual({ x: 1, y: 3, z: 4 });
    expect(Object.keys(merged.own)).toEqual(['x', 'y', 'z']);
  });

  it('prefers the first mapping of a list, and the last of several keys', () => {
    const bases = '- &a {x: 1}\n- &b {x: 2, y: 3}\n';
    expect(value(`${bases}- <<: [*a, *b]\n`)).toEqual([{ x: 1 }, { x: 2, y: 3 }, { x: 1, y: 3 }]);
    expect(value(`${bases}- <<: *a\n  <<: *b\n`)).toEqual([{ x: 1 }, { x: 2, y: 3 }, { x: 2, y: 3 }]);
  });

  it('may merge a mapping that has a merge key, and one without an anchor', () => {
    expect(value('- &a {x: 1}\n- &b {<<: *a, y: 2}\n- {<<: *b, z: 3}\n- {<<: {v: 1}}\n')).toEqual([
      { x: 1 },
      { x: 1, y: 2 },
      { x: 1, y: 2, z: 3 },
      { v: 1 },
    ]);
  });

  it.each(['<<: 1', '<<: ~', '<<: [1]', '<<: text'])('is refused for anything but mappings: %s', (text) => {
    expect(() => value(text)).toThrow(new YamlError('"<<" refers to something that is not a mapping'));
  });
});
