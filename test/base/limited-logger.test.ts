import { beforeEach, describe, expect, it, vi } from 'vitest';
import { LimitedLogger } from '../../src/base/limited-logger.ts';
import { recordingLogger } from '../support/logger.ts';

describe('a limited logger', () => {
  beforeEach(() => void vi.useFakeTimers());

  function limited(by?: string) {
    const { lines, ...logger } = recordingLogger();
    const limits = new LimitedLogger(logger, by);
    const fail = (count: number, fields: object = {}, message = 'filter failed') => {
      for (let index = 0; index < count; index += 1) {
        limits.error(fields, message);
      }
    };
    return { lines, limits, fail, counted: () => lines.filter(({ fields }) => 'suppressed' in fields) };
  }

  it('logs thirty lines in a minute, and at its end how many more there were', () => {
    const { lines, fail, counted } = limited();
    fail(35, { error: 'away' });
    expect(lines).toHaveLength(30);
    expect(lines[0]).toEqual({ level: 'error', fields: { error: 'away' }, message: 'filter failed' });
    vi.advanceTimersByTime(59_999);
    expect(counted()).toEqual([]);
    vi.advanceTimersByTime(1);
    const more = {
      level: 'error',
      fields: { suppressed: 5 },
      message: 'more than are logged: filter failed',
    };
    expect(counted()).toEqual([more]);
    fail(1, { error: 'away' });
    expect(lines).toHaveLength(32);
    vi.advanceTimersByTime(60_000);
    expect(counted()).toEqual([more]);
  });

  it('says at its end how many were not logged, and leaves no timer', () => {
    const { limits, fail, counted } = limited();
    fail(31);
    limits.close();
    expect(counted()).toMatchObject([{ fields: { suppressed: 1 } }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('limits each kind by itself, by a field or the message', () => {
    const { limits, lines, fail, counted } = limited('filter');
    fail(40, { filter: 'AFilter' });
    fail(1, { filter: 'BFilter' });
    limits.warn({ filter: 'AFilter' }, 'a warning');
    limits.warn('without fields');
    expect(lines).toHaveLength(33);
    limits.close();
    const fields = { filter: 'AFilter', suppressed: 10 };
    expect(counted()).toEqual([{ level: 'error', fields, message: 'more than are logged of this filter' }]);
    const byMessage = limited();
    byMessage.fail(40);
    byMessage.fail(1, {}, 'policy failed');
    expect(byMessage.lines).toHaveLength(31);
  });

  it.each<[what: string, line: (index: number) => [object, string]]>([
    ['cause', (index) => [{ error: `cause ${index}` }, 'filter failed']],
    ['message', (index) => [{}, `cause ${index}`]],
    ['rule', (index) => [{ rule: `cause ${index}` }, 'rule failed']],
  ])('logs another %s of a kind after thirty lines, up to thirty in a minute', (_, line) => {
    const { limits, lines, fail, counted } = limited('filter');
    fail(40);
    limits.error(...line(0));
    limits.error(...line(0));
    expect(lines).toHaveLength(31);
    for (let index = 0; index < 50; index += 1) {
      limits.error(...line(index));
    }
    expect(lines).toHaveLength(60);
    limits.close();
    expect(counted()).toMatchObject([{ fields: { suppressed: 32 } }]);
  });

  it('keeps a thousand kinds: further ones share one limit', () => {
    const { lines, limits } = limited();
    for (let index = 0; index < 2000; index += 1) {
      limits.error(`kind ${index}`);
    }
    expect(lines).toHaveLength(1060);
    limits.close();
    expect(lines.at(-1)).toMatchObject({
      fields: { suppressed: 940 },
      message: 'more than are logged: others',
    });
  });

  it('does not limit what is below a warning', () => {
    const { limits, lines } = limited();
    for (let index = 0; index < 100; index += 1) {
      limits.info('exempt');
    }
    expect(lines).toHaveLength(100);
  });
});
