import { describe, expect, it } from 'vitest';
import { whyNotComparable } from '../../bench/reference/not-comparable.ts';

const FOLDER = '/tmp/somewhere/checkout';
const ended = (cause: string) => new Error('its process ended with 1', { cause });

describe('what cannot be compared', () => {
  it.each([
    {
      printed: `Error [ERR_MODULE_NOT_FOUND]: Cannot find module '${FOLDER}/dist/src/server/service.js' imported from ${FOLDER}/dist/bench/server-main.js`,
      why: 'no such module: src/server/service.js',
    },
    {
      printed: `Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'autocannon' imported from ${FOLDER}/dist/bench/load.js`,
      why: 'no such package: autocannon',
    },
    {
      printed: `SyntaxError: The requested module '../src/ledger/open.js' does not provide an export named 'openLedger'`,
      why: 'no such export: openLedger of src/ledger/open.js',
    },
    { printed: `Error: ${FOLDER}/etc: no space left on build-host-7`, why: 'it failed there' },
  ])('says why, and names nothing of the machine: $why', ({ printed, why }) => {
    expect(whyNotComparable(FOLDER, ended(`node:internal/modules\n\n${printed}\n    at somewhere`))).toBe(
      why,
    );
  });

  it('has failed, whatever was thrown', () => {
    expect(whyNotComparable(FOLDER, 'a text')).toBe('it failed there');
  });
});
