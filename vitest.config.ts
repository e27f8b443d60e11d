import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vitest/config';

const PROOFS = 'test/**/*.proof.test.ts';
const ROOT = import.meta.dirname;
/** Starts the PostgreSQL that the tests of the ledger share: where it can't run, nothing passes. For all projects at once, it would be started twice. */
const globalSetup = ['test/support/shared-postgres.ts'];
const COMPILED = new Set(['src', 'filters', 'policies', 'external-service-example']);

/**
 * With `TEST_BUILT=1`: Node loads what the build has compiled, which takes a third of the processor time that vitest takes to
 * compile the same modules one by one. Without it, tests see a change before the next build, and failures name lines of the sources.
 */
const built: Plugin = {
  name: 'built',
  enforce: 'pre',
  resolveId(specifier, importer = '') {
    const path = relative(
      ROOT,
      specifier.startsWith('.') ? resolve(dirname(importer), specifier) : specifier,
    );
    const compiled = join(ROOT, 'dist', path.replace(/\.tsx?$/, '.js'));
    const isCompiled = COMPILED.has(path.split(sep)[0] ?? '') && existsSync(compiled);
    return isCompiled ? { id: compiled, external: true } : null;
  },
};

export default defineConfig({
  plugins: process.env.TEST_BUILT === undefined ? [] : [built],
  resolve: {
    // Filters outside of the tree import the package by its name; in the tests that is the source.
    alias: {
      'blazar-enforcement/rules': fileURLToPath(new URL('src/rules/index.ts', import.meta.url)),
      'blazar-enforcement/kubernetes': fileURLToPath(new URL('src/kubernetes/index.ts', import.meta.url)),
      'blazar-enforcement/skypilot': fileURLToPath(new URL('src/skypilot/index.ts', import.meta.url)),
      'blazar-enforcement': fileURLToPath(new URL('src/index.ts', import.meta.url)),
    },
  },
  test: {
    projects: [
      // What guards every change: `npm test`.
      {
        extends: true,
        test: { name: 'suite', globalSetup, include: ['test/**/*.test.ts'], exclude: [PROOFS] },
      },
      // What takes long by nature (kill -9, outages, fuzzing, real peers, the bench): `npm run test:proofs`.
      {
        extends: true,
        test: {
          name: 'proofs',
          globalSetup,
          include: [PROOFS],
          testTimeout: 1_200_000,
          hookTimeout: 1_200_000,
        },
      },
    ],
    setupFiles: ['test/support/properties.ts'],
    // Generous: what hangs is found all the same, and a busy machine makes nothing fail.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
    server: { deps: { external: [/\/dist\//] } },
    // One more than the smallest machine has cores: much of the time goes to waiting, for deadlines and for processes.
    maxWorkers: 3,
    // Files share what they import, which takes longer to load than most of them to run: none may leave anything behind.
    isolate: false,
    coverage: {
      provider: 'v8',
      include: [
        'src/**/*.{ts,tsx}',
        'filters/**/*.ts',
        'policies/**/*.ts',
        'external-service-example/**/*.ts',
      ],
      reporter: ['text-summary'],
      thresholds: { lines: 85 },
    },
  },
});
