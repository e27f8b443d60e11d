/** Tries every code block of every page, from top to bottom. CONTRIBUTING.md has the rules. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { YamlDocument } from '../../src/base/yaml/document.ts';
import { parseCreateRequest, parseEndRequest, parseUpdateRequest } from '../../src/lease/request.ts';
import { projectFile } from '../support/files.ts';
import { type Block, PAGES } from './markdown.ts';
import { openSandbox, type PageSandbox } from './page-sandbox.ts';
import { commands, matchesShown } from './shown.ts';

type Try = (block: Block, follower: Block | undefined, sandbox: PageSandbox) => void | Promise<void>;

const PARSERS = { create: parseCreateRequest, update: parseUpdateRequest, end: parseEndRequest };
const HAS_CURL = spawnSync('curl', ['--version']).status === 0;

const tries: Readonly<Record<string, Try>> = {
  /** Runs each command and compares what it prints. */
  async console({ text }, _follower, sandbox) {
    for (const { command, shown } of commands(text)) {
      const { output } = await sandbox.run(command, (soFar) => shown !== '' && matchesShown(soFar, shown));
      expectShown(output, shown, command);
    }
  },

  /** The whole configuration from here on. `config validate` prints the `problems` that follow, or nothing. */
  async ini({ file = '/etc/blazar/blazar.conf', text }, follower, sandbox) {
    sandbox.write(file, text);
    const problems = follower?.words.includes('problems') ? follower.text : '';
    expectShown(await sandbox.problems(file), problems, file);
  },

  /** types.proof.test.ts checks the types. */
  async ts(block, follower, sandbox) {
    const { outputText } = ts.transpileModule(block.text, {
      compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext },
    });
    await tryScript(block, outputText, follower, sandbox);
  },

  async js(block, follower, sandbox) {
    expect(block.file !== undefined || block.words.includes('run'), 'js needs "run" or "file=…"').toBe(true);
    await tryScript(block, block.text, follower, sandbox);
  },

  /** JSON, and a request if a word says which. */
  json({ file, text, words }, _follower, sandbox) {
    const value: unknown = JSON.parse(text);
    for (const operation of ['create', 'update', 'end'] as const) {
      if (words.includes(operation)) {
        PARSERS[operation](value);
      }
    }
    if (file !== undefined) {
      sandbox.write(file, text);
    }
  },

  /** For the commands that follow. */
  csv({ file, text }, _follower, sandbox) {
    expect(file, 'csv needs "file=…"').toBeDefined();
    sandbox.write(file ?? '', text);
  },

  /** YAML as PyYAML reads it, one document or several. */
  yaml({ file, text }, _follower, sandbox) {
    YamlDocument.parseAll(text);
    if (file !== undefined) {
      sandbox.write(file, text);
    }
  },

  /** Not run, because it installs or does not end. Its scripts exist. */
  sh({ text }) {
    const { scripts } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8')) as {
      scripts: Readonly<Record<string, string>>;
    };
    const named = [...text.matchAll(/\bnpm (?:run )?([a-z][a-z:-]+)/g)].map(([, name = '']) => name);
    expect(
      named.filter((name) => !['ci', 'install', 'init', 'pkg'].includes(name) && !(name in scripts)),
    ).toEqual([]);
    expect(spawnSync('sh', ['-n'], { input: text }).status).toBe(0);
  },

  /** `output` and `problems` belong to the block before. Others cannot be tried. */
  text() {},
};

async function tryScript(
  { file = 'block.js', text, words }: Block,
  script: string,
  follower: Block | undefined,
  sandbox: PageSandbox,
): Promise<void> {
  sandbox.write(file, file.endsWith('.ts') ? text : script);
  if (words.includes('run')) {
    const { output, code } = await sandbox.run(`node ${file}`);
    expectShown(output, follower?.words.includes('output') ? follower.text : '', file);
    expect(code).toBe(0);
  }
}

function expectShown(output: string, shown: string, what: string): void {
  if (!matchesShown(output, shown)) {
    expect(output, what).toBe(shown);
  }
}

for (const { name, blocks } of PAGES.filter((page) => page.blocks.length > 0)) {
  describe(name, () => {
    let sandbox: PageSandbox;
    beforeAll(async () => {
      sandbox = await openSandbox();
    });
    afterAll(() => sandbox.close());

    for (const [index, block] of blocks.entries()) {
      const { line, language, words, text } = block;
      it(`line ${line}: ${[language, ...words].join(' ')}`, async (context) => {
        if (language === 'console' && text.includes('curl ') && !HAS_CURL) {
          context.skip('curl is not installed');
        }
        const attempt = tries[language];
        expect(attempt, `no rule for "${language}"; one of ${Object.keys(tries).join(', ')}`).toBeDefined();
        await attempt?.(block, blocks[index + 1], sandbox);
      });
    }
  });
}
