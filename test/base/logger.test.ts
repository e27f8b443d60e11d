import { expect, it } from 'vitest';
import { createLogger, type LogFormat } from '../../src/base/logger.ts';
import { captured } from '../support/command-in-process.ts';

it.each<LogFormat>(['json', 'pretty'])(
  'a line that is too long is replaced by one that says so: %s',
  async (format) => {
    const { stderr } = await captured(async () => {
      const logger = createLogger('warn', format);
      logger.error({ error: 'x'.repeat(20_000_000), filter: 'AFilter' }, 'filter failed');
      logger.warn('the next line');
    });
    expect(stderr.length).toBeLessThan(2000);
    expect(stderr).toMatch(
      /lines of the log were dropped: too long, or standard error could not be written[\s\S]*the next line/,
    );
    expect(stderr).toMatch(/"?lines"?: ?1/);
    expect(stderr).toContain('xxxx');
    expect(stderr.match(/were dropped/g)).toHaveLength(1);
  },
);
