/** A project or a user: what Keystone calls it, if that is known, and its id. */
import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { nameText } from '../../../filter/account-limits.ts';
import type { Named } from '../../../filter/request-names.ts';
import type { Generation } from '../../configuration/generation.ts';
import type { Caller } from '../../users/caller.ts';
import { projectPath } from '../paths.ts';
import { Text } from './text.tsx';

type Kind = 'project' | 'user';

/** The names that are known for the ids of the page. */
export type NameOf = (kind: Kind, id: string) => Named | undefined;

const AccountNames = createContext<NameOf>(() => undefined);

export function Account({ kind, id }: { readonly kind: Kind; readonly id: string }) {
  return <NamedId id={id} named={useContext(AccountNames)(kind, id)} />;
}

export function NamedId({ id, named }: { readonly id: string; readonly named: Named | undefined }) {
  return named === undefined ? (
    <Text>{id}</Text>
  ) : (
    <>
      <Text>{nameText(named)}</Text>{' '}
      <small class="id">
        <Text>{id}</Text>
      </small>
    </>
  );
}

/** The names that are known for accounts: Keystone's, and those of the person's own projects. */
export function nameOfFor({ enforcement }: Generation, { memberships }: Caller): NameOf {
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

export function Whose({
  userId,
  project = 'Project',
}: {
  readonly userId: string | null;
  readonly project?: string;
}) {
  return userId === null ? project : <Account kind="user" id={userId} />;
}

export function ProjectLink({ id }: { readonly id: string }) {
  return (
    <a href={projectPath(id)}>
      <Account kind="project" id={id} />
    </a>
  );
}
