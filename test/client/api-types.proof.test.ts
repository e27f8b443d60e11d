/** The types of the client are those that /openapi.json gives today. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { apiTypes } from '../../tools/api-types.ts';
import { projectFile } from '../support/files.ts';

it('has the types of what the service serves: npm run client:types writes them', async () => {
  expect(readFileSync(projectFile('src/client/api-types.ts'), 'utf8')).toBe(await apiTypes());
});
