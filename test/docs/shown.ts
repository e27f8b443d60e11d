/** Compares output with what a page shows. */

/** `…` on a page stands for anything: within a line, or on a line of its own for any number of lines. */
export function matchesShown(output: string, shown: string): boolean {
  const pattern = trimmed(shown)
    .split('\n')
    .map((line) => (line === '…' ? '(?:.*\\n)*?' : `${line.split('…').map(literal).join('.*')}\\n`))
    .join('');
  return new RegExp(`^${pattern}$`).test(`${trimmed(output)}\n`);
}

function trimmed(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/^\n+|\n+$/g, '');
}

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** The commands of a `console` block, each with the output that the page shows. */
export function commands(text: string): { command: string; shown: string }[] {
  const found: { command: string; shown: string }[] = [];
  let continued = false;
  for (const line of text.split('\n')) {
    const last = found.at(-1);
    if (line.startsWith('$ ')) {
      found.push({ command: line.slice(2), shown: '' });
    } else if (last === undefined) {
      throw new Error(`expected "$ " and a command, got ${JSON.stringify(line)}`);
    } else if (continued) {
      last.command += `\n${line}`;
    } else {
      last.shown += `${line}\n`;
      continue;
    }
    continued = line.endsWith('\\');
  }
  return found;
}
