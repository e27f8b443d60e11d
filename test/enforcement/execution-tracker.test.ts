import { expect, it } from 'vitest';
import { ExecutionTracker, executionSeen } from '../../src/enforcement/execution-tracker.ts';

it('a filter counts as executing until it returns or throws', () => {
  const executions = new ExecutionTracker();
  const execution = executions.executionOf('SlowFilter');
  const at = () => executionSeen(executions.memory).at;
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
