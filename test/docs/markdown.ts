/** The parts of the pages that can be checked: code blocks, code spans, tables, headings, links. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { projectFile } from '../support/files.ts';

/** A fenced code block. CONTRIBUTING.md explains its language and the words after it. */
export interface Block {
  readonly page: string;
  /** The line of the opening fence, from 1. */
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
  /** The page with its code blocks replaced by empty lines. */
  readonly prose: readonly string[];
}

/** The pages that these tests check. */
export const PAGES: readonly Page[] = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
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
  const prose = [...lines];
  const fences = [...lines.keys()].filter((index) => /^\s*```/.test(lines[index] ?? ''));
  for (let index = 0; index < fences.length; index += 2) {
    const [start = 0, end] = fences.slice(index, index + 2);
    const [, info] = /^```(.*)$/.exec(lines[start] ?? '') ?? [];
    if (info === undefined || end === undefined || lines[end] !== '```') {
      throw new Error(`${name}:${start + 1}: a code block starts and ends with \`\`\`, not indented`);
    }
    const [language = '', ...words] = info.split(' ');
    const file = words.find((word) => word.startsWith('file='))?.slice('file='.length);
    const text = `${lines.slice(start + 1, end).join('\n')}\n`;
    blocks.push({ page: name, line: start + 1, language, words, file, text });
    prose.fill('', start, end + 1);
  }
  return { name, lines, blocks, prose };
}

/** Everything between single backticks. */
export function codeSpans({ prose }: Page): { line: number; text: string }[] {
  return prose.flatMap((line, index) =>
    [...line.matchAll(/`([^`]+)`/g)].map(([, text = '']) => ({ line: index + 1, text })),
  );
}

/** The rows of the table under a heading, without its head. */
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

/** Every link to a file of the project. */
export function relativeLinks({ prose }: Page): { line: number; target: string }[] {
  return prose.flatMap((line, index) =>
    [...line.replace(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => ({ line: index + 1, target }))
      .filter(({ target }) => !/^[a-z]+:/.test(target)),
  );
}

export const isProjectPath = (path: string): boolean => existsSync(projectFile(path));
