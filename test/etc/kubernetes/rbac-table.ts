/** The rights of the service: the table of docs/reference/kubernetes-rbac.md, and what manifests grant. */
import { readFileSync } from 'node:fs';
import { projectFile } from '../../support/files.ts';
import type { Manifest } from './manifests.ts';

/** One verb on one resource. */
export interface Right {
  readonly where: 'cluster' | 'own namespace';
  readonly group: string;
  readonly resource: string;
  /** Only of the object that has this name. */
  readonly named: boolean;
  readonly verb: string;
}

export interface TableRow {
  readonly rights: readonly Right[];
  /** `always`, or the value of the chart or the option on which it depends. */
  readonly granted: string;
}

/** The rows of the table. */
export function rbacTable(): TableRow[] {
  const text = readFileSync(projectFile('docs/reference/kubernetes-rbac.md'), 'utf8');
  return text
    .split('\n')
    .filter((line) => /^\| (cluster|own namespace) /.test(line))
    .map((line) => {
      const cells = line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim());
      const [where = '', group = '', resources = '', names = '', verbs = '', , , granted = ''] = cells;
      const rights = resources.split(', ').flatMap((resource) =>
        verbs.split(', ').map((verb) => ({
          where: where === 'cluster' ? ('cluster' as const) : ('own namespace' as const),
          group,
          resource,
          verb,
          named: names === 'its own',
        })),
      );
      return { rights, granted };
    });
}

/** What the ClusterRole and the Role of the service grant. Throws where a rule is wider than a table could say. */
export function grantedRights(objects: readonly Manifest[], name: string): Right[] {
  return objects
    .filter(({ kind, metadata }) => /^(Cluster)?Role$/.test(kind) && metadata.name === name)
    .flatMap(({ kind, rules }: Manifest) =>
      rules.flatMap(({ apiGroups, resources, verbs, resourceNames, nonResourceURLs }: Manifest) => {
        const all = [...apiGroups, ...resources, ...verbs, ...(resourceNames ?? [])];
        if (nonResourceURLs !== undefined || all.includes('*')) {
          throw new Error(`a rule of ${kind} ${name} is too wide: ${JSON.stringify(all)}`);
        }
        return resources.flatMap((resource: string) =>
          verbs.map((verb: string) => ({
            where: kind === 'Role' ? 'own namespace' : 'cluster',
            group: apiGroups.join(),
            resource,
            verb,
            named: resourceNames !== undefined,
          })),
        );
      }),
    );
}

/** In an order, to compare them. */
export function sorted(rights: readonly Right[]): string[] {
  return rights.map((right) => JSON.stringify(Object.entries(right).sort())).sort();
}
