import { expect, it, vi } from 'vitest';
import { printTable } from '../../src/cli/output.ts';

async function printed(head: readonly string[], rows: readonly (readonly string[])[]): Promise<string> {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    await printTable(head, rows);
    return write.mock.calls.map(([text]) => String(text)).join('');
  } finally {
    write.mockRestore();
  }
}

it('sets columns below each other, whatever stands in them, and nothing behind the last', async () => {
  const rows = [
    ['a', 'bb', ''],
    ['研究', 'c', 'd'],
    ['🧪 e\u0301', 'steering\u001b[2J', 'f'],
  ];
  expect(await printed(['ONE', 'TWO', 'THREE'], rows)).toBe(
    [
      'ONE   TWO                THREE',
      'a     bb',
      '研究  c                  d',
      '🧪 e\u0301  steering\\u001b[2J  f',
      '',
    ].join('\n'),
  );
  expect(await printed(['ONE', 'TWO'], [])).toBe('ONE  TWO\n');
});

it('takes as much longer as there is more', async () => {
  const row = Array.from({ length: 9 }, (_, column) => `2030-01-01T00:00:00Z ${column}`);
  const started = performance.now();
  const text = await printed(
    row,
    Array.from({ length: 50_000 }, () => row),
  );
  expect(text.split('\n')).toHaveLength(50_002);
  // 20 s with the package that was used before, and more with each row.
  expect(performance.now() - started).toBeLessThan(15_000);
});
