import { expect, it } from 'vitest';
import { loginIn } from '../../src/cli/skypilot/service-call.ts';

const TEXT = `# machine h login no password no
machine h login a password "x y#z" # a comment
macdef init
machine nope login no
cd a

machine k user b account c password #x
default login d password e
`;

it.for<[string, string, string]>([
  ['h', 'a', 'x y#z'],
  ['k', 'b', '#x'],
  ['nope', 'd', 'e'],
])('reads the entry of %s', ([host, name, password]) => {
  expect(loginIn(TEXT, host)).toEqual({ name, password });
});

it('uses the account if there is no login, and finds nothing in nothing', () => {
  expect(loginIn('machine h account c password p', 'h')).toEqual({ name: 'c', password: 'p' });
  expect(loginIn('', 'h')).toBeUndefined();
  expect(loginIn('machine h', 'h')).toEqual({ name: '', password: '' });
});
