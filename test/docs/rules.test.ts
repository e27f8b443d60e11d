/** The reference of rules has everything that rules may name. `UPDATE_DOCS=1` writes it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import {
  type Documented,
  leaseEnvironment,
  podEnvironment,
  type RuleEnvironment,
  taskEnvironment,
} from '../../src/rules/index.ts';
import { projectFile } from '../support/files.ts';

const PAGE = projectFile('docs/reference/rules.md');
/** By the names of the marks around it. */
const BLOCKS: Readonly<Record<string, () => string>> = {
  rules: leaseReference,
  'pod rules': () => reference('pods', podEnvironment()),
  'task rules': () => reference('tasks', taskEnvironment()),
};

function table(heading: string, rows: readonly Documented[], isFunction = false): string {
  const lines = rows.map(({ name, type, description }) =>
    isFunction
      ? `| \`${cell(type)}\` | ${cell(description)} |`
      : `| \`${name}\` | \`${cell(type)}\` | ${cell(description)} |`,
  );
  const head = isFunction
    ? '| function | meaning |\n| --- | --- |'
    : '| name | type | meaning |\n| --- | --- | --- |';
  return `### ${heading}\n\n${head}\n${lines.join('\n')}\n`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function reference(
  what: string,
  { documentation: { variables, types, functions } }: Pick<RuleEnvironment, 'documentation'>,
) {
  return [
    table(`Variables of rules for ${what}`, variables),
    ...types.map(({ name, description, attributes }) =>
      table(`Attributes of ${name}`, attributes).replace('\n\n', `\n\n${description}\n\n`),
    ),
    table(what === 'leases' ? 'Functions' : `Functions of rules for ${what}`, functions, true),
  ].join('\n');
}

function leaseReference(): string {
  const { documentation } = leaseEnvironment('update');
  const created = new Set(leaseEnvironment('create').documentation.variables.map(({ name }) => name));
  const variables = documentation.variables.map((one) =>
    created.has(one.name) ? one : { ...one, description: `${one.description} Only at updates.` },
  );
  return reference('leases', { documentation: { ...documentation, variables } });
}

const bare = (markdown: string) => markdown.trim().replace(/ +/g, ' ').replace(/-{3,}/g, '---');

it.each(Object.entries(BLOCKS))(
  'the reference of %s names all variables, attributes and functions, and no others',
  (mark, written) => {
    const text = readFileSync(PAGE, 'utf8');
    const begin = `<!-- ${mark} -->`;
    const end = `<!-- /${mark} -->`;
    const from = text.indexOf(begin) + begin.length;
    const to = text.indexOf(end);
    expect(from < to, `expected ${begin} and ${end} in ${PAGE}`).toBe(true);
    if (process.env.UPDATE_DOCS === '1') {
      writeFileSync(PAGE, `${text.slice(0, from)}\n\n${written()}\n${text.slice(to)}`);
      return;
    }
    expect(bare(text.slice(from, to))).toBe(bare(written()));
  },
);
