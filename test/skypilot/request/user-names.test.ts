import { expect, it } from 'vitest';
import { namesOfUser } from '../../../src/skypilot/index.ts';

it.each([
  ['a user by id and name', { id: 'a1b2c3d4', name: 'lee' }, ['a1b2c3d4', 'lee']],
  ['a user without a name by id', { id: 'a1b2c3d4', name: '' }, ['a1b2c3d4']],
  [
    'a service account by id, as anybody may call it lee',
    { id: 'sa-1f3870be', name: 'lee' },
    ['sa-1f3870be'],
  ],
  ['a service account in capital letters, too', { id: 'SA-1f3870be', name: 'lee' }, ['SA-1f3870be']],
])('names %s', (_who, user, expected) => {
  expect(namesOfUser(user)).toEqual(expected);
});
