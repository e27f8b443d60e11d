import { describe, expect, it } from 'vitest';
import * as none from '../../bench/tracing/none.ts';
import * as tracing from '../../src/base/tracing.ts';

describe('the functions that stand in for tracing', () => {
  it('are all of them', () => {
    expect(Object.keys(none).sort()).toEqual(Object.keys(tracing).sort());
  });

  it('do what the caller would do without them', () => {
    expect(none.isTraced()).toBe(false);
    expect(none.inSpan({ name: 'work', attributes: {} }, () => 'done')).toBe('done');
  });
});
