/** The example of a policy service as a process: wrong settings end it with one line. */
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { start } from './helpers.ts';
import { run } from './process.ts';

describe('the process', () => {
  it('does not start with a wrong setting or on a port in use, and says why in one line', async () => {
    const { url } = await start();
    const settings = [
      ['PORT', 'http', 'PORT: '],
      ['PORT', '70000', 'PORT: '],
      ['EXAMPLE_BUDGET_NODE_HOURS', 'many', 'EXAMPLE_BUDGET_NODE_HOURS: '],
      ['EXAMPLE_BUDGET_NODE_HOURS', '-1', 'EXAMPLE_BUDGET_NODE_HOURS: '],
      ['EXAMPLE_TOKEN', '', 'EXAMPLE_TOKEN: '],
      ['PORT', new URL(url).port, 'listen EADDRINUSE'],
    ] as const;
    const started = settings.map(([name, value]) => run({ PORT: '0', [name]: value }));
    for (const [index, { child, errors }] of started.entries()) {
      const text = await errors;
      expect(text).toMatch(/^[^\n]+\n$/);
      expect(text.startsWith(settings[index]?.[2] ?? '?'), text).toBe(true);
      expect(child.exitCode ?? (await once(child, 'exit'))[0]).toBe(2);
    }
  });
});
