/** The tests that `npm run mutation` runs against each change: those of the chain, the filters, the rules and the arithmetic of the ledger. */
import { defineConfig, mergeConfig } from 'vitest/config';
import suite from '../vitest.config.ts';

const { projects: _, maxWorkers: __, globalSetup: ___, ...test } = suite.test ?? {};

export default mergeConfig(
  { resolve: suite.resolve, test },
  defineConfig({
    test: {
      setupFiles: ['test/support/mutated-modules.ts'],
      include: ['test/{enforcement,filter,filters,ledger,rules}/**/*.test.ts'],
      exclude: [
        '**/*.proof.test.ts',
        'test/enforcement/commit-without-ledger.test.ts',
        // No lease is judged by these.
        'test/ledger/{budgets,folding,outbox,reports,storage}/**',
        'test/ledger/{clock,going-back,hostile-texts,round-trips}.test.ts',
      ],
      // Arithmetic that is wrong is wrong on SQLite too: no PostgreSQL is started for each worker.
      testNamePattern: '^(?!.*[Pp]ostgre[Ss][Qq][Ll])',
    },
  }),
);
