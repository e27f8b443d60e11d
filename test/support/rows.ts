/** The rows of a table of up to four columns, one a line: ` → ` between cells, `\n` for a line break in one. */
export function rows(table: TemplateStringsArray): [string, string, string, string][] {
  const lines = (table.raw[0] ?? '').trim().split('\n');
  return lines.map((line) => {
    const [first = '', second = '', third = '', fourth = ''] = line
      .trim()
      .split(' → ')
      .map((cell) => cell.replaceAll('\\n', '\n'));
    return [first, second, third, fourth];
  });
}
