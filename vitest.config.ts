import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const PROOFS = 'test/**/*.proof.test.ts';
/** Starts the PostgreSQL that the tests of the ledger share (where it can't run, nothing passes), and makes a folder that they share. For all projects at once, it would be done twice. */
const globalSetup = ['test/support/shared-postgres.ts', 'test/support/shared-folder.ts'];

export default defineConfig({
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
          // Most wait longer than those of the suite, for peers and outages: with three, processors are idle between them.
          maxWorkers: 4,
          // Where both projects run, one after the other: together they would have the workers of both.
          sequence: { groupOrder: 1 },
        },
      },
    ],
    setupFiles: ['test/support/properties.ts', 'test/support/clean-up.ts'],
    // Generous: what hangs is found all the same, and a busy machine makes nothing fail.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
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
