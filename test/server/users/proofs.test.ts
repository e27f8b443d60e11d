import { describe, expect, it } from 'vitest';
import type { ValidToken } from '../../../src/openstack/contract.ts';
import { keystoneCaller } from '../../../src/server/users/proofs.ts';

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

describe('keystonePerson', () => {
  it('goes by the roles in the project of the token, the highest first', () => {
    expect(kindOf(inClimate('reader'))).toEqual(climate(false));
    expect(kindOf(inClimate('member', 'reader'))).toEqual(climate(false));
    expect(kindOf(inClimate('reader', 'member', 'manager'))).toEqual(climate(true));
    expect(kindOf(inClimate('manager'))).toEqual(climate(true));
    expect(kindOf(inClimate('reader', 'member', 'manager', 'admin'))).toBe('operator');
  });

  it('gives nothing for other roles: that of services neither', () => {
    for (const role of ['service', 'Admin', 'administrator', 'heat_stack_owner', '', 'read']) {
      expect(kindOf(inClimate(role)), role).toBeUndefined();
    }
    expect(kindOf(inClimate())).toBeUndefined();
  });

  it('counts roles in the system for all projects', () => {
    expect(kindOf({ systemRoles: ['admin'] })).toBe('operator');
    expect(kindOf({ systemRoles: ['reader'] })).toBe('reader');
    expect(kindOf({ systemRoles: ['manager'] })).toBe('reader');
    expect(kindOf({ systemRoles: ['service'] })).toBeUndefined();
  });

  it('gives nothing without a project or the system: roles in a domain say nothing about its projects', () => {
    expect(kindOf({ roles: ['admin'] })).toBeUndefined();
    expect(kindOf({})).toBeUndefined();
  });

  it('has no operators in a project if Keystone names another one for administrators', () => {
    expect(kindOf({ ...inClimate('admin'), isAdminElsewhere: true })).toBeUndefined();
    expect(kindOf({ ...inClimate('admin', 'member'), isAdminElsewhere: true })).toEqual(climate(false));
    expect(kindOf({ ...inClimate('admin'), isAdminElsewhere: false })).toBe('operator');
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
