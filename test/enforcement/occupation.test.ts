import { expect, it } from 'vitest';
import { Occupation, occupationSeen } from '../../src/enforcement/occupation.ts';

it('a filter counts as executing until it returns or throws', () => {
  const occupation = new Occupation();
  const execution = occupation.executionOf('SlowFilter');
  const at = () => occupationSeen(occupation.memory).at;
  expect(at()).toBe(0);
  expect(execution.run(at)).toBe(1);
  expect(at()).toBe(-1);
  const failing = () =>
    execution.run(() => {
      throw new Error('broken');
    });
  expect(failing).toThrow('broken');
  expect(at()).toBe(-1);
});
