import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { testFilter } from './contract.ts';

const folder = fileURLToPath(new URL('../../examples/filters', import.meta.url));

testFilter({ name: 'NoOpFilter', options: () => ({ no_op_note: 'hello' }), folders: [folder] });

it('has at most 25 lines, so that the tutorial fits on a screen', () => {
  expect(readFileSync(`${folder}/no-op-filter.js`, 'utf8').trim().split('\n').length).toBeLessThanOrEqual(25);
});
