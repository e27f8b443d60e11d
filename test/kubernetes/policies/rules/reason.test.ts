import { describe, expect, it } from 'vitest';
import { formatReason, listed, quoted } from '../../../../src/kubernetes/policies/rules/reason.ts';

describe('a reason', () => {
  it('names the field, what was expected and the policies', () => {
    const reason = { field: 'nodeSelector disk', expectation: 'expected ssd or hdd, got "sata"' };
    expect(formatReason({ ...reason, policies: [] })).toBe(
      'nodeSelector disk: expected ssd or hdd, got "sata" (no scheduling policy of the account mentions it)',
    );
    expect(formatReason({ ...reason, policies: ['a'] })).toBe(
      'nodeSelector disk: expected ssd or hdd, got "sata" (scheduling policy a)',
    );
    expect(formatReason({ ...reason, policies: ['a', 'b', 'c'] })).toMatch(
      /\(scheduling policies a, b and c\)$/,
    );
  });

  it('lists a few, and counts the rest', () => {
    expect(listed([], 'or')).toBe('');
    expect(listed(['a'], 'or')).toBe('a');
    expect(listed(['a', 'b'], 'and')).toBe('a and b');
    expect(listed(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'], 'or')).toBe('a, b, c, d, e, f, g or h');
    const many = Array.from({ length: 5_000 }, (_, index) => `n${index}`);
    expect(listed(many, 'or')).toBe('n0, n1, n2, n3, n4, n5, n6, n7 or 4992 more');
  });

  it('truncates long values, and escapes control characters', () => {
    expect(quoted('x'.repeat(200))).toBe(`"${'x'.repeat(200)}"`);
    expect(quoted('x'.repeat(1_000_000))).toBe(`"${'x'.repeat(200)}…"`);
    expect(quoted('a"b\n\u001b[31m')).toBe(String.raw`"a\"b\n\u001b[31m"`);
    expect(listed(['x'.repeat(1_000)], 'or')).toBe(`${'x'.repeat(200)}…`);
  });
});
