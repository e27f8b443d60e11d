import { describe, expect, it } from 'vitest';
import type { ValidToken } from '../../../src/openstack/contract.ts';
import { keystoneCaller } from '../../../src/server/users/user-authenticator.ts';

const ROLES = { admin_roles: ['admin'], manager_roles: ['manager'], reader_roles: ['reader', 'member'] };
const ALICE = { id: 'a11ce', name: 'alice', domain: 'Default' };
const CLIMATE = { id: 'c11', name: 'climate', domain: 'Default' };

function kindOf(token: Partial<ValidToken>) {
  const caller = keystoneCaller(
    { expiresAt: 0, user: ALICE, project: undefined, roles: [], ...token },
    ROLES,
  );
  return caller?.kind === 'member' ? caller.memberships : caller?.kind;
}
const inClimate = (...roles: string[]) => ({ project: CLIMATE, roles });
const climate = (isManager: boolean) => [{ projectId: 'c11', name: 'climate', domain: 'Default', isManager }];

describe('keystoneCaller', () => {
  it.each<[string, Partial<ValidToken>, unknown]>([
    ['goes by the roles in the project of the token', inClimate('reader'), climate(false)],
    ['takes any of them', inClimate('member', 'reader'), climate(false)],
    ['takes the highest', inClimate('reader', 'member', 'manager'), climate(true)],
    ['needs no other role of a manager', inClimate('manager'), climate(true)],
    ['takes an administrator for an operator', inClimate('reader', 'manager', 'admin'), 'operator'],
    ...['service', 'Admin', 'administrator', 'heat_stack_owner', '', 'read'].map(
      (role): [string, Partial<ValidToken>, unknown] => [
        `gives nothing for ${role}`,
        inClimate(role),
        undefined,
      ],
    ),
    ['gives nothing without a role', inClimate(), undefined],
    ['counts an administrator of the system for all projects', { systemRoles: ['admin'] }, 'operator'],
    ['counts a reader of the system for all projects', { systemRoles: ['reader'] }, 'reader'],
    ['takes a manager in the system for a reader', { systemRoles: ['manager'] }, 'reader'],
    ['gives nothing for other roles in the system', { systemRoles: ['service'] }, undefined],
    ['gives nothing for roles in a domain', { roles: ['admin'] }, undefined],
    ['gives nothing without a project or the system', {}, undefined],
    // Keystone names another project for administrators.
    ['has no operator elsewhere', { ...inClimate('admin'), isAdminElsewhere: true }, undefined],
    ['has a member there', { ...inClimate('admin', 'member'), isAdminElsewhere: true }, climate(false)],
    [
      'has operators where it is that project',
      { ...inClimate('admin'), isAdminElsewhere: false },
      'operator',
    ],
  ])('%s', (_, token, expected) => {
    expect(kindOf(token)).toEqual(expected);
  });

  it('names somebody in a line of at most 255 characters, with the id', () => {
    const whoOf = (name: string, domain = 'Default', id = 'a11ce') =>
      keystoneCaller({ expiresAt: 0, user: { id, name, domain }, ...inClimate('reader') }, ROLES)?.who ?? '';
    expect(whoOf('alice')).toBe('alice@Default (a11ce)');
    expect(whoOf('alice', '')).toBe('alice (a11ce)');
    expect(whoOf('operator token', '')).toBe('operator token (a11ce)');
    expect(whoOf('a\nb\u202e\0')).toBe('a b\\u202e\\u0000@Default (a11ce)');
    for (const long of [whoOf('x'.repeat(1020)), whoOf('😀'.repeat(500), 'd'.repeat(1020))]) {
      expect(long).toMatch(/… \(a11ce\)$/);
      expect(long.length).toBeLessThanOrEqual(255);
      expect(Buffer.from(long).toString()).toBe(long);
    }
    expect(whoOf('x'.repeat(300), 'd', 'i'.repeat(255)).length).toBe(255);
  });
});
