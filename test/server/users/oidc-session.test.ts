import { describe, expect, it } from 'vitest';
import { oidcOptions } from '../../../src/server/users/oidc-options.ts';
import { oidcCaller } from '../../../src/server/users/oidc-session.ts';

const callerOf = (claims: object, options: object = {}) =>
  oidcCaller({ sub: 's1', ...claims }, oidcOptions.parse(options));
const membershipsOf = (groups: unknown, options: object = {}) =>
  callerOf({ groups }, options)?.memberships.map(({ projectId, isManager }) => [projectId, isManager]);

describe('oidcCaller', () => {
  it('finds projects and roles in groups such as those of Keycloak', () => {
    expect(membershipsOf(['/projects/climate/manager', '/projects/physics/member', '/staff'])).toEqual([
      ['climate', true],
      ['physics', false],
    ]);
    expect(membershipsOf('/projects/climate/reader')).toEqual([['climate', false]]);
  });

  it('is a manager by any of several groups of a project', () => {
    for (const groups of [
      ['/projects/c/member', '/projects/c/manager'],
      ['/projects/c/manager', '/projects/c/member'],
    ]) {
      expect(membershipsOf(groups)).toEqual([['c', true]]);
    }
  });

  it('takes no other form for one', () => {
    for (const group of [
      'projects/c/member',
      '/projects/c',
      '/projects/c/owner',
      '/projects/c/member/',
      '/projects//member',
      '/projects/c/d/member',
      'x/projects/c/member',
      '/projects/c/member\n',
      '/PROJECTS/c/member',
      '',
      '/projects/c/Member',
      '/projects/c/manager/..',
      `/projects/${'x'.repeat(300)}/member`,
    ]) {
      expect(membershipsOf([group]), group).toBeUndefined();
    }
    for (const groups of [null, 7, {}, [7, null, {}, []], true]) {
      expect(membershipsOf(groups), JSON.stringify(groups)).toBeUndefined();
    }
  });

  it('goes by a pattern, literally but for its two names', () => {
    expect(membershipsOf(['os.c.x'], { project_pattern: 'os.{project}.x' })).toEqual([['c', false]]);
    expect(membershipsOf(['osXcXx'], { project_pattern: 'os.{project}.x' })).toBeUndefined();
    expect(membershipsOf(['manager:c'], { project_pattern: '{role}:{project}' })).toEqual([['c', true]]);
    expect(membershipsOf(['(c|d)+'], { project_pattern: '({project}|d)+' })).toEqual([['c', false]]);
    expect(membershipsOf(['c-c', 'c-d'], { project_pattern: '{project}-{project}' })).toEqual([['c', false]]);
  });

  it('knows no ids that no database keeps, and none that are read as those of others', () => {
    const groups = ['/projects/a\0b/manager', '/projects/a\ud800/member', '/projects/c/member'];
    expect(membershipsOf(groups)).toEqual([['c', false]]);
    expect(membershipsOf(['/projects/n/member'], { project_ids: { n: 'a\0' } })).toBeUndefined();
    const ofUser = (sub: unknown) => callerOf({ sub, groups })?.userId;
    expect([7, 'u', 'u\0', '\udc00', 2 ** 53, 1e30, 1.5].map(ofUser)).toEqual([
      '7',
      'u',
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('calls projects by their ids', () => {
    const caller = callerOf(
      { groups: ['/projects/climate/member', '/projects/other/member'] },
      { project_ids: { climate: 'c11' } },
    );
    expect(caller?.memberships).toEqual([
      { projectId: 'c11', name: 'climate', isManager: false },
      { projectId: 'other', isManager: false },
    ]);
    expect(membershipsOf(['/projects/constructor/member', '/projects/__proto__/member'])).toEqual([
      ['constructor', false],
      ['__proto__', false],
    ]);
  });

  it('finds operators and readers by values that are configured, and by none unless they are', () => {
    const options = {
      operator_values: ['root'],
      reader_values: ['audit'],
      roles_claim: 'realm_access.roles',
    };
    const kindOf = (roles: unknown) => callerOf({ realm_access: { roles } }, options)?.kind;
    expect(kindOf(['audit', 'root'])).toBe('operator');
    expect(kindOf('audit')).toBe('reader');
    for (const roles of [['Root'], ['roots'], [['root']], { 0: 'root' }, 'root,x', undefined]) {
      expect(kindOf(roles), JSON.stringify(roles)).toBeUndefined();
    }
    expect(callerOf({ roles: ['admin', 'operator', 'root'] })).toBeUndefined();
    expect(callerOf({ 'realm_access.roles': 'root' }, options)?.kind, 'a claim with a dot in it').toBe(
      'operator',
    );
  });

  it('names the user by claims that may be chosen, and nobody without an id', () => {
    const groups = ['/projects/c/member'];
    expect(callerOf({ groups, preferred_username: 'alice' })).toMatchObject({
      userId: 's1',
      name: 'alice',
      who: 'alice (s1)',
      provenBy: 'oidc',
    });
    expect(callerOf({ groups, uid: 7 }, { user_claim: 'uid' })).toMatchObject({ userId: '7', who: '7 (7)' });
    for (const uid of [undefined, '', null, ['a'], { a: 1 }, 'x'.repeat(256)]) {
      expect(callerOf({ groups, uid }, { user_claim: 'uid' }), JSON.stringify(uid)).toBeUndefined();
    }
  });
});
