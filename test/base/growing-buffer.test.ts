import fc from 'fast-check';
import { expect, it } from 'vitest';
import { GrowingBuffer } from '../../src/base/growing-buffer.ts';
import '../support/properties.ts';

it('holds what was added, whatever the parts are, in at most twice the memory', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 2000 }), { maxLength: 40 }), (parts) => {
      const buffer = new GrowingBuffer();
      for (const part of parts) {
        buffer.push(part);
      }
      const whole = Buffer.concat(parts);
      expect(buffer.length).toBe(whole.length);
      expect(buffer.bytes.equals(whole)).toBe(true);
      const several = parts.filter(({ length }) => length > 0).length > 1;
      expect(several ? buffer.bytes.buffer.byteLength : 0).toBeLessThanOrEqual(
        Math.max(1024, 2 * whole.length),
      );
    }),
  );
});

it('does not change a part that was added', () => {
  const first = Buffer.from('first and more').subarray(0, 5);
  const buffer = new GrowingBuffer();
  buffer.push(first);
  buffer.push(Buffer.from(' second'));
  expect([buffer.bytes.toString(), Buffer.from(first.buffer, first.byteOffset, 14).toString()]).toEqual([
    'first second',
    'first and more',
  ]);
});
