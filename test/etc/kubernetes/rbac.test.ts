/** The rights of the service in etc/kubernetes are those that docs/reference/kubernetes-rbac.md explains. */
import { describe, expect, it } from 'vitest';
import { manifests, RULES_MANIFEST } from './manifests.ts';
import { grantedRights, rbacTable, sorted } from './rbac-table.ts';

const objects = manifests('service-account.yaml');
const NAME = 'blazar-enforcement';

describe('the rights of the service in etc/kubernetes', () => {
  it('are those of the table that kustomize needs, and no others', () => {
    const rows = rbacTable().filter(({ granted }) => !granted.startsWith('with '));
    expect(rows.length).toBeGreaterThan(3);
    expect(sorted(grantedRights(objects, NAME))).toEqual(sorted(rows.flatMap(({ rights }) => rights)));
  });

  it('are given to its service account alone', () => {
    const bindings = objects.filter(({ kind }) => kind.endsWith('Binding'));
    expect(bindings.map(({ kind, roleRef }) => [kind, roleRef.kind, roleRef.name])).toEqual([
      ['ClusterRoleBinding', 'ClusterRole', NAME],
      ['RoleBinding', 'Role', NAME],
    ]);
    for (const { subjects } of bindings) {
      expect(subjects).toEqual([{ kind: 'ServiceAccount', name: NAME, namespace: NAME }]);
    }
  });

  it('on objects that have a name are for objects of the service', () => {
    const names = objects.flatMap(({ rules = [] }) =>
      rules.flatMap(({ resourceNames = [] }: { resourceNames?: string[] }) => resourceNames),
    );
    const [rules] = manifests(RULES_MANIFEST);
    expect(new Set(names)).toEqual(new Set([NAME, rules?.metadata.name]));
  });
});
