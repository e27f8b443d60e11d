/** What the pages hold that can be checked: code blocks, code spans, tables, headings, links. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { projectFile } from '../support/files.ts';

/** A fenced code block. CONTRIBUTING.md says what its language and the words behind it make of it. */
export interface Block {
  readonly page: string;
  /** Of the opening fence, counting from 1. */
  readonly line: number;
  readonly language: string;
  readonly words: readonly string[];
  /** The path in `file=…`. */
  readonly file: string | undefined;
  readonly text: string;
}

export interface Page {
  /** The path inside the project. */
  readonly name: string;
  readonly lines: readonly string[];
  readonly blocks: readonly Block[];
  /** The page without its code blocks, as many lines as before. */
  readonly prose: readonly string[];
}

/** Pages that this folder keeps true. The example's README is the example's own; its links and settings are checked. */
export const PAGES: readonly Page[] = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'external-service-example/README.md',
  ...readdirSync(projectFile('docs'), { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`),
]
  .filter((name) => name.endsWith('.md'))
  .map(readPage);

export function pageNamed(name: string): Page {
  const page = PAGES.find((candidate) => candidate.name === name);
  if (page === undefined) {
    throw new Error(`there is no page ${name}`);
  }
  return page;
}

function readPage(name: string): Page {
  const lines = readFileSync(projectFile(name), 'utf8').split('\n');
  const blocks: Block[] = [];
  const prose: string[] = [];
  let open: { line: number; info: string; content: string[] } | undefined;
  for (const [index, line] of lines.entries()) {
    const fence = /^```(.*)$/.exec(line);
    if (/^\s+```/.test(line)) {
      throw new Error(`${name}:${index + 1}: a code block that is indented is not tried`);
    }
    if (open === undefined && fence !== null) {
      open = { line: index + 1, info: fence[1] ?? '', content: [] };
    } else if (open !== undefined && fence !== null) {
      const [language = '', ...words] = open.info.split(' ');
      const file = words.find((word) => word.startsWith('file='))?.slice('file='.length);
      blocks.push({
        page: name,
        line: open.line,
        language,
        words,
        file,
        text: `${open.content.join('\n')}\n`,
      });
      open = undefined;
    } else if (open !== undefined) {
      open.content.push(line);
      prose.push('');
      continue;
    } else {
      prose.push(line);
      continue;
    }
    prose.push('');
  }
  if (open !== undefined) {
    throw new Error(`${name}:${open.line}: this code block does not end`);
  }
  return { name, lines, blocks, prose };
}

/** `{ line, text }` of everything between single backticks. */
export function codeSpans({ prose }: Page): { line: number; text: string }[] {
  return prose.flatMap((line, index) =>
    [...line.matchAll(/`([^`]+)`/g)].map(([, text = '']) => ({ line: index + 1, text })),
  );
}

/** The rows of the table under a heading, without its head; each cell as it is written. */
export function tableUnder(page: Page, heading: string): string[][] {
  const start = page.prose.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading);
  if (start === -1) {
    throw new Error(`${page.name} has no heading "${heading}"`);
  }
  const rest = page.prose.slice(start + 1);
  const first = rest.findIndex((line) => line.startsWith('|'));
  const rows = rest.slice(first, first + rest.slice(first).findIndex((line) => !line.startsWith('|')));
  return rows.slice(2).map((row) =>
    row
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** The code spans in the first column of the table under a heading. */
export function namesUnder(page: Page, heading: string): string[] {
  return tableUnder(page, heading).flatMap(([cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text),
  );
}

/** The anchors that GitHub gives the headings of a page. */
export function anchors({ prose }: Page): string[] {
  return prose
    .filter((line) => /^#{1,6} /.test(line))
    .map((line) =>
      line
        .replace(/^#+ /, '')
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replace(/\s/g, '-'),
    );
}

/** `{ line, target }` of every link that stays inside the project. */
export function relativeLinks({ prose }: Page): { line: number; target: string }[] {
  return prose.flatMap((line, index) =>
    [...line.replace(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => ({ line: index + 1, target }))
      .filter(({ target }) => !/^[a-z]+:/.test(target)),
  );
}

/** Whether a path names something in the project. */
export function isProjectPath(path: string): boolean {
  return existsSync(projectFile(path));
}
