/** Checks the TypeScript on the pages with the types that the package ships. */
import ts from 'typescript';
import { expect, it } from 'vitest';
import { PAGES } from './markdown.ts';
import { openSandbox } from './page-sandbox.ts';

it('every TypeScript block is correct with the types of the package', async () => {
  const sandbox = await openSandbox();
  const files = PAGES.flatMap(({ blocks }) => blocks)
    .filter(({ language }) => language === 'ts')
    .map(({ page, line, text }) => {
      const file = `${page.replaceAll('/', '-')}-line-${line}.ts`;
      sandbox.write(file, text);
      return sandbox.path(file);
    });
  const program = ts.createProgram(files, {
    target: ts.ScriptTarget.ES2023,
    lib: ['lib.es2023.d.ts'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    moduleDetection: ts.ModuleDetectionKind.Force,
    types: ['node'],
    typeRoots: [sandbox.path('node_modules/@types')],
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    noEmit: true,
  });
  const mistakes = ts
    .getPreEmitDiagnostics(program)
    .map((diagnostic) => ts.formatDiagnostic(diagnostic, FORMAT).trim());
  await sandbox.close();
  expect(files).not.toEqual([]);
  expect(mistakes).toEqual([]);
});

const FORMAT: ts.FormatDiagnosticsHost = {
  getCurrentDirectory: () => '/',
  getCanonicalFileName: (name) => name,
  getNewLine: () => '\n',
};
