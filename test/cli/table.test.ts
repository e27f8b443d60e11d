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

it('aligns the columns, also of wide characters, and ends no line with spaces', async () => {
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

/** Quadratic work would take longer than the timeout. */
it('prints tens of thousands of rows', { timeout: 15_000 }, async () => {
  const row = Array.from({ length: 9 }, (_, column) => `2030-01-01T00:00:00Z ${column}`);
  const rows = Array.from({ length: 50_000 }, () => row);
  expect((await printed(row, rows)).split('\n')).toHaveLength(50_002);
});
