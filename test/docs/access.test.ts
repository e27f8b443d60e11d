import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ACTIONS, type Role } from '../../src/server/users/caller.ts';
import { projectFile } from '../support/files.ts';

const ROLES: readonly Role[] = ['operator', 'reader', 'manager', 'member'];

it('docs/reference/access.md says who may do what', () => {
  const page = readFileSync(projectFile('docs/reference/access.md'), 'utf8');
  const [, table = ''] = /<!-- access:begin -->(.*)<!-- access:end -->/s.exec(page) ?? [];
  const rows = table
    .trim()
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  const said = rows.map(([, action, ...cells]) => [action, ...cells.slice(0, ROLES.length)]);
  const held = Object.entries(ACTIONS).map(([action, roles]) => {
    const allowed: readonly Role[] = roles;
    return [`\`${action}\``, ...ROLES.map((role) => (allowed.includes(role) ? 'yes' : ''))];
  });
  expect(said).toEqual(held);
});
