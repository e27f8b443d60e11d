/** What projects and users of a page are called. */
import type { ComponentChildren } from 'preact';
import type { Generation } from '../configuration/generation.ts';
import type { Person } from '../users/person.ts';
import { AccountNames, type NameOf } from './account.tsx';

/** The names that are known for accounts: Keystone's, and those of the person's own projects. */
export function nameOfFor({ enforcement }: Generation, { memberships }: Person): NameOf {
  const own = new Map(
    memberships.flatMap(({ projectId, name, domain = '' }) =>
      name === undefined ? [] : [[projectId, { name, domain }] as const],
    ),
  );
  return (kind, id) =>
    enforcement.names?.known({ project_id: id, user_id: id })[kind] ??
    (kind === 'project' ? own.get(id) : undefined);
}

/** In milliseconds: names are a nicety, no page waits long for them. */
const NAMES_PATIENCE = 500;

/** Asks Keystone for names that the page will show. */
export async function learnNames(
  { enforcement }: Generation,
  projects: readonly string[],
  users: readonly string[],
): Promise<void> {
  await enforcement.names?.learn(projects, users, NAMES_PATIENCE);
}

export function WithNames({
  nameOf,
  children,
}: {
  readonly nameOf: NameOf;
  readonly children: ComponentChildren;
}) {
  return <AccountNames.Provider value={nameOf}>{children}</AccountNames.Provider>;
}
